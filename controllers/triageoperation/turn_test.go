package triageoperation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestTheOperationThatHasBegunRunsFirstThenTheOldest(t *testing.T) {
	made := func(name string, at time.Time, phase v1alpha1.OperationPhase, undo string) v1alpha1.TriageOperation {
		o := builder.TriageOperation(name, "G1").Build()
		if undo != "" {
			o = builder.TriageOperation(name, "").Undoes(undo).Build()
		}
		o.CreationTimestamp, o.Status.Phase = metav1.NewTime(at), phase
		switch phase {
		case v1alpha1.OperationCompleted, v1alpha1.OperationFailed:
			o.Status.CompletedAt = new(v1alpha1.NewTime(at))
		case v1alpha1.OperationRunning, v1alpha1.OperationPreview:
			o.Status.SelectedAt = new(v1alpha1.NewTime(at))
		}
		return *o
	}
	committed := func(o v1alpha1.TriageOperation) v1alpha1.TriageOperation { o.Spec.Commit = true; return o }
	mine := made("m", noon, "", "")
	earlier := noon.Add(-time.Second)
	for _, c := range []struct {
		reason string
		others []v1alpha1.TriageOperation
		want   string
	}{
		{"nobody", nil, ""},
		{"an older one that works", []v1alpha1.TriageOperation{made("a", earlier, v1alpha1.OperationRunning, "")}, "a"},
		{"one that is not reconciled yet", []v1alpha1.TriageOperation{made("a", earlier, "", "")}, "a"},
		{"of the same second, by name", []v1alpha1.TriageOperation{made("a", noon, v1alpha1.OperationSelecting, "")}, "a"},
		{"a younger one", []v1alpha1.TriageOperation{made("z", noon, v1alpha1.OperationSelecting, "")}, ""},
		{"a younger one that works", []v1alpha1.TriageOperation{made("z", noon, v1alpha1.OperationRunning, "")}, "z"},
		{"a preview", []v1alpha1.TriageOperation{made("a", earlier, v1alpha1.OperationPreview, "")}, ""},
		{"a preview that is committed", []v1alpha1.TriageOperation{committed(made("a", earlier, v1alpha1.OperationPreview, ""))}, "a"},
		{"one that has ended", []v1alpha1.TriageOperation{made("a", earlier, v1alpha1.OperationCompleted, "")}, ""},
		{"its own undo, which waits for it", []v1alpha1.TriageOperation{made("a", noon, v1alpha1.OperationSelecting, "m")}, ""},
		{"the undo of its undo", []v1alpha1.TriageOperation{
			made("a", noon, v1alpha1.OperationSelecting, "b"), made("b", noon, v1alpha1.OperationSelecting, "m"),
		}, ""},
		{"the undo of one that has ended", []v1alpha1.TriageOperation{
			made("a", earlier, v1alpha1.OperationRunning, "b"), made("b", earlier, v1alpha1.OperationCompleted, ""),
		}, "a"},
		{"the undo of one that was created again, which works already", []v1alpha1.TriageOperation{
			made("a", noon, v1alpha1.OperationRunning, "b"), made("b", noon.Add(time.Second), "", ""),
		}, "a"},
		{"the same, whose preview was committed", []v1alpha1.TriageOperation{
			committed(made("a", earlier, v1alpha1.OperationPreview, "b")), made("b", noon.Add(time.Second), "", ""),
		}, "a"},
		{"the undo of nothing, which fails in its turn", []v1alpha1.TriageOperation{made("a", earlier, "", "nowhere")}, "a"},
	} {
		var got []string
		for _, o := range ahead(&mine, append(c.others, mine)) {
			got = append(got, o.Name)
		}
		harness.Same(t, c.reason, c.want, strings.Join(got, " "))
	}
	mine.Status.Phase = v1alpha1.OperationRunning
	before := ahead(&mine, []v1alpha1.TriageOperation{
		committed(made("a", earlier, v1alpha1.OperationPreview, "")), made("b", earlier, v1alpha1.OperationRunning, ""),
		made("z", noon, v1alpha1.OperationRunning, ""),
	})
	if len(before) != 1 || before[0].Name != "b" {
		t.Errorf("not only the older one that works is before one that works: %v", before)
	}
}

func TestAYoungerOperationThatHasBegunIsEnqueued(t *testing.T) {
	r, _ := line(t, 2, "", v1alpha1.TriageOperationStatus{})
	younger := stored(t, r, "o-1")
	begun := younger.DeepCopy()
	begun.Status.Phase = v1alpha1.OperationRunning
	harness.Must(t, r.Client.Status().Update(t.Context(), begun))
	harness.Same(t, "enqueued when a younger one has begun, and may have seen an older one before", "o-1 in 0s", enqueued(t, r, younger, begun))
}

// line returns a reconciler of new operations, "o-0" being the oldest. All have the status; if undo is set, each undoes
// that operation. It counts the writes of a status.
func line(t *testing.T, length int, undo string, status v1alpha1.TriageOperationStatus) (r *Reconciler, writes *int) {
	t.Helper()
	clock := clocktesting.NewFakeClock(noon)
	objects := make([]client.Object, length)
	for i := range objects {
		o := builder.TriageOperation(fmt.Sprint("o-", i), "G1").In("org-acme").Build()
		if undo != "" {
			o = builder.TriageOperation(o.Name, "").Undoes(undo).In("org-acme").Build()
		}
		o.Generation, o.CreationTimestamp, o.Status = 1, metav1.NewTime(clock.Now().Add(time.Duration(i)*time.Second)), status
		objects[i] = o
	}
	writes = new(int)
	c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(objects...).WithStatusSubresource(&v1alpha1.TriageOperation{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, resource string,
			object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			*writes++
			return c.SubResource(resource).Patch(ctx, object, patch, options...)
		}}).Build()
	return &Reconciler{Base: reconcile.Base{Clock: clock, Client: c, Live: c, Recorder: &events.FakeRecorder{}}}, writes
}

// inPhase stores a committed operation "m" that selected the entries an hour ago, its one part, and the objects. It
// returns a reconciler, with its clock and the operation; the calls change what the reconciler's client does.
func inPhase(t *testing.T, phase v1alpha1.OperationPhase, entries []rules.Entry, calls interceptor.Funcs,
	objects ...client.Object) (*Reconciler, *clocktesting.FakeClock, *v1alpha1.TriageOperation) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	operation := builder.TriageOperation("m", "G1").In("org-acme").Committed().Build()
	selected := v1alpha1.NewTime(clock.Now().Add(-time.Hour))
	operation.Generation = 1 // with 0, each reconcile would write the status
	operation.Status = v1alpha1.TriageOperationStatus{Phase: phase, SelectedAt: &selected, Parts: 1}
	parts, _, err := rules.Parts(operation, entries)
	harness.Must(t, err)
	c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithStatusSubresource(operation).
		WithObjects(append(objects, operation, parts[0])...).WithInterceptorFuncs(calls).Build()
	return &Reconciler{
		Base: reconcile.Base{Clock: clock, Client: c, Live: c, Recorder: &events.FakeRecorder{}}, local: clock,
		as: func(string) (rest.Interface, error) { return &rest.RESTClient{}, nil },
	}, clock, operation
}

// reconciled reconciles the operation once.
func reconciled(t *testing.T, r *Reconciler, name string) (*v1alpha1.TriageOperation, ctrl.Result) {
	t.Helper()
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "org-acme", Name: name}})
	harness.Must(t, err)
	return stored(t, r, name), result
}

func stored(t *testing.T, r *Reconciler, name string) *v1alpha1.TriageOperation {
	t.Helper()
	o := &v1alpha1.TriageOperation{}
	harness.Must(t, r.Client.Get(t.Context(), client.ObjectKey{Namespace: "org-acme", Name: name}, o))
	return o
}

// ends stores that the operation has failed, and returns it.
func ends(t *testing.T, r *Reconciler, o *v1alpha1.TriageOperation) *v1alpha1.TriageOperation {
	t.Helper()
	ended := o.DeepCopy()
	ended.Status.Phase, ended.Status.CompletedAt = v1alpha1.OperationFailed, now(reconcile.NewScope(o))
	harness.Must(t, r.Client.Status().Update(t.Context(), ended))
	return ended
}

// enqueued returns which operations the change enqueues. Before is nil for a new operation, after for a deleted one.
func enqueued(t *testing.T, r *Reconciler, before, after *v1alpha1.TriageOperation) string {
	t.Helper()
	q := &handlertest.Queue{}
	synctest.Test(t, func(*testing.T) {
		handlertest.Send(r.enqueueNext(), q, before, after)
		<-time.After(2 * gatherDelay)
		synctest.Wait()
	})
	slices.Sort(q.Added)
	return strings.Join(q.Added, ", ")
}

// kubectl does not limit how many there are, and one goroutine serves the events of all organizations.
func TestOperationsThatComeOrEndTogetherCostOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := builder.TriageOperation("waits", "G1").In("org-acme").Build()
		ended := waits.DeepCopy()
		ended.Name, ended.Status.Phase = "ended", v1alpha1.OperationFailed
		lists, q := 0, &handlertest.Queue{}
		r := &Reconciler{Base: reconcile.Base{Client: handlertest.Lists(func(list *v1alpha1.TriageOperationList) {
			lists++
			list.Items = []v1alpha1.TriageOperation{*ended, *waits}
		})}}
		h := r.enqueueNext()
		for range 1000 {
			handlertest.Send(h, q, nil, waits)
			handlertest.Send(h, q, waits, ended)
		}
		<-time.After(2 * gatherDelay)
		synctest.Wait()
		harness.Same(t, "lists", 1, lists)
		harness.Same(t, "the next", []string{"waits in 0s"}, q.Added)
	})
}

// An operation may hold 100 KB, and hundreds may wait.
func TestAnOperationThatWaitsIsStoredOnceAndEnqueuedWhenItsTurnComes(t *testing.T) {
	r, writes := line(t, 3, "", v1alpha1.TriageOperationStatus{})
	last, result := reconciled(t, r, "o-2")
	if last.Status.Phase != v1alpha1.OperationSelecting || result.RequeueAfter < 10*time.Second {
		t.Errorf("its phase is %q, and it is reconciled again after %s", last.Status.Phase, result.RequeueAfter)
	}
	second, _ := reconciled(t, r, "o-1")
	first := stored(t, r, "o-0")
	harness.Same(t, "enqueued when one waits on", "", enqueued(t, r, second, second))
	ended := ends(t, r, first)
	reconciled(t, r, "o-2")
	harness.Same(t, "writes of the two that wait, in three reconciles", 2, *writes)

	harness.Same(t, "enqueued when one has ended", "o-1 in 0s", enqueued(t, r, first, ended))
	harness.Same(t, "enqueued when one that had ended is deleted", "", enqueued(t, r, ended, nil))
	harness.Must(t, r.Client.Delete(t.Context(), second))
	harness.Same(t, "enqueued when one is deleted", "o-2 in 0s", enqueued(t, r, second, nil))
	again := second.DeepCopy()
	again.UID, again.ResourceVersion = "of-another", ""
	again.CreationTimestamp = metav1.NewTime(last.CreationTimestamp.Add(time.Hour))
	harness.Must(t, r.Client.Create(t.Context(), again))
	harness.Same(t, "enqueued when one was deleted and created again unseen", "o-2 in 0s", enqueued(t, r, second, again))
}

func TestAnUndoThatWaitsIsEnqueuedWhenNobodyIsAhead(t *testing.T) {
	r, _ := line(t, 3, "", v1alpha1.TriageOperationStatus{})
	first, preview := stored(t, r, "o-0"), stored(t, r, "o-1")
	preview.Status.Phase = v1alpha1.OperationPreview
	harness.Must(t, r.Client.Status().Update(t.Context(), preview))
	undo := func(name, of string, at time.Time) {
		o := builder.TriageOperation(name, "").Undoes(of).In("org-acme").Build()
		o.CreationTimestamp = metav1.NewTime(at)
		harness.Must(t, r.Client.Create(t.Context(), o))
	}
	undo("of-a-preview", "o-1", preview.CreationTimestamp.Time)
	harness.Same(t, "enqueued when one has ended before an undo", "o-2 in 0s, of-a-preview in 0s", enqueued(t, r, first, ends(t, r, first)))
	last := stored(t, r, "o-2")
	harness.Same(t, "enqueued when the last has ended", "of-a-preview in 0s", enqueued(t, r, last, ends(t, r, last)))

	r, _ = line(t, 1, "", v1alpha1.TriageOperationStatus{})
	undo("of-nothing", "new", stored(t, r, "o-0").CreationTimestamp.Add(-time.Hour))
	created := builder.TriageOperation("new", "G1").In("org-acme").Build()
	created.CreationTimestamp = metav1.NewTime(stored(t, r, "o-0").CreationTimestamp.Add(time.Hour))
	harness.Must(t, r.Client.Create(t.Context(), created))
	harness.Same(t, "enqueued when what an undo names is created", "o-0 in 0s, of-nothing in 0s", enqueued(t, r, nil, created))
}

func TestOnlyACommittedOperationLeavesWhatWasMadeWhileItWaited(t *testing.T) {
	for _, c := range []struct {
		reason, want string
		change       func(*v1alpha1.TriageOperationSpec)
	}{
		{"committed from the beginning", "2 1; 0 0 0 0", func(*v1alpha1.TriageOperationSpec) {}},
		{"what is named is covered", "3 2; 0 0 0 0", func(s *v1alpha1.TriageOperationSpec) {
			s.Select = &v1alpha1.FindingSelection{IDs: []v1alpha1.ResourceName{"f-1", "f-2", "f-new"}}
		}},
		{"a preview shows it first", "3 3; 0 0 0 0", func(s *v1alpha1.TriageOperationSpec) { s.Commit = false }},
	} {
		r, _ := line(t, 0, "", v1alpha1.TriageOperationStatus{})
		operation := builder.TriageOperation("mute", "G1").In("org-acme").Committed().Spec(c.change).Build()
		operation.CreationTimestamp = metav1.NewTime(r.Clock.Now().Add(-time.Hour))
		harness.Must(t, r.Client.Create(t.Context(), operation))
		for name, at := range map[string]time.Time{"f-1": operation.CreationTimestamp.Time, "f-2": r.Clock.Now()} {
			f := builder.Finding(name).In("org-acme").Build()
			f.Spec.RuleID, f.CreationTimestamp = "G1", operation.CreationTimestamp
			f.Status = findingstate.Observe(f, nil, operation.CreationTimestamp.Time)
			f.Spec.Triage, f.Generation = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusActive, By: "ann"}, 2
			f.Status = findingstate.Observe(f, nil, at)
			harness.Must(t, r.Client.Create(t.Context(), f))
		}
		later := builder.Finding("f-new").In("org-acme").Mutate(func(f *v1alpha1.Finding) { f.Spec.RuleID = "G1" }).Build()
		later.CreationTimestamp = metav1.NewTime(r.Clock.Now())
		harness.Must(t, r.Client.Create(t.Context(), later))
		made, _ := reconciled(t, r, "mute")
		harness.Same(t, c.reason+": matched and would change", c.want, counts(made))
	}
}

func TestAnOperationBeyondTheLimitFailsAtOnce(t *testing.T) {
	at := v1alpha1.NewTime(noon)
	failed := v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationFailed, CompletedAt: &at}
	decided := failed
	decided.SelectedAt = &at
	for _, c := range []struct {
		reason string
		status v1alpha1.TriageOperationStatus
		undo   string
		others int
		fails  bool
	}{
		{"as many wait before it as may be kept", v1alpha1.TriageOperationStatus{}, "", rules.MaxOperations, true},
		{"as many undos wait for one that has not ended", v1alpha1.TriageOperationStatus{}, "o-0", rules.MaxOperations, true},
		{"there is room for it after those that wait", v1alpha1.TriageOperationStatus{}, "", rules.MaxOperations - 1, false},
		{"as many previews as may be kept", v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationPreview, SelectedAt: &at},
			"", rules.MaxOperations, true},
		{"as many that failed and may have decided", decided, "", rules.MaxOperations, true},
		{"those that failed without a set do not count", failed, "", rules.MaxOperations, false},
	} {
		r, _ := line(t, c.others, c.undo, c.status)
		mine := builder.TriageOperation("mine", "G1").In("org-acme").Build()
		mine.CreationTimestamp = metav1.NewTime(at.Add(time.Hour))
		harness.Must(t, r.Client.Create(t.Context(), mine))
		s := reconcile.NewScope(mine)
		s.Begin(at.Time)
		harness.Must(t, r.awaitTurn(t.Context(), s))
		harness.Same(t, "fails when "+c.reason, c.fails, mine.Status.CompletedAt != nil)
		if c.fails {
			harness.NoError(t, "make pages of what an earlier operation of its name has done", r.paginate(t.Context(), s))
		}
		mine.Status = v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationPreview, SelectedAt: &at}
		mine.Spec.Commit = true
		harness.Must(t, r.awaitTurn(t.Context(), s))
		harness.Same(t, "its commit fails when "+c.reason, false, mine.Status.CompletedAt != nil)
	}
}

// Else a wrong decision would stand until the oldest operation is removed, and keys cannot delete operations.
func TestAnUndoIsPossibleAtTheLimits(t *testing.T) {
	const operations, parts = 200, 1000
	at := v1alpha1.NewTime(noon)
	for _, c := range []struct {
		reason, undo  string
		others, parts int // of others, and in all
		want          string
	}{
		{"operations beyond the limit", "", operations, 0, "operations: delete some"},
		{"an undo beyond the limit", "o-0", operations, 0, ""},
		{"the last undo", "o-0", 2*operations - 1, 0, ""},
		{"an undo beyond its limit", "o-0", 2 * operations, 0, "operations: delete some"},
		{"parts beyond the limit", "", 1, parts, "parts than allowed: delete some"},
		{"an undo with parts beyond the limit", "o-0", 1, 2*parts - 1, ""},
		{"an undo with parts beyond its limit", "o-0", 1, 2 * parts, "parts than allowed: delete some"},
	} {
		r, _ := line(t, c.others, "", v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationPreview, SelectedAt: &at})
		mine := builder.TriageOperation("mine", "G1").In("org-acme").Spec(
			func(s *v1alpha1.TriageOperationSpec) { s.Undo = v1alpha1.ResourceName(c.undo) }).Build()
		harness.Must(t, r.Client.Create(t.Context(), mine))
		s := reconcile.NewScope(mine)
		s.Begin(at.Time)
		harness.Must(t, r.awaitTurn(t.Context(), s))
		if mine.Status.CompletedAt == nil {
			entry := rules.NewEntry(builder.Finding("f-1").Build())
			harness.Must(t, r.saveSet(t.Context(), s, []selected{{entry: entry}}, c.parts))
		}
		message := v1alpha1.StalledMessage(mine.Status.Conditions)
		if (message == "") != (c.want == "") || !strings.Contains(message, c.want) {
			t.Errorf("%s: the message is %q", c.reason, message)
		}
	}
}

// Each would wait for the other.
func TestUndosOfOneAnotherFail(t *testing.T) {
	r, _ := line(t, 2, "o-0", v1alpha1.TriageOperationStatus{})
	for _, name := range []string{"o-0", "o-1"} {
		o := stored(t, r, name)
		o.Spec.Commit = true
		if name == "o-0" {
			o.Spec.Undo = "o-1"
		}
		harness.Must(t, r.Client.Update(t.Context(), o))
	}
	undo, _ := reconciled(t, r, "o-0")
	harness.Same(t, "the phase of an undo of its undo", v1alpha1.OperationFailed, undo.Status.Phase)

	r, _ = line(t, 4, "o-0", v1alpha1.TriageOperationStatus{})
	for name, undoes := range map[string]v1alpha1.ResourceName{"o-0": "o-1", "o-1": "o-2", "o-2": "o-0", "o-3": "o-0"} {
		o := stored(t, r, name)
		o.Spec.Commit, o.Spec.Undo = true, undoes
		harness.Must(t, r.Client.Update(t.Context(), o))
	}
	undo, _ = reconciled(t, r, "o-3")
	harness.Same(t, "the phase of an undo of one in a circle", v1alpha1.OperationSelecting, undo.Status.Phase)
	for _, name := range []string{"o-0", "o-2", "o-1", "o-3"} {
		undo, _ = reconciled(t, r, name)
		harness.Same(t, "the phase in a circle of three: "+name, v1alpha1.OperationFailed, undo.Status.Phase)
	}
	ready := v1alpha1.FindCondition(stored(t, r, "o-0").Status.Conditions, v1alpha1.ConditionReady)
	harness.Contains(t, "the message, which names the next in the circle", ready.Message, `"o-1" undoes "o-2"`)

	r, _ = line(t, 1, "o-0", v1alpha1.TriageOperationStatus{})
	o := stored(t, r, "o-0")
	o.Spec.Commit = true
	harness.Must(t, r.Client.Update(t.Context(), o))
	undo, _ = reconciled(t, r, "o-0")
	harness.Same(t, "the phase of an undo of itself", v1alpha1.OperationFailed, undo.Status.Phase)
}

// Else one finding that nobody thought of would keep all later operations of the organization waiting.
func TestASelectionThatPanicsFailsAfterAWhile(t *testing.T) {
	r, _ := line(t, 1, "", v1alpha1.TriageOperationStatus{})
	clock := clocktesting.NewFakeClock(noon)
	r.local = clock
	harness.Must(t, r.Client.Create(t.Context(), builder.Finding("f-1").In("org-acme").Mutate(
		func(f *v1alpha1.Finding) { f.Spec.RuleID = "G1" }).Build()))
	r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			panic("a part that nobody thought of")
		},
	})
	var logged strings.Builder
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, line string) { logged.WriteString(line) }, funcr.Options{}))
	_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "org-acme", Name: "o-0"}})
	first := stored(t, r, "o-0").Status
	why := v1alpha1.FindCondition(first.Conditions, v1alpha1.ConditionReady).Message
	if err == nil || first.Phase != v1alpha1.OperationSelecting || first.Matched != 0 ||
		!strings.Contains(why, "panic: a part that") || !strings.Contains(logged.String(), "selection.go") {
		t.Errorf("got %v and %+v, and logged %q", err, first, logged.String())
	}
	clock.Step(reconcile.RefusalPatience + time.Second)
	failed, _ := reconciled(t, r, "o-0")
	harness.Same(t, "the reason", v1alpha1.ReasonSelectionFailed, conditions.ReadyReason(failed.Status.Conditions))
	harness.Same(t, "those whose turn it is", 0, len(queued([]v1alpha1.TriageOperation{*failed})))
}

// Once it has decided about anything it must be Running in any case: else it could fail as Expired, and nothing undoes
// that.
func TestAnOperationDecidesOnlyOnceItIsStoredThatItRuns(t *testing.T) {
	entries := []rules.Entry{rules.NewEntry(builder.Finding("f-1").Build())}
	r, _, operation := inPhase(t, v1alpha1.OperationPreview, entries, interceptor.Funcs{SubResourcePatch: func(
		context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		return errors.New("the controllers end before they store the status")
	}})
	r.as = func(string) (rest.Interface, error) { return nil, errors.New("no decision is expected") }
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(operation)})
	harness.ErrorContains(t, "a reconcile that stores no status", err, "the controllers end before they store")
	part := &v1alpha1.TriageOperationPart{}
	harness.Must(t, r.Live.Get(t.Context(), client.ObjectKey{Namespace: "org-acme", Name: "m-000"}, part))
	if part.Spec.Begun {
		t.Errorf("it has begun although it is not stored that it runs: %v", err)
	}
}

// Its decisions carry only its name, and whoever committed it may delete it before they are observed.
func TestTheAuditLogNamesWhoCommittedAnOperationBeforeItDecides(t *testing.T) {
	entries := []rules.Entry{rules.NewEntry(builder.Finding("f-1").Build())}
	var lines []string
	r, _, _ := inPhase(t, v1alpha1.OperationPreview, entries, interceptor.Funcs{SubResourcePatch: func(
		context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		harness.Same(t, "lines before it is stored that it runs", 1, len(lines))
		return errors.New("the controllers end before they store the status")
	}})
	r.audit = funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
	before := stored(t, r, "m")
	before.Spec.By, before.Spec.CommittedBy = "ann", "bob"
	harness.Must(t, r.Client.Update(t.Context(), before))
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(before)})
	harness.ErrorContains(t, "a reconcile that stores no status", err, "the controllers end before they store")
	harness.Contains(t, "the audit log", strings.Join(lines, ""),
		`"organization":"acme"`, `"triageOperation":"m"`, `"createdBy":"ann"`, `"committedBy":"bob"`)
}

func TestAPanicIsLoggedWithItsStack(t *testing.T) {
	entries := []rules.Entry{rules.NewEntry(builder.Finding("f-1").Build())}
	r, _, operation := inPhase(t, v1alpha1.OperationRunning, entries, interceptor.Funcs{})
	r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
			options ...client.GetOption) error {
			if _, is := into.(*v1alpha1.Finding); is {
				panic("no such finding")
			}
			return c.Get(ctx, key, into, options...)
		},
	})
	var logged strings.Builder
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, line string) { logged.WriteString(line) }, funcr.Options{}))
	err := r.workThroughPart(ctx, reconcile.NewScope(operation))
	if err == nil || !strings.Contains(logged.String(), "work.go") {
		t.Errorf("got %v, and logged %q", err, logged.String())
	}
}

func TestARefusedWriteOfAPartIsShown(t *testing.T) {
	f := builder.Finding("f-1").In("org-acme").Build()
	entry := rules.NewEntry(f)
	entry.Unknown = true // nothing is written to it
	freeze := webhookerrors.ToStatusErr("freeze.example.org", &metav1.Status{Code: http.StatusConflict})
	for member, then := range map[string]v1alpha1.OperationPhase{
		"begun":    v1alpha1.OperationFailed,
		"outcomes": v1alpha1.OperationRunning, // as failed, it could not be undone
	} {
		r, clock, operation := inPhase(t, v1alpha1.OperationRunning, []rules.Entry{entry}, interceptor.Funcs{Patch: func(
			ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			options ...client.PatchOption) error {
			if data, err := patch.Data(object); err != nil || strings.Contains(string(data), member) {
				return errors.Join(err, freeze)
			}
			return c.Patch(ctx, object, patch, options...)
		}}, f.DeepCopy())
		operation.Status.Changed = 1
		harness.Must(t, r.Client.Status().Update(t.Context(), operation))
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(operation)})
		ready := v1alpha1.FindCondition(stored(t, r, "m").Status.Conditions, v1alpha1.ConditionReady)
		if err == nil || ready == nil || !strings.Contains(ready.Message, `"record the progress of part m-000: admission webhook`) {
			t.Errorf("%s: the error is %v, and Ready is %+v", member, err, ready)
		}
		clock.Step(reconcile.RefusalPatience + time.Second)
		_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(operation)})
		status := stored(t, r, "m").Status
		harness.Same(t, "the phase once "+member+" is refused for long", then, status.Phase)
		harness.Same(t, member+": the parts done", int32(0), status.DoneParts)
		message := v1alpha1.FindCondition(status.Conditions, v1alpha1.ConditionReady).Message
		if then == v1alpha1.OperationFailed && !strings.Contains(message, "an undo restores it") {
			t.Errorf("it has changed a finding, and Ready is %q", message)
		}
		_, kept := r.memories.Load(client.ObjectKeyFromObject(operation))
		harness.Same(t, member+": the part is remembered", then == v1alpha1.OperationRunning, kept)
	}
}

// Else the status shows "not recorded" for findings whose reasons are known.
func TestTheReasonsAreShownThoughAWriteAfterTheDecisionsFailed(t *testing.T) {
	f := builder.Finding("f-1").In("org-acme").Build()
	entry := rules.NewEntry(f)
	entry.Unknown = true // nothing is written to it
	for _, lost := range []string{"the answer to the outcomes", "the status", "the answer to the status"} {
		lose := func(where string) (err error) {
			if lost == where {
				lost, err = "", io.ErrUnexpectedEOF
			}
			return err
		}
		r, _, operation := inPhase(t, v1alpha1.OperationRunning, []rules.Entry{entry}, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
				options ...client.PatchOption) error {
				data, err := patch.Data(object)
				if err = errors.Join(err, c.Patch(ctx, object, patch, options...)); strings.Contains(string(data), "outcomes") {
					err = errors.Join(err, lose("the answer to the outcomes"))
				}
				return err
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch,
				options ...client.SubResourcePatchOption) error {
				if err := lose("the status"); err != nil {
					return err
				}
				err := c.SubResource(sub).Patch(ctx, object, patch, options...)
				return errors.Join(err, lose("the answer to the status"))
			},
		}, f.DeepCopy())
		key := client.ObjectKeyFromObject(operation)
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v", err)
		}
		if kept := stored(t, r, "m"); kept.Status.CompletedAt != nil {
			kept.Spec.Commit = false // else pages are made, for which an API server is needed
			harness.Must(t, r.Client.Update(t.Context(), kept))
		}
		ended, _ := reconciled(t, r, "m")
		harness.Same(t, "outcomes", "0 0; 0 0 0 1", counts(ended))
		if why := ended.Status.Failures[0].Message; why == reasonOrUnknown("") {
			t.Errorf("it failed because %q", why)
		}
		_, kept := r.memories.Load(key)
		harness.Same(t, "the part of an ended operation is remembered", false, kept)
	}
}

func TestWhatIsRefusedFailsOnlyAfterAWhile(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	r := &Reconciler{local: clock}
	mine, other := builder.TriageOperation("m", "G1").Build(), builder.TriageOperation("o", "G1").Build()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "findings"}, "f-1", errors.New("a rule of somebody else's"))
	if _, err := r.outcomeOf(mine, forbidden); err == nil {
		t.Error("it failed at once: a starting API server knows no roles")
	}
	clock.Step(reconcile.RefusalPatience + time.Second)
	if came, err := r.outcomeOf(mine, harness.ProxyRefusal(http.StatusNotFound, http.MethodPatch)); err == nil {
		t.Errorf("%v by the 404 of a proxy, which does not know the finding", came)
	}
	chosenByAWebhook := webhookerrors.ToStatusErr("hold.example.org", &metav1.Status{Reason: metav1.StatusReasonAlreadyExists})
	for _, refused := range []error{forbidden, chosenByAWebhook} {
		if came, err := r.outcomeOf(mine, refused); err != nil || came.outcome != rules.Failed {
			t.Errorf("after %s: %v, %v", reconcile.RefusalPatience, came, err)
		}
	}
	if _, err := r.outcomeOf(other, forbidden); err == nil {
		t.Error("another operation's patience is over as well")
	}
}

// An interrupted part leaves alone what a scan has changed since the selection. An error about one finding must not
// lead to that.
func TestWhatARuleRefusesKeepsNothingElseFromBeingDecided(t *testing.T) {
	for code, later := range map[int]int{
		// A policy or webhook chooses the code of its refusal.
		http.StatusForbidden:                  http.StatusForbidden,
		http.StatusUnauthorized:               http.StatusUnauthorized,
		http.StatusMethodNotAllowed:           http.StatusMethodNotAllowed,
		http.StatusUnavailableForLegalReasons: http.StatusUnavailableForLegalReasons,
		http.StatusConflict:                   http.StatusConflict,
		http.StatusNotFound:                   http.StatusNotFound,
		// A webhook may choose that of an outage.
		denied + http.StatusGone:               denied + http.StatusGone,
		denied + http.StatusTooManyRequests:    denied + http.StatusTooManyRequests,
		denied + http.StatusServiceUnavailable: denied + http.StatusServiceUnavailable,
		// No refusal: it is over by the next run.
		http.StatusTooManyRequests:     http.StatusForbidden,
		http.StatusInternalServerError: http.StatusForbidden,
		noAnswer:                       http.StatusForbidden,
		proxied + http.StatusConflict:  http.StatusForbidden,
		// A fault of the controllers is repeated, too.
		panics: panics,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) { checkOthersAreDecided(t, code, later) })
	}
}

// In place of codes.
const (
	// noAnswer stands for a connection that ends without an answer.
	noAnswer = -iota
	// panics stands for a fault of the controllers.
	panics
	// denied is added to a code that a webhook chose.
	denied = 1000
	// proxied is added to a code with which a proxy answers in place of the API server.
	proxied = 2000
)

// checkOthersAreDecided lets the API server answer code to all writes of an operation's first run except the last, and
// later to the writes of later runs.
func checkOthersAreDecided(t *testing.T, code, later int) {
	t.Helper()
	entries, objects := []rules.Entry{}, []client.Object{}
	var last *v1alpha1.Finding
	for i := range maxAtOnce + 1 { // the last one is tried after a refusal
		last = builder.Finding(fmt.Sprintf("f-%d", i)).In("org-acme").Build()
		entries, objects = append(entries, rules.NewEntry(last)), append(objects, last)
	}
	last.SetGeneration(2) // after a scan
	decision := testenv.MergePatch(`{"spec":{"triage":{"userStatus":"muted","by":"operation/m"}}}`)
	r, clock, operation := inPhase(t, v1alpha1.OperationRunning, entries, interceptor.Funcs{}, objects...)
	writer, err := kube.NewClient(&rest.Config{Host: "http://nowhere.invalid", Transport: harness.RoundTripper(
		func(q *http.Request) (*http.Response, error) {
			answer := httptest.NewRecorder()
			answer.Header().Set("Content-Type", "application/json")
			err, f := q.Context().Err(), builder.Finding(path.Base(q.URL.Path)).In("org-acme").Build()
			switch {
			case err != nil:
			case q.Method == http.MethodGet:
				err = errors.Join(r.Client.Get(q.Context(), client.ObjectKeyFromObject(f), f), json.NewEncoder(answer).Encode(f))
			case f.Name == last.Name:
				err = errors.Join(r.Client.Patch(q.Context(), f, decision), json.NewEncoder(answer).Encode(f))
			case code == noAnswer:
				err = io.ErrUnexpectedEOF
			case code == panics:
				panic("a finding that nobody thought of")
			case code > proxied:
				answer.Header().Set("Content-Type", "text/plain")
				answer.WriteHeader(code - proxied)
			case code > denied, code == http.StatusConflict, code == http.StatusNotFound:
				message := "a rule refuses it"
				if code > denied {
					message = `admission webhook "hold.example.org" denied the request: a legal hold`
				}
				answer.WriteHeader(code % denied)
				_, err = fmt.Fprintf(answer, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": %d, "message": %q}`,
					code%denied, message)
			default:
				answer.WriteHeader(code)
			}
			return answer.Result(), err
		})})
	harness.Must(t, err)
	r.as = func(string) (rest.Interface, error) { return writer, nil }
	for _, code = range []int{code, later} {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(operation)}); err == nil {
			t.Errorf("no error after code %d: it may be that of a starting API server", code)
		}
	}
	clock.Step(reconcile.RefusalPatience + time.Second)
	ended, _ := reconciled(t, r, operation.Name)
	harness.Same(t, "outcomes", fmt.Sprintf("0 0; 1 0 0 %d", maxAtOnce), counts(ended))
	if why := ended.Status.Failures[0].Message; code == http.StatusNotFound && !strings.HasPrefix(why, "each of 10 writes of finding") {
		t.Errorf("it failed because %q", why)
	}
}

// What it decides could not be undone, and the next operation begins.
func TestAnOperationThatIsDeletedStopsWithinAPart(t *testing.T) {
	for name, c := range map[string]struct {
		finalizers     []string
		again, refused bool
	}{
		"it is gone":                            {},
		"it waits for its parts to go":          {finalizers: []string{metav1.FinalizerDeleteDependents}},
		"another one of its name was created":   {again: true},
		"it is gone while its writes fail":      {refused: true},
		"it waits, and its writes fail as well": {finalizers: []string{metav1.FinalizerDeleteDependents}, refused: true},
	} {
		entries, objects := []rules.Entry{}, []client.Object{}
		for i := range 3 * maxAtOnce {
			f := builder.Finding(fmt.Sprintf("f-%d", i)).In("org-acme").Build()
			entries, objects = append(entries, rules.NewEntry(f)), append(objects, f)
		}
		noStatus := interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch,
			...client.SubResourcePatchOption) error {
			t.Errorf("%s: its status was written", name)
			return nil
		}}
		r, _, operation := inPhase(t, v1alpha1.OperationRunning, entries, noStatus, objects...)
		operation.Finalizers = c.finalizers
		harness.Must(t, r.Client.Update(t.Context(), operation))
		remove := func() error {
			err := r.Client.Delete(t.Context(), operation.DeepCopy())
			if another := operation.DeepCopy(); err == nil && c.again {
				another.UID, another.ResourceVersion = "another", ""
				err = r.Client.Create(t.Context(), another)
			}
			return err
		}
		var writes atomic.Int32
		removed := make(chan struct{})
		writer, err := kube.NewClient(&rest.Config{Host: "http://nowhere.invalid", Transport: harness.RoundTripper(
			func(q *http.Request) (*http.Response, error) {
				writes.Add(1)
				answer, f := httptest.NewRecorder(), builder.Finding(path.Base(q.URL.Path)).In("org-acme").Build()
				answer.Header().Set("Content-Type", "application/json")
				err := json.NewEncoder(answer).Encode(f)
				if f.Name == "f-0" {
					err = errors.Join(err, remove())
					close(removed)
				}
				<-removed
				if c.refused { // the error of f-0 comes before those of the findings that are not written
					err = errors.Join(err, io.ErrUnexpectedEOF)
				}
				return answer.Result(), err
			})})
		harness.Must(t, err)
		r.as = func(string) (rest.Interface, error) { return writer, nil }
		_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(operation)})
		if got := writes.Load(); err != nil || got == 0 || got > maxAtOnce {
			t.Errorf("%s: %d writes of %d, and the error is %v", name, got, len(entries), err)
		}
	}
}

// A new leader's cache may show an operation for a minute after an outage, while people already delete what is wrong.
func TestAnOperationThatOnlyTheCacheShowsDecidesNothing(t *testing.T) {
	for reason, change := range map[string]func(*v1alpha1.TriageOperation) error{
		"it is gone": func(*v1alpha1.TriageOperation) error {
			return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("triageoperations").GroupResource(), "m")
		},
		"it waits for its parts to go":        func(o *v1alpha1.TriageOperation) error { o.DeletionTimestamp = new(metav1.Now()); return nil },
		"another one of its name was created": func(o *v1alpha1.TriageOperation) error { o.UID = "another"; return nil },
	} {
		for _, begun := range []bool{false, true} {
			f := builder.Finding("f-1").In("org-acme").Build()
			r, _, operation := inPhase(t, v1alpha1.OperationRunning, []rules.Entry{rules.NewEntry(f)}, interceptor.Funcs{}, f)
			if begun {
				part := &v1alpha1.TriageOperationPart{}
				part.Namespace, part.Name = "org-acme", rules.PartName("m", 0)
				harness.Must(t, r.Client.Patch(t.Context(), part, testenv.MergePatch(`{"spec":{"begun":true}}`)))
			}
			server := r.Client.(client.WithWatch)
			r.Live = interceptor.NewClient(server, interceptor.Funcs{Get: func(ctx context.Context, from client.WithWatch,
				key client.ObjectKey, into client.Object, options ...client.GetOption) error {
				err := from.Get(ctx, key, into, options...)
				if o, is := into.(*v1alpha1.TriageOperation); is && err == nil {
					err = change(o)
				}
				return err
			}})
			r.Client = interceptor.NewClient(server, interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
					t.Errorf("%s, begun %t: %s was written", reason, begun, object.GetName())
					return nil
				},
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					t.Errorf("%s, begun %t: its status was written", reason, begun)
					return nil
				},
			})
			r.as = func(string) (rest.Interface, error) {
				t.Errorf("%s, begun %t: it goes on to the findings", reason, begun)
				return nil, errors.New("cut")
			}
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(operation)})
			harness.Must(t, err)
		}
	}
}

// An operation that was previewed an hour ago must survive an outage: scans have changed many of its findings since.
func TestAfterAnOutageOnlyWhatHasChangedSinceTheWriteIsLeft(t *testing.T) {
	entries, objects, findings := []rules.Entry{}, []client.Object{}, map[string]*v1alpha1.Finding{}
	// As many as are written at a time come before the one that the second run does not reach.
	for _, name := range []string{"f-same", "f-scanned", "f-3", "f-4", "f-unread"} {
		f := builder.Finding(name).In("org-acme").Build()
		f.Generation, f.Spec.Evidence = 1, "message.code"
		entries = append(entries, rules.NewEntry(f))
		f.Generation = 2 // after a scan
		objects, findings[name] = append(objects, f), f
	}
	down, unread := true, true
	r, _, operation := inPhase(t, v1alpha1.OperationRunning, entries, interceptor.Funcs{Get: func(ctx context.Context,
		c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
		if unread && key.Name == "f-unread" {
			return errors.New("the cache has not seen it yet")
		}
		return c.Get(ctx, key, into, options...)
	}}, objects...)
	writer, err := kube.NewClient(&rest.Config{Host: "http://nowhere.invalid", Transport: harness.RoundTripper(
		func(q *http.Request) (*http.Response, error) {
			if down {
				return nil, io.ErrUnexpectedEOF
			}
			answer, f := httptest.NewRecorder(), &v1alpha1.Finding{}
			answer.Header().Set("Content-Type", "application/json")
			err := r.Client.Get(q.Context(), client.ObjectKey{Namespace: "org-acme", Name: path.Base(q.URL.Path)}, f)
			err = errors.Join(err, json.NewEncoder(answer).Encode(f))
			return answer.Result(), err
		})})
	harness.Must(t, err)
	r.as = func(string) (rest.Interface, error) { return writer, nil }
	for range 2 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(operation)}); err == nil {
			t.Error("no error while the API server does not answer")
		}
		unread = false
	}
	for _, name := range []string{"f-scanned", "f-unread"} {
		findings[name].Generation = 3
		harness.Must(t, r.Client.Update(t.Context(), findings[name]))
	}
	down = false
	ended, _ := reconciled(t, r, "m")
	harness.Same(t, "outcomes", "0 0; 4 0 1 0", counts(ended))
	harness.Same(t, "the one that is left", "f-scanned", string(ended.Status.Conflicts[0].Finding))
	part := &v1alpha1.TriageOperationPart{}
	harness.Must(t, r.Live.Get(t.Context(), client.ObjectKey{Namespace: "org-acme", Name: "m-000"}, part))
	decided, err := rules.Decode(part)
	harness.Must(t, err)
	var generations []int64
	for _, entry := range decided {
		generations = append(generations, entry.Generation)
	}
	harness.Same(t, "generations that it has decided on, or selected", []int64{2, 1, 2, 2, 3}, generations)
}

// Two organizations whose webhooks hang would else keep both workers from all others.
func TestAPartWhoseWritesHangLeavesTimeToStoreWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entries, objects := []rules.Entry{}, []client.Object{}
		for i := range 500 {
			f := builder.Finding(fmt.Sprintf("f-%d", i)).In("org-acme").Build()
			entries, objects = append(entries, rules.NewEntry(f)), append(objects, f)
		}
		r, local, operation := inPhase(t, v1alpha1.OperationRunning, entries, interceptor.Funcs{}, objects...)
		hang := true
		writer, err := kube.NewClient(&rest.Config{Host: "http://nowhere.invalid", Transport: harness.RoundTripper(
			func(q *http.Request) (*http.Response, error) {
				switch {
				case !hang:
					<-time.After(time.Second)
					answer := httptest.NewRecorder()
					answer.WriteHeader(http.StatusForbidden)
					return answer.Result(), nil
				case path.Base(q.URL.Path) == "f-0":
					return nil, errors.New("the first failure")
				}
				<-q.Context().Done()
				return nil, q.Context().Err()
			})})
		harness.Must(t, err)
		r.Clock, r.as = clock.RealClock{}, func(string) (rest.Interface, error) { return writer, nil }
		began, request := time.Now(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(operation)}
		_, err = r.Reconcile(t.Context(), request)
		why := v1alpha1.FindCondition(stored(t, r, "m").Status.Conditions, v1alpha1.ConditionReady).Message
		if took := time.Since(began); took > 110*time.Second || err == nil || !strings.Contains(why, "the first failure") {
			t.Errorf("after %s: %v, Ready: %s", took, err, why)
		}

		// A second for each refusal: one run cannot give up a whole part.
		hang = false
		if _, err = r.Reconcile(t.Context(), request); err == nil {
			t.Error("it gave up at once")
		}
		local.Step(reconcile.RefusalPatience + time.Second)
		if _, err = r.Reconcile(t.Context(), request); err == nil {
			t.Error("a run took longer than it may")
		}
		ended, _ := reconciled(t, r, "m")
		harness.Same(t, "outcomes", "0 0; 0 0 0 500", counts(ended))
	})
}

func TestASetThatIsRefusedFailsOnlyAfterAWhile(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	parts := schema.GroupResource{Resource: "triageoperationparts"}
	refusal := apierrors.NewForbidden(parts, "m-000", errors.New("exceeded quota"))
	denial := func(code int32, reason metav1.StatusReason) *apierrors.StatusError {
		return webhookerrors.ToStatusErr("hold.example.org", &metav1.Status{Code: code, Reason: reason})
	}
	correction := apierrors.NewConflict(parts, "m-000", errors.New("another leader has corrected it"))
	refusing := interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refusal },
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewNotFound(parts, "m-000")
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return correction
		},
	})
	r := &Reconciler{Base: reconcile.Base{Client: refusing, Live: refusing}, local: clock}
	s := reconcile.NewScope(builder.TriageOperation("m", "G1").Build())
	s.Begin(clock.Now())
	set := []selected{{entry: rules.NewEntry(builder.Finding("f-1").Build())}}
	if err := r.saveSet(t.Context(), s, set, 0); err == nil || s.Status.Phase == v1alpha1.OperationFailed {
		t.Error("it failed at once: a quota may be raised")
	}
	clock.Step(reconcile.RefusalPatience + time.Second)
	if err := r.saveSet(t.Context(), s, set, 0); err != nil || s.Status.Phase != v1alpha1.OperationFailed {
		t.Errorf("after %s: %v, phase %q", reconcile.RefusalPatience, err, s.Status.Phase)
	}
	for _, refusal = range []*apierrors.StatusError{
		denial(http.StatusConflict, ""), denial(http.StatusNotFound, ""), denial(0, metav1.StatusReasonAlreadyExists),
	} {
		s.Status.Phase = ""
		if err := r.saveSet(t.Context(), s, set, 0); err != nil || s.Status.Phase != v1alpha1.OperationFailed {
			t.Errorf("refused with %v: %v, phase %q", refusal, err, s.Status.Phase)
		}
	}
	s.Status.Phase, refusal = "", apierrors.NewAlreadyExists(parts, "m-000")
	if err := r.saveSet(t.Context(), s, set, 0); !apierrors.IsNotFound(err) || s.Status.Phase == v1alpha1.OperationFailed {
		t.Errorf("a part that was in its way has been removed: %v, phase %q", err, s.Status.Phase)
	}
	// The stored part differs, and is corrected.
	r.Live = handlertest.Gets(func(client.ObjectKey, client.Object) error { return nil })
	if err := r.saveSet(t.Context(), s, set, 0); !apierrors.IsConflict(err) || s.Status.Phase == v1alpha1.OperationFailed {
		t.Errorf("another leader has corrected it: %v, phase %q", err, s.Status.Phase)
	}
	correction = denial(http.StatusConflict, "")
	if err := r.saveSet(t.Context(), s, set, 0); err != nil || s.Status.Phase != v1alpha1.OperationFailed {
		t.Errorf("a webhook answers the correction with a conflict: %v, phase %q", err, s.Status.Phase)
	}
}

// A starting API server refuses once before an outage, and once after it.
func TestOnlyRefusalsInARowCountTowardsPatience(t *testing.T) {
	parts := schema.GroupResource{Resource: "triageoperationparts"}
	refusal := apierrors.NewForbidden(parts, "o-0-000", errors.New("not yet ready to handle request"))
	for reason, c := range map[string]struct {
		meanwhile  error
		standAside bool
		phase      v1alpha1.OperationPhase
	}{
		"refused all the time": {refusal, false, v1alpha1.OperationFailed},
		"an outage between":    {errors.New("connection refused"), false, v1alpha1.OperationSelecting},
		"it stood aside":       {refusal, true, v1alpha1.OperationSelecting},
	} {
		r, _ := line(t, 1, "", v1alpha1.TriageOperationStatus{})
		clock, answer := clocktesting.NewFakeClock(r.Clock.Now()), error(refusal)
		r.local = clock
		r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{Create: func(ctx context.Context,
			c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, isPart := object.(*v1alpha1.TriageOperationPart); isPart {
				return answer
			}
			return c.Create(ctx, object, options...)
		}})
		harness.Must(t, r.Client.Create(t.Context(), builder.Finding("f-1").In("org-acme").Mutate(
			func(f *v1alpha1.Finding) { f.Spec.RuleID = "G1" }).Build()))
		older := builder.TriageOperation("older", "G1").In("org-acme").Build()
		for _, want := range []error{refusal, c.meanwhile, refusal} {
			answer = want
			_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "org-acme", Name: "o-0"}})
			switch {
			case !c.standAside:
			case older.ResourceVersion == "":
				harness.Must(t, r.Client.Create(t.Context(), older))
			default:
				harness.Must(t, client.IgnoreNotFound(r.Client.Delete(t.Context(), older)))
			}
			clock.Step(reconcile.RefusalPatience * 3 / 4)
		}
		harness.Same(t, "the phase when "+reason, c.phase, stored(t, r, "o-0").Status.Phase)
	}
}
