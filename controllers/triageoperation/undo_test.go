package triageoperation

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/kube"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Thousands of reads one by one take longer than a reconcile may, and the next attempt would begin with the first
// again.
func TestAnUndoReadsFindingsFromTheAPIServerOnlyRightAfterTheOperationOrAnUndo(t *testing.T) {
	open := v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}
	signed := func(name, by string) *v1alpha1.Finding {
		return builder.Finding(name).Mutate(func(f *v1alpha1.Finding) { f.Spec.Triage = open; f.Spec.Triage.By = by }).Build()
	}
	undone := builder.TriageOperation("mute", "G1").Committed().Build()
	ended := v1alpha1.NewTime(noon)
	undone.Status = v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationCompleted, CompletedAt: &ended, DoneParts: 1}
	undid, overrode := builder.TriageOperation("undo", "").Undoes("other").Build(), builder.TriageOperation("override", "G1").Build()
	later := v1alpha1.NewTime(ended.Add(time.Hour))
	undid.Status.CompletedAt, overrode.Status.CompletedAt = &later, &later
	var entries []rules.Entry
	for _, name := range []string{"decided", "gone", "mine"} {
		entries = append(entries, rules.NewEntry(signed(name, "")))
	}
	parts, _, err := rules.Parts(undone, entries)
	harness.Must(t, err)
	parts[0].Spec.Outcomes = "ccc"

	var others []v1alpha1.TriageOperation
	var partReads int
	reader := func(read *int, findings ...*v1alpha1.Finding) client.WithWatch {
		return interceptor.NewClient(nil, interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch,
			key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			switch into := into.(type) {
			case *v1alpha1.TriageOperation:
				undone.DeepCopyInto(into)
				return nil
			case *v1alpha1.TriageOperationPart:
				partReads++
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
		}, List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, _ ...client.ListOption) error {
			into.(*v1alpha1.TriageOperationList).Items = others
			return nil
		}})
	}
	for _, c := range []struct {
		reason       string
		after        time.Duration
		others       []v1alpha1.TriageOperation
		live, intact int
	}{
		{"right after it", time.Second, nil, 2, 2},
		{"before its last reconcile has to end", 2 * time.Minute, nil, 2, 2},
		{"long after it", time.Hour, nil, 0, 1},
		{"right after an undo, which may have restored its decisions", time.Hour + time.Second, []v1alpha1.TriageOperation{*undid}, 2, 2},
		{"right after another operation", time.Hour + time.Second, []v1alpha1.TriageOperation{*overrode}, 0, 1},
	} {
		var cached, live int
		others, partReads = c.others, 0
		r := &Reconciler{Base: reconcile.Base{
			Client: reader(&cached, signed("decided", "operation/undo"), signed("mine", "operation/mute")),
			Live:   reader(&live, signed("decided", "operation/mute"), signed("mine", "operation/mute")),
		}}
		s := reconcile.NewScope(builder.TriageOperation("again", "").Undoes("mute").Build())
		s.Begin(ended.Add(c.after))
		set, err := r.selectUndone(t.Context(), s)
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
		harness.Same(t, c.reason+": parts read, the undone operation's alone, as no undo has overruled it", 1, partReads)
	}

	var read int
	parts[0].Spec.Outcomes = ""
	s := reconcile.NewScope(builder.TriageOperation("again", "").Undoes("mute").Build())
	_, err = (&Reconciler{Base: reconcile.Base{Client: reader(&read), Live: reader(&read)}}).selectUndone(t.Context(), s)
	harness.Must(t, err)
	harness.Same(t, "the phase if a part does not record what was changed", v1alpha1.OperationFailed, s.Status.Phase)
	ready := v1alpha1.FindCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	harness.Contains(t, "the message, which says what helps", ready.Message, "by another selection")
}

// The undo would fail as if the part had been removed.
func TestA404OfAProxyIsNoAnswerAboutAPart(t *testing.T) {
	undone := builder.TriageOperation("mute", "G1").Committed().Build()
	undone.Status = v1alpha1.TriageOperationStatus{CompletedAt: new(v1alpha1.NewTime(noon)), DoneParts: 1}
	reader := interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			if into, is := into.(*v1alpha1.TriageOperation); is {
				undone.DeepCopyInto(into)
				return nil
			}
			return harness.ProxyRefusal(http.StatusNotFound, http.MethodGet)
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
	})
	s := reconcile.NewScope(builder.TriageOperation("again", "").Undoes("mute").Build())
	_, err := (&Reconciler{Base: reconcile.Base{Client: reader, Live: reader}}).selectUndone(t.Context(), s)
	harness.ErrorContains(t, "a part that a proxy hides", err, `read part "mute-000"`)
	harness.Same(t, "the phase then", v1alpha1.OperationPhase(""), s.Status.Phase)
}

// An undo may follow its operation so closely that the cache does not show the operation's decision yet.
func TestAnUndoOfWhatTheCacheDoesNotShowYetRestores(t *testing.T) {
	decided := func(version, by string, status v1alpha1.UserStatus) *v1alpha1.Finding {
		f := builder.Finding("f-1").In("org-acme").Build()
		f.ResourceVersion, f.Spec.Triage = version, v1alpha1.FindingTriage{UserStatus: status, By: by}
		return f
	}
	cached, live := decided("5", "", v1alpha1.UserStatusOpen), decided("9", "operation/mute", v1alpha1.UserStatusMuted)
	before := rules.NewEntry(cached)
	entry := rules.Undo(&before, live, rules.Author("mute"), true)
	var calls []string
	writer, err := kube.NewClient(&rest.Config{Host: "http://nowhere.invalid", Transport: harness.RoundTripper(
		func(q *http.Request) (*http.Response, error) {
			calls = append(calls, q.Method)
			body, err := json.Marshal(live)
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: q,
				Body: io.NopCloser(bytes.NewReader(body)),
			}, err
		})})
	harness.Must(t, err)
	cache := interceptor.NewClient(nil, interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch,
		_ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
		if f, is := into.(*v1alpha1.Finding); is {
			cached.DeepCopyInto(f)
		}
		return nil
	}})
	r := &Reconciler{Base: reconcile.Base{Client: cache, Clock: apitime.Clock{}}}
	undo := builder.TriageOperation("undo", "").In("org-acme").Undoes("mute").Committed().Build()
	came, err := r.decide(t.Context(), writer, undo, &entry, false, new(int64))
	harness.Must(t, err)
	harness.Same(t, "outcome", rules.Changed, came.outcome)
	harness.Same(t, "calls to the API server", []string{http.MethodGet, http.MethodPatch}, calls)

	live.Spec.Triage.By, calls = "ann", nil
	came, err = r.decide(t.Context(), writer, undo, &entry, false, new(int64))
	harness.Must(t, err)
	harness.Same(t, "outcome where a person has decided", rules.Conflicted, came.outcome)
	harness.Same(t, "calls where a person has decided", []string{http.MethodGet}, calls)
}
