package patch

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestStatusPatch(t *testing.T) {
	noon := v1alpha1.NewTime(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	elsewhere := v1alpha1.NewTime(noon.In(time.FixedZone("east", 3600)))
	cases := []struct {
		reason        string
		before, after v1alpha1.ProjectStatus
		want          string
	}{{
		reason: "nothing differs",
		before: v1alpha1.ProjectStatus{ObservedGeneration: 1, FindingsCount: 1}, after: v1alpha1.ProjectStatus{ObservedGeneration: 1, FindingsCount: 1},
	}, {
		reason: "one moment in two zones",
		before: v1alpha1.ProjectStatus{ObservedGeneration: 1, UpdatedAt: &noon}, after: v1alpha1.ProjectStatus{ObservedGeneration: 1, UpdatedAt: &elsewhere},
	}, {
		reason: "no list and an empty one",
		before: v1alpha1.ProjectStatus{ObservedGeneration: 1}, after: v1alpha1.ProjectStatus{ObservedGeneration: 1, Conditions: []v1alpha1.Condition{}},
	}, {
		reason: "only what differs, and the version that it was decided upon",
		before: v1alpha1.ProjectStatus{ObservedGeneration: 1, FindingsCount: 1, Summary: "s"}, after: v1alpha1.ProjectStatus{ObservedGeneration: 1, FindingsCount: 2, Summary: "s"},
		want: `{"metadata":{"resourceVersion":"7"},"status":{"findingsCount":2}}`,
	}, {
		reason: "what is no longer there is taken out",
		before: v1alpha1.ProjectStatus{ObservedGeneration: 1, Summary: "s"}, after: v1alpha1.ProjectStatus{ObservedGeneration: 1},
		want: `{"metadata":{"resourceVersion":"7"},"status":{"summary":null}}`,
	}}
	for _, c := range cases {
		got, err := statusPatch("7", c.before, c.after)
		harness.Must(t, err)
		harness.Same(t, c.reason, c.want, string(got))
	}
}

func TestOutcome(t *testing.T) {
	resource := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "findings"}
	wrap := func(err error) error { return fmt.Errorf("write the status: %w", err) }
	cases := []struct {
		reason string
		err    error
		again  bool
		fails  bool
	}{
		{"all went well: the result stands", nil, true, false},
		{"a conflict is tried again, and is no error", wrap(apierrors.NewConflict(resource, "f", errors.New("moved on"))), true, false},
		{"what has gone may be another object: look again", wrap(apierrors.NewNotFound(resource, "f")), true, false},
		{"a webhook denies it with the code of a conflict", wrap(webhookerrors.ToStatusErr("x", &metav1.Status{Code: http.StatusConflict})), false, true},
		{"a webhook denies it with the code of what has gone", wrap(webhookerrors.ToStatusErr("x", &metav1.Status{Code: http.StatusNotFound})), false, true},
		{"the 404 of a proxy comes again: the pauses grow", wrap(harness.ProxyRefusal(http.StatusNotFound, http.MethodGet)), false, true},
		{"anything else is an error", wrap(apierrors.NewForbidden(resource, "f", errors.New("no right"))), false, true},
	}
	for _, c := range cases {
		result, err := Outcome(ctrl.Result{RequeueAfter: time.Hour}, c.err)
		if (result.RequeueAfter > 0) != c.again || (err != nil) != c.fails {
			t.Errorf("%s: got %v, %v", c.reason, result, err)
		}
	}
}

// A printer column shows a blank for a counter that was never stored.
func TestCountersOfZeroAreStoredAtTheFirstReconcile(t *testing.T) {
	status := v1alpha1.RepositoryStatus{}
	first, err := statusPatch("1", status, status)
	harness.Must(t, err)
	harness.Contains(t, "what the first reconcile writes", string(first), `"findings":0`)
	status.ObservedGeneration = 1
	if again, err := statusPatch("2", status, status); again != nil || err != nil {
		t.Errorf("a later look writes what is stored already: %s, %v", again, err)
	}
}
