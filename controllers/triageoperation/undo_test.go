package triageoperation

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Thousands of reads one by one take longer than a reconcile may, and the next attempt would begin with the first again.
func TestAnUndoReadsFindingsFromTheAPIServerOnlyRightAfterTheOperation(t *testing.T) {
	open := v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}
	signed := func(name, by string) *v1alpha1.Finding {
		return builder.Finding(name).Mutate(func(f *v1alpha1.Finding) { f.Spec.Triage = open; f.Spec.Triage.By = by }).Build()
	}
	undone := builder.TriageOperation("mute", "G1").Committed().Build()
	ended := v1alpha1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	undone.Status = v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationCompleted, CompletedAt: &ended, DoneParts: 1}
	var entries []rules.Entry
	for _, name := range []string{"decided", "gone", "mine"} {
		entries = append(entries, rules.NewEntry(signed(name, "")))
	}
	parts, _, err := rules.Parts(undone, entries)
	harness.Must(t, err)
	parts[0].Spec.Outcomes = "ccc"

	reader := func(read *int, findings ...*v1alpha1.Finding) client.WithWatch {
		return interceptor.NewClient(nil, interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch,
			key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			switch into := into.(type) {
			case *v1alpha1.TriageOperation:
				undone.DeepCopyInto(into)
				return nil
			case *v1alpha1.TriageOperationPart:
				parts[0].DeepCopyInto(into)
				return nil
			}
			*read++
			for _, f := range findings {
				if f.Name == key.Name {
					f.DeepCopyInto(into.(*v1alpha1.Finding))
					return nil
				}
			}
			return apierrors.NewNotFound(schema.GroupResource{Resource: "findings"}, key.Name)
		}, List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil }})
	}
	for _, c := range []struct {
		reason       string
		after        time.Duration
		live, intact int
	}{
		{"right after it", time.Second, 2, 2},
		{"before its last reconcile has to end", 2 * time.Minute, 2, 2},
		{"long after it", time.Hour, 0, 1},
	} {
		var cached, live int
		r := &Reconciler{Base: reconcile.Base{
			Client: reader(&cached, signed("decided", "operation/undo"), signed("mine", "operation/mute")),
			Live:   reader(&live, signed("decided", "operation/mute"), signed("mine", "operation/mute")),
		}}
		s := reconcile.NewScope(builder.TriageOperation("again", "").Undoes("mute").Build())
		s.Begin(ended.Add(c.after))
		set, err := r.chooseUndone(t.Context(), s)
		harness.Must(t, err)
		intact := 0
		for i := range set {
			if set[i].entry.Digest != "" {
				intact++
			}
		}
		if len(set) != len(entries) || cached != len(entries) || live != c.live || intact != c.intact {
			t.Errorf("%s: %d of %d findings have its decision, after %d live reads", c.reason, intact, len(set), live)
		}
	}
}
