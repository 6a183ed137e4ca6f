package triageoperation

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestWhoseTurnComesBefore(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	made := func(name string, at time.Time, phase v1alpha1.OperationPhase, undo string) v1alpha1.TriageOperation {
		o := builder.TriageOperation(name, "G1").Build()
		if undo != "" {
			o = builder.TriageOperation(name, "").Undoes(undo).Build()
		}
		o.CreationTimestamp, o.Status.Phase = metav1.NewTime(at), phase
		if phase == v1alpha1.OperationCompleted || phase == v1alpha1.OperationFailed {
			end := v1alpha1.NewTime(at)
			o.Status.CompletedAt = &end
		}
		return *o
	}
	mine := made("m", noon, "", "")
	earlier := noon.Add(-time.Second)
	for _, c := range []struct {
		reason string
		others []v1alpha1.TriageOperation
		want   string
	}{
		{"nobody", nil, ""},
		{"an older one that works", []v1alpha1.TriageOperation{made("a", earlier, v1alpha1.OperationRunning, "")}, "a"},
		{"one that nobody has looked at yet", []v1alpha1.TriageOperation{made("a", earlier, "", "")}, "a"},
		{"of the same second, by name", []v1alpha1.TriageOperation{made("a", noon, v1alpha1.OperationSelecting, "")}, "a"},
		{"a younger one", []v1alpha1.TriageOperation{made("z", noon, v1alpha1.OperationRunning, "")}, ""},
		{"a preview", []v1alpha1.TriageOperation{made("a", earlier, v1alpha1.OperationPreview, "")}, ""},
		{"one that has ended", []v1alpha1.TriageOperation{made("a", earlier, v1alpha1.OperationCompleted, "")}, ""},
		{"its own undo, which waits for it", []v1alpha1.TriageOperation{made("a", noon, v1alpha1.OperationSelecting, "m")}, ""},
		{"the undo of its undo", []v1alpha1.TriageOperation{
			made("a", noon, v1alpha1.OperationSelecting, "b"), made("b", noon, v1alpha1.OperationSelecting, "m"),
		}, ""},
		{"the undo of one that has ended", []v1alpha1.TriageOperation{
			made("a", earlier, v1alpha1.OperationRunning, "b"), made("b", earlier, v1alpha1.OperationCompleted, ""),
		}, "a"},
		{"the undo of nothing, which fails in its turn", []v1alpha1.TriageOperation{made("a", earlier, "", "nowhere")}, "a"},
	} {
		got := ""
		if first := before(&mine, c.others); first != nil {
			got = first.Name
		}
		if got != c.want {
			t.Errorf("%s: %q comes before, want %q", c.reason, got, c.want)
		}
	}
}

// Once it has decided about anything it must be Running in any case: else it could fail as Expired, and nothing undoes that.
func TestAnOperationDecidesOnlyOnceItIsStoredThatItRuns(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	scheme := runtime.NewScheme()
	harness.Must(t, v1alpha1.AddToScheme(scheme))
	selected := v1alpha1.NewTime(clock.Now().Add(-time.Hour))
	operation := builder.TriageOperation("m", "G1").In("org-acme").Committed().Build()
	operation.Status = v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationPreview, SelectedAt: &selected, Parts: 1}
	parts, _, err := rules.Parts(operation, []rules.Entry{rules.NewEntry(builder.Finding("f-1").Build())})
	harness.Must(t, err)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(operation, parts[0]).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errors.New("the controllers end before they store the status")
		},
	}).Build()
	r := &Reconciler{Base: reconcile.Base{Clock: clock, Client: c, Live: c}, as: func(string) (rest.Interface, error) {
		return nil, errors.New("no decision is expected")
	}}
	_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(operation)})
	if err == nil {
		t.Error("the status was not stored")
	}
	part := &v1alpha1.TriageOperationPart{}
	harness.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(parts[0]), part))
	if part.Spec.Begun {
		t.Errorf("it has begun although it is not stored that it runs: %v", err)
	}
}

func TestWhatIsRefusedFailsOnlyAfterAWhile(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	r := &Reconciler{Base: reconcile.Base{Clock: clock}}
	mine, other := builder.TriageOperation("m", "G1").Build(), builder.TriageOperation("o", "G1").Build()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "findings"}, "f-1", errors.New("a rule of somebody else's"))
	if _, err := r.outcomeOf(mine, forbidden); err == nil {
		t.Error("it failed at once: a starting API server knows no roles")
	}
	clock.Step(refusalPatience + time.Second)
	if came, err := r.outcomeOf(mine, forbidden); err != nil || came.outcome != rules.Failed {
		t.Errorf("after %s: %v, %v", refusalPatience, came, err)
	}
	if _, err := r.outcomeOf(other, forbidden); err == nil {
		t.Error("another operation's patience is over as well")
	}
}

func TestASetThatIsNotTakenFailsOnlyAfterAWhile(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	parts := schema.GroupResource{Resource: "triageoperationparts"}
	refusal := apierrors.NewForbidden(parts, "m-000", errors.New("exceeded quota"))
	refusing := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return refusal
	}}
	r := &Reconciler{Base: reconcile.Base{Clock: clock, Client: interceptor.NewClient(nil, refusing)}}
	s := reconcile.NewScope(builder.TriageOperation("m", "G1").Build())
	s.Begin(clock.Now())
	set := []chosen{{entry: rules.NewEntry(builder.Finding("f-1").Build())}}
	if err := r.keepSet(t.Context(), s, set, 0); err == nil || s.Status.Phase == v1alpha1.OperationFailed {
		t.Error("it failed at once: a quota may be raised")
	}
	clock.Step(refusalPatience + time.Second)
	if err := r.keepSet(t.Context(), s, set, 0); err != nil || s.Status.Phase != v1alpha1.OperationFailed {
		t.Errorf("after %s: %v, phase %q", refusalPatience, err, s.Status.Phase)
	}
	s.Status.Phase, refusal = "", apierrors.NewNotFound(parts, "m-000")
	if err := r.keepSet(t.Context(), s, set, 0); err == nil || s.Status.Phase == v1alpha1.OperationFailed {
		t.Error("it failed because a part that was in its way has been removed")
	}
}
