package triageoperation

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/kube"
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

// refusing returns a client of an API server that refuses each write to a finding of that name.
func refusing(finding string) func(string) (rest.Interface, error) {
	return func(string) (rest.Interface, error) {
		return kube.NewClient(&rest.Config{Host: "http://localhost", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			code := http.StatusOK
			if strings.HasSuffix(r.URL.Path, "/"+finding) {
				code = http.StatusForbidden
			}
			return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
		})})
	}
}

func TestARefusedFindingInEachPartCostsItsTimeOnce(t *testing.T) {
	open := func(name string) *v1alpha1.Finding {
		return builder.Finding(name).Mutate(func(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = v1alpha1.UserStatusOpen }).Build()
	}
	operation := builder.TriageOperation("m", "G1").Committed().Build()
	parts := map[string]*v1alpha1.TriageOperationPart{}
	for i, names := range [][]string{{"bad", "f-1"}, {"f-2", "bad"}, {"f-3"}, {"bad"}} {
		var entries []rules.Entry
		for _, name := range names {
			entries = append(entries, rules.NewEntry(open(name)))
		}
		made, _, err := rules.Parts(operation, entries)
		harness.Must(t, err)
		parts[rules.PartName("m", i)] = made[0]
	}
	c := interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			switch into := into.(type) {
			case *v1alpha1.TriageOperationPart:
				parts[key.Name].DeepCopyInto(into)
			case *v1alpha1.Finding:
				open(key.Name).DeepCopyInto(into)
			}
			return nil
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return nil
		},
	})
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	r := &Reconciler{Base: reconcile.Base{Client: c, Live: c, Clock: clock}, as: refusing("bad")}
	s := reconcile.NewScope(operation)
	s.Begin(clock.Now())
	s.Status.Parts = int32(len(parts)) //nolint:gosec // a few
	for _, step := range []struct {
		reason       string
		wait         time.Duration
		done, failed int32
	}{
		{"it may be a starting API server", 0, 0, 0},
		{"it is refused for good", refusalPatience + time.Second, 1, 1},
		{"the next part does not wait again", 0, 2, 2},
		{"nothing is refused", 0, 3, 2},
		{"it may be a starting API server again", 0, 3, 2},
		{"the last part", refusalPatience + time.Second, 4, 3},
	} {
		clock.Step(step.wait)
		err := r.workThroughPart(t.Context(), s)
		if s.Status.DoneParts != step.done || s.Status.Failed != step.failed {
			t.Errorf("%s: %d parts are done and %d findings have failed: %v", step.reason, s.Status.DoneParts, s.Status.Failed, err)
		}
	}
	harness.Must(t, r.complete(t.Context(), s))
	r.refused.Range(func(name, _ any) bool { t.Errorf("%v is kept after the end", name); return true })
}
