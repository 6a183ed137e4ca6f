package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// If somebody commits an operation while another user is still being asked, it must run, and can be undone.
func TestOnlyWhatNobodyHasCommittedIsDiscarded(t *testing.T) {
	for reason, tc := range map[string]struct {
		commits, stays bool
		spec           string
	}{
		"nobody has committed it":                {spec: `{}`},
		"somebody has":                           {spec: `{"commit":true}`, stays: true},
		"somebody does as it is being discarded": {spec: `{}`, commits: true, stays: true},
	} {
		write := func(c client.Client, spec string) {
			o := builder.TriageOperation("mute", "G1").In("org-acme").Build()
			harness.Must(t, c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))))
		}
		var once sync.Once
		c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if tc.commits {
					once.Do(func() { write(c, `{"commit":true}`) })
				}
				return c.Delete(ctx, o, options...)
			},
		}).WithObjects(builder.TriageOperation("mute", "G1").In("org-acme").Build()).Build()
		seen := builder.TriageOperation("mute", "G1").In("org-acme").Build()
		write(c, tc.spec)
		err := (&operating{session: &session{client: c, namespace: "org-acme"}, name: seen.Name}).discard(t.Context(), false)
		if (err != nil) != tc.stays || err != nil && !strings.Contains(err.Error(), "it is committed") {
			t.Errorf("%s: %v", reason, err)
		}
		gone := apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(seen), &v1alpha1.TriageOperation{}))
		if gone == tc.stays {
			t.Errorf("%s: it is gone: %t", reason, gone)
		}
	}
}

// As when the token expires while the user is asked.
func TestAnOperationThatCannotBeReadSaysWhatToDo(t *testing.T) {
	w := waiting(apierrors.NewUnauthorized("Unauthorized"))
	w.session.config = &rest.Config{Host: "https://here"}
	_, err := w.propose(t.Context())
	harness.ErrorContains(t, "the preview", err, "operation mute: Unauthorized\nThe API server https://here does not accept these credentials: log in again")
	harness.ErrorContains(t, "after the commit", w.finish(t.Context()), "operation mute: Unauthorized\nThe API server https://here does not accept these credentials: log in again",
		"\nThe operation continues in the cluster.\n")
	harness.ErrorContains(t, "the deletion", w.discard(t.Context(), false), "may be left behind",
		"It decides nothing, and is removed after a day; to delete it at once: kubectl delete triageoperation mute -n org-acme")
}

func TestAnotherOperationOfTheNameIsNotDiscarded(t *testing.T) {
	theirs := builder.TriageOperation("mute", "G1").In("org-acme").Build()
	theirs.UID = "theirs"
	c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(theirs).Build()
	w := &operating{session: &session{client: c, namespace: "org-acme"}, name: "mute", uid: "mine"}
	harness.Must(t, w.discard(t.Context(), false))
	err := w.discard(t.Context(), true)
	harness.ErrorContains(t, "a commit without an answer", err, "it is not known whether operation mute was committed before it was deleted")
	harness.NoError(t, "the other operation", c.Get(t.Context(), client.ObjectKeyFromObject(theirs), &v1alpha1.TriageOperation{}))
}

func TestWhatHasUndoneAnOperation(t *testing.T) {
	operations := fake.NewClientBuilder().WithScheme(testenv.NewScheme())
	for undo, undone := range map[string]string{
		"undo-a": "mute", "undo-b": "undo-a", "undo-m": "mute", "undo-y": "undo-z", "undo-z": "mute",
	} {
		o := builder.TriageOperation(undo, "").In("org-acme").Undoes(undone).Build()
		o.Status = v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationCompleted, Changed: 1}
		operations.WithObjects(o)
	}
	s := &session{client: operations.Build(), namespace: "org-acme"}
	for undo, want := range map[string]string{"mute": "undo-m", "undo-z": "undo-y", "undo-m": ""} {
		harness.Same(t, undo, want, (&operating{session: s, triageOptions: &triageOptions{undo: undo}}).undoneBy(t.Context()))
	}
	for wouldChange, want := range map[int32]string{0: "mute was undone already by undo-m\n", 1: ""} {
		w, says := waiting(), &bytes.Buffer{}
		w.undo, w.dryRun, w.streams.ErrOut, w.summary = "mute", dryRunClient, says, &bulkSummary{Unchanged: []string{"f"}}
		o := builder.TriageOperation("undo-c", "").In("org-acme").Undoes("mute").Build()
		o.Status = v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationPreview, Matched: 1, WouldChange: wouldChange}
		harness.Must(t, s.client.Create(t.Context(), o))
		w.session, w.name, w.operation = s, o.Name, o.DeepCopy()
		_, err := w.propose(t.Context())
		harness.Must(t, s.client.Delete(t.Context(), o))
		harness.Must(t, err)
		harness.Same(t, "standard error", want, says.String())
	}
}

var down = apierrors.NewServiceUnavailable("it restarts")

// waiting is a command that waits for a committed operation. Its reads of the operation return the outcomes one after
// another, the last one again and again; a string is why it is not ready.
func waiting(outcomes ...any) *operating {
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			outcome := outcomes[0]
			if len(outcomes) > 1 {
				outcomes = outcomes[1:]
			}
			if err, failed := outcome.(error); failed {
				*o.(*v1alpha1.TriageOperation) = v1alpha1.TriageOperation{}
				return err
			}
			status := &o.(*v1alpha1.TriageOperation).Status
			if message, waits := outcome.(string); waits {
				status.Phase = v1alpha1.OperationSelecting
				v1alpha1.SetCondition(&status.Conditions, v1alpha1.Condition{
					Type: v1alpha1.ConditionReady, Status: "False", Reason: v1alpha1.ReasonInProgress, Message: message,
				})
				return nil
			}
			if whole, is := outcome.(v1alpha1.TriageOperationStatus); is {
				*status = whole
				return nil
			}
			status.Phase = outcome.(v1alpha1.OperationPhase)
			return nil
		},
	}).Build()
	return &operating{
		triageOptions: &triageOptions{cli: cli{streams: genericiooptions.NewTestIOStreamsDiscard()}, quiet: true, timeout: time.Hour},
		session:       &session{client: c, namespace: "org-acme"},
		name:          "mute",
		operation:     builder.TriageOperation("mute", "G1").In("org-acme").Build(),
	}
}

func TestTheCommentsOfAnOperationAreShownAsSet(t *testing.T) {
	for want, set := range map[string]v1alpha1.OperationDecision{
		"": {}, "(remove)": {Comments: new("")}, "known": {Comments: new("known")},
	} {
		shown := operationRow(&v1alpha1.TriageOperation{Spec: v1alpha1.TriageOperationSpec{Set: &set}}, time.Now())
		harness.Same(t, "comments", want, shown[len(shown)-1])
	}
}

// The client library replaces a token that was refused, but does not repeat the request.
func TestATokenThatEndsDuringACommandEndsNoWaitAndNoWrite(t *testing.T) {
	expired, tries := apierrors.NewUnauthorized("expired"), 0
	w := waiting(expired, v1alpha1.OperationCompleted)
	w.session.config = &rest.Config{Host: "https://here"}
	harness.NoError(t, "a wait", w.finish(t.Context()))
	harness.NoError(t, "a write", withRetries(t.Context(), func() error {
		if tries++; tries == 1 {
			return expired
		}
		return nil
	}))
}

// A restart of the API server takes a minute; a long operation outlasts many.
func TestAWaitOutlastsManyRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var outcomes []any
		for range 3 {
			outcomes = append(append(outcomes, slices.Repeat([]any{down}, 60)...), v1alpha1.OperationRunning)
		}
		harness.NoError(t, "the end of a completed operation", waiting(append(outcomes, v1alpha1.OperationCompleted)...).finish(t.Context()))
	})
}

func TestAWaitThatFailsSaysWhatTheOperationDoesAndHasDone(t *testing.T) {
	halfWay := v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationFailed, Changed: 500, Matched: 1200}
	const goesOn, changed = "The operation continues in the cluster.", "Before that it changed 500 of 1200 findings."
	const undo = "kubectl findings triage --undo mute -n org-acme"
	const stays, whose = "What it decided before that stays, and cannot be undone.", "@.spec.triage.by=="
	for reason, tc := range map[string]struct {
		outcome any
		says    []string
	}{
		"the API server is gone":        {apierrors.NewServiceUnavailable("it is gone"), []string{goesOn, undo}},
		"the user may not read":         {apierrors.NewForbidden(schema.GroupResource{}, "mute", nil), []string{goesOn, undo}},
		"it is recorded as failed":      {v1alpha1.OperationFailed, nil},
		"it failed after some findings": {halfWay, []string{changed, undo}},
		"somebody has removed it":       {apierrors.NewNotFound(schema.GroupResource{}, "mute"), []string{stays, whose}},
		"its answer is not known":       {errors.New("it cannot be decoded"), []string{goesOn, undo}},
	} {
		var err error
		synctest.Test(t, func(t *testing.T) { err = waiting(tc.outcome).finish(t.Context()) })
		if err == nil {
			t.Errorf("%s: the wait succeeds", reason)
			continue
		}
		if !strings.HasPrefix(err.Error(), "operation mute: ") {
			t.Errorf("%s: it says %q, want which operation", reason, err)
		}
		for _, says := range []string{goesOn, changed, undo, stays, whose} {
			if want := slices.Contains(tc.says, says); strings.Contains(err.Error(), says) != want {
				t.Errorf("%s: it says %q, want %q in it: %t", reason, err, says, want)
			}
		}
	}
}

func TestAWaitEndsWhenAnotherOperationHasTheName(t *testing.T) {
	w := waiting(v1alpha1.OperationCompleted) // without a UID
	w.operation.UID = "mine"
	err := w.finish(t.Context())
	harness.ErrorContains(t, "the wait", err, "another one was created under its name", "What it decided before that stays")
	harness.Same(t, "what is known of it then", v1alpha1.TriageOperationStatus{}, w.operation.Status)
	w.operation.UID = "mine"
	_, err = w.propose(t.Context())
	harness.ErrorContains(t, "the preview", err, "another one was created under its name\nThis command decided nothing: run it again")
}

func TestAWaitSaysOnceWhyItTakesLong(t *testing.T) {
	for quiet, want := range map[bool]string{
		false: "operation mute: An older one comes first.\noperation mute: A write failed.\noperation mute: An older one comes first.\n", true: "",
	} {
		w := waiting("An older one comes first.", "An older one comes first.", "A write failed.", "An older one comes first.",
			v1alpha1.OperationCompleted)
		var says bytes.Buffer
		w.streams.ErrOut, w.quiet = &says, quiet
		synctest.Test(t, func(t *testing.T) { harness.Must(t, w.finish(t.Context())) })
		harness.Same(t, "standard error", want, says.String())
	}
}

func TestAWaitSaysHowFarARunningOperationIs(t *testing.T) {
	w := waiting()
	var says bytes.Buffer
	w.streams.ErrOut, w.quiet = &says, false
	status := &w.operation.Status
	*status = v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationRunning, Matched: 12, Changed: 2, Failed: 1}
	v1alpha1.SetCondition(&status.Conditions, v1alpha1.Condition{
		Type: v1alpha1.ConditionReady, Status: "False", Reason: v1alpha1.ReasonInProgress, Message: "A write failed.",
	})
	w.reportWait()
	harness.Same(t, "standard error", "operation mute, 3 of 12 findings done: A write failed.\n", says.String())
}

func TestAWaitEndsWithItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, begun := waiting(v1alpha1.OperationRunning), time.Now()
		w.timeout = 10 * time.Minute
		err := w.finish(t.Context())
		if err == nil || time.Since(begun) != w.timeout || !strings.HasPrefix(err.Error(), "operation mute: it takes longer than 10m0s\nThe operation continues in the cluster.") {
			t.Errorf("it ends after %s with %v", time.Since(begun), err)
		}
		_, err = w.propose(t.Context())
		harness.ErrorContains(t, "the preview", err, "it takes longer than 10m0s\nNothing was decided: try again, or raise --timeout")
	})
}

// If packets are dropped each read takes half a minute to fail.
func TestAWaitEndsSoonAfterTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, w := time.Now(), waiting(v1alpha1.OperationRunning, down)
		w.session.client = interceptor.NewClient(w.session.client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				err := c.Get(ctx, key, o, options...)
				if err != nil {
					<-time.After(30 * time.Second)
				}
				return err
			},
		})
		err := w.finish(t.Context())
		if after := time.Since(begun); !errors.Is(err, down) || after < time.Minute || after > 2*time.Minute {
			t.Errorf("it ends %s after the last answer, with %v", after, err)
		}
	})
}

// While the API server is away nobody knows whether a controller runs.
func TestOnlyAnOperationThatWasReadIsUnnoticed(t *testing.T) {
	away := slices.Repeat([]any{down}, int(untilNoticed/time.Second)+2)
	for reason, tc := range map[string]struct {
		outcomes  []any
		unnoticed bool
	}{
		"a controller had taken it up": {slices.Concat([]any{v1alpha1.OperationRunning}, away, []any{v1alpha1.OperationPreview}), false},
		"a controller takes it up":     {append(away, v1alpha1.OperationPhase(""), v1alpha1.OperationPreview), false},
		"no controller does":           {[]any{v1alpha1.OperationPhase("")}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			err := waiting(tc.outcomes...).await(t.Context(), func() {}, v1alpha1.OperationPreview)
			if errors.Is(err, errNotNoticed) != tc.unnoticed || !tc.unnoticed && err != nil {
				t.Errorf("%s: %v", reason, err)
			}
		})
	}
}

// The controllers may be newer than the plugin, and able to read it.
func TestAPreviewLeavesOutWhatCannotBeRead(t *testing.T) {
	var entries []rules.Entry
	var listed []unstructured.Unstructured
	for _, name := range []string{"f-good", "f-odd"} {
		f := builder.Finding(name).In("org-acme").Build()
		entries, listed = append(entries, rules.NewEntry(f)), append(listed, stored(t, f))
	}
	listed[1].Object["spec"] = "odd"
	for _, undo := range []string{"", "earlier"} {
		w := waiting()
		if w.undo = undo; undo != "" {
			w.operation.Spec = v1alpha1.TriageOperationSpec{Undo: v1alpha1.ResourceName(undo)}
			for i := range entries {
				entries[i].Set = &v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted}
			}
		}
		parts, _, err := rules.Parts(w.operation, entries)
		harness.Must(t, err)
		var says bytes.Buffer
		w.streams.ErrOut, w.session.errOut, w.summary, w.operation.Status.Parts = &says, &says, &bulkSummary{}, 1
		w.quiet = false
		w.filter.selection.Rule = "G1"
		w.session.client = fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(parts[0]).WithInterceptorFuncs(interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, o client.ObjectList, _ ...client.ListOption) error {
				o.(*unstructured.UnstructuredList).Items = listed
				return nil
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				item, is := o.(*unstructured.Unstructured)
				if !is {
					return c.Get(ctx, key, o, options...)
				}
				*item = listed[slices.IndexFunc(listed, func(l unstructured.Unstructured) bool { return l.GetName() == key.Name })]
				return nil
			},
		}).Build()
		harness.Must(t, w.preview(t.Context()))
		harness.Same(t, "summary", &bulkSummary{Done: []string{"f-good"}}, w.summary, cmp.AllowUnexported(bulkSummary{}))
		harness.Contains(t, fmt.Sprintf("undo %q", undo), says.String(),
			"Finding f-odd cannot be read", "1 of the operation's findings cannot be read")
	}
}

func TestAPreviewOfAnUndoCountsWhatItDoesNotShow(t *testing.T) {
	w, objects := waiting(), []client.Object{}
	w.undo, w.operation.Spec = "earlier", v1alpha1.TriageOperationSpec{Undo: "earlier"}
	w.summary, w.operation.Status.Parts = &bulkSummary{}, 1
	var says bytes.Buffer
	w.quiet, w.streams.ErrOut = false, &says
	var entries []rules.Entry
	for i := range maxRead + 2 {
		was, is := v1alpha1.UserStatusMuted, v1alpha1.UserStatusOpen
		if i > maxRead {
			was, is = is, was // it is not read, because no scan can keep it from being restored
		}
		f := builder.Finding(fmt.Sprintf("f-%02d", i)).In("org-acme").Triage(was, "").Build()
		f.Generation = 1
		before := rules.NewEntry(f)
		f.Generation, f.Spec.Triage = 2, v1alpha1.FindingTriage{UserStatus: is, By: rules.Author("earlier")}
		entries, objects = append(entries, rules.Undo(&before, f, rules.Author("earlier"), true)), append(objects, f)
		switch {
		case i == 0:
			f.Namespace = "org-other" // it no longer exists in this one
		case i <= maxPreviewed:
			f.Spec.Triage.By = "jane"
		case i == maxRead:
			f.Generation = 3 // a scan has changed it since, and it may be another problem by now
		}
	}
	gone := rules.NewEntry(builder.Finding("f-gone").In("org-acme").Triage(v1alpha1.UserStatusMuted, "").Build())
	entries = append(entries, rules.Undo(&gone, nil, rules.Author("earlier"), false))
	w.operation.Status.WouldChange = maxRead - maxPreviewed
	parts, _, err := rules.Parts(w.operation, entries)
	harness.Must(t, err)
	w.session.client = fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(append(objects, parts[0])...).
		WithInterceptorFuncs(interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, o client.ObjectList, _ ...client.ListOption) error {
			o.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{stored(t, objects[maxRead])}
			return nil
		}}).Build()
	harness.Must(t, w.preview(t.Context()))
	harness.Same(t, "restored, conflicted and failed", [3]int{maxRead - maxPreviewed, maxPreviewed + 1, 2},
		[3]int{len(w.summary.Done), len(w.summary.Conflicted), len(w.summary.Failed)})
	if text := says.String(); !strings.Contains(text, "f-39") || strings.Contains(text, "f-41") || !strings.Contains(text, "... and 1 more") {
		t.Errorf("it says\n%swant the findings that it has read, and how many more there are", text)
	}
}

func TestAPreviewOfAnUndoShowsHowTheRestoredDecisionStands(t *testing.T) {
	ends := func(in time.Duration) *v1alpha1.Time { return new(v1alpha1.NewTime(time.Now().Add(in))) }
	f := builder.Finding("f").Severity(v1alpha1.LevelHigh).Build()
	fits := findingstate.Basis(&f.Spec)
	low := findingstate.Basis(&builder.Finding("f").Severity(v1alpha1.LevelLow).Build().Spec)
	muted, active := v1alpha1.UserStatusMuted, v1alpha1.UserStatusActive
	for _, tc := range []struct {
		now  v1alpha1.UserStatus
		set  v1alpha1.FindingTriage
		want string
	}{
		{active, v1alpha1.FindingTriage{UserStatus: muted, Basis: fits}, "muted"},
		{active, v1alpha1.FindingTriage{UserStatus: muted, Basis: fits, ExpiresAt: ends(time.Hour)}, "muted"},
		{active, v1alpha1.FindingTriage{UserStatus: muted, Basis: low, ExpiresAt: ends(-time.Hour)}, "open, ended"},
		{active, v1alpha1.FindingTriage{UserStatus: muted, Basis: low}, "muted, stale"},
		{muted, v1alpha1.FindingTriage{UserStatus: muted, Basis: fits}, "muted, with other terms"},
		{muted, v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}, "open"},
	} {
		f.Spec.Triage = v1alpha1.FindingTriage{UserStatus: tc.now, Basis: fits}
		shown := waiting().previewRow(&rules.Entry{Set: &tc.set}, f)
		harness.Same(t, fmt.Sprintf("from %s to %+v", tc.now, tc.set), tc.want, shown[3])
	}
}

func TestAClockThatIsAheadForeseesNoChangeOfADecisionInForce(t *testing.T) {
	testenv.SetServerTime(t, time.Now().Add(-4*time.Minute))
	f := builder.Finding("f").In("org-acme").Mutate(func(f *v1alpha1.Finding) {
		f.Spec.Triage = v1alpha1.FindingTriage{
			UserStatus: v1alpha1.UserStatusMuted, Reason: v1alpha1.DecisionAcceptedRisk, Basis: findingstate.Basis(&f.Spec),
			ExpiresAt: new(v1alpha1.NewTime(time.Now().Add(-2 * time.Minute))), // only by the local clock it has come
		}
	}).Build()
	w := waiting()
	w.operation.Spec.Set = &v1alpha1.OperationDecision{UserStatus: v1alpha1.UserStatusMuted}
	parts, _, err := rules.Parts(w.operation, []rules.Entry{rules.NewEntry(f)})
	harness.Must(t, err)
	w.summary, w.operation.Status.Parts = &bulkSummary{}, 1
	w.session.client = fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(parts[0]).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, o client.ObjectList, _ ...client.ListOption) error {
			o.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{stored(t, f)}
			return nil
		},
	}).Build()
	shown := w.previewRow(&rules.Entry{Set: &f.Spec.Triage}, builder.Finding("f").Build())
	harness.Same(t, "an undo restores it", "muted", shown[3])
	harness.Must(t, w.preview(t.Context()))
	harness.Same(t, "summary", &bulkSummary{Unchanged: []string{"f"}}, w.summary, cmp.AllowUnexported(bulkSummary{}))
	// A set of 50,000 findings may have comments of a gigabyte.
	harness.Must(t, w.previewSelected(t.Context(), func(entry *rules.Entry, _ *v1alpha1.Finding) bool {
		if entry.Before != nil {
			t.Error("the previous decision is held in memory")
		}
		return true
	}))
}

// stored is the object as the API server lists it.
func stored(t *testing.T, object client.Object) unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	harness.Must(t, err)
	return unstructured.Unstructured{Object: content}
}

// The command is interrupted before the answer is lost: there is no further attempt.
func TestAnOperationWhoseCreationWasNotAnsweredIsNotLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				harness.Must(t, c.Create(ctx, o, options...))
				interrupt()
				return io.ErrUnexpectedEOF
			},
		}).Build()
		w := waiting()
		w.session.client, w.yes, w.dryRun, w.summary = c, true, dryRunNone, &bulkSummary{}
		if err := w.run(ctx); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("it ends with %v", err)
		}
		var left v1alpha1.TriageOperationList
		harness.Must(t, c.List(t.Context(), &left))
		harness.Same(t, "operations that are left", 0, len(left.Items))
	})
}

func TestACommitThatIsRefusedLeavesNothing(t *testing.T) {
	refused, lost := apierrors.NewForbidden(schema.GroupResource{}, "", nil), apierrors.NewInternalError(errors.New("no answer"))
	away := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for reason, tc := range map[string]struct {
		first, later error
		stored       bool  // by the first
		unread       error // by then
		stays        bool
	}{
		"it is refused":             {refused, refused, false, nil, false},
		"nobody knows yet":          {lost, lost, false, nil, true},
		"the first is not stored":   {lost, refused, false, nil, false},
		"the first is stored":       {lost, refused, true, nil, true},
		"it can no longer be read":  {lost, refused, true, refused, true},
		"no server after the first": {lost, away, false, nil, true},
		"no server at all":          {away, away, false, nil, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if tries > 1 && tc.unread != nil {
						return tc.unread
					}
					err := c.Get(ctx, key, o, options...)
					o.(*v1alpha1.TriageOperation).Status = v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationPreview, WouldChange: 1}
					return err
				},
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
					if tries++; tries > 1 {
						return tc.later
					}
					if tc.stored {
						harness.Must(t, c.Patch(ctx, o, patch))
					}
					return tc.first
				},
			}).Build()
			w := waiting()
			w.session.client, w.yes, w.dryRun, w.summary = c, true, dryRunNone, &bulkSummary{}
			err := w.run(t.Context())
			if err == nil || strings.Contains(err.Error(), "ndo it with") != tc.stays {
				t.Errorf("%s: it says %v, want how to undo it: %t", reason, err, tc.stays)
			}
			var left v1alpha1.TriageOperationList
			harness.Must(t, c.List(t.Context(), &left))
			harness.Same(t, reason+": operations are left", tc.stays, len(left.Items) > 0)
		})
	}
}
