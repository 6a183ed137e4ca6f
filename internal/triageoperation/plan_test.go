package triageoperation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var selectedAt = v1alpha1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

func finding(triage v1alpha1.FindingTriage) *v1alpha1.Finding {
	return builder.Finding("f-1").Mutate(func(f *v1alpha1.Finding) { f.Spec.Triage = triage }).Build()
}

func decidedBy(by string) v1alpha1.FindingTriage {
	return v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, By: by, Reason: v1alpha1.DecisionUsedInTests}
}

func TestWhatAnOperationDoesAboutAFinding(t *testing.T) {
	operation := builder.TriageOperation("mute", "G1").Committed().Build()
	operation.Status.SelectedAt = &selectedAt
	open := v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}
	told := func(f *v1alpha1.Finding, at time.Time) *v1alpha1.Finding {
		f.Status.Transitions = []v1alpha1.Transition{{Type: v1alpha1.TransitionTriaged, By: "operation/mute", At: v1alpha1.NewTime(at)}}
		return f
	}
	for _, c := range []struct {
		reason         string
		selected       v1alpha1.FindingTriage
		now            *v1alpha1.Finding
		mayHaveDecided bool
		outcome        Outcome
		writes         bool
	}{
		{"as it was", open, finding(open), false, Changed, true},
		{"muted already", decidedBy("ann"), finding(decidedBy("ann")), false, Unchanged, false},
		{"somebody has decided", open, finding(decidedBy("ann")), false, Conflicted, false},
		{"somebody else has decided the same", decidedBy("ann"), finding(decidedBy("bob")), false, Conflicted, false},
		{"somebody has decided, and taken it back", open, finding(v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen, By: "ann"}),
			false, Conflicted, false},
		{"the operation has decided", open, finding(decidedBy("operation/mute")), false, Changed, false},
		{"and then somebody else", open, told(finding(decidedBy("ann")), selectedAt.Time), true, Changed, false},
		{"and then somebody else what was there", open, told(finding(open), selectedAt.Time), true, Changed, false},
		{"an earlier operation of that name had", open, told(finding(decidedBy("ann")), selectedAt.Add(-time.Second)), true, Conflicted, false},
		{"an earlier one had, and its history came late", open, told(finding(open), selectedAt.Time), false, Changed, true},
		{"and then somebody else decided", open, told(finding(decidedBy("ann")), selectedAt.Time), false, Conflicted, false},
		{"its decision is the one that was selected", decidedBy("operation/mute"), finding(decidedBy("operation/mute")), false, Unchanged, false},
	} {
		entry := NewEntry(finding(c.selected))
		step := Plan(operation, &entry, c.now, time.Time{}, c.mayHaveDecided)
		if step.Outcome != c.outcome || (len(step.Triage) > 0) != c.writes {
			t.Errorf("%s: got %c, writes %v", c.reason, step.Outcome, step.Triage)
		}
		if c.writes && step.Triage["by"] != "operation/mute" {
			t.Errorf("%s: signed by %v", c.reason, step.Triage["by"])
		}
		if (step.Outcome == Conflicted) != (step.Why != "") {
			t.Errorf("%s: why is %q", c.reason, step.Why)
		}
	}
}

func TestAPreviewCountsWhatAnEarlierOperationOfItsNameDecided(t *testing.T) {
	operation := builder.TriageOperation("mute", "G1").Build() // it has not selected yet
	reopened := finding(v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen, By: "ann"})
	reopened.Status.Transitions = []v1alpha1.Transition{{Type: v1alpha1.TransitionTriaged, By: Author("mute"), At: selectedAt}}
	entry := NewEntry(reopened)
	if step := Plan(operation, &entry, reopened, time.Time{}, false); len(step.Triage) == 0 {
		t.Error("the preview leaves it out")
	}
}

func TestAFindingThatWasCreatedAfterTheSelectionIsSkipped(t *testing.T) {
	operation := builder.TriageOperation("mute", "G1").Committed().Build()
	undo := builder.TriageOperation("undo", "").Undoes("mute").Committed().Build()
	created := finding(v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen})
	want := Step{Outcome: Conflicted, Why: "it did not exist, or could not be read, when the operation selected its findings"}
	before := NewEntry(finding(decidedBy("ann")))
	for _, mayHaveDecided := range []bool{false, true} {
		absent, undone := Absent("f-1"), Undo(&before, nil, Author("mute"), false)
		harness.Same(t, "what is done", want, Plan(operation, &absent, created, time.Time{}, mayHaveDecided))
		harness.Same(t, "what an undo does", want, Plan(undo, &undone, created, time.Time{}, mayHaveDecided))
	}
}

func TestAnEndWithAFractionOfASecondIsStoredOnce(t *testing.T) {
	operation := builder.TriageOperation("mute", "G1").Build()
	operation.Spec.Set.ExpiresAt = &v1alpha1.Time{Time: selectedAt.Add(time.Hour + time.Millisecond)}
	open := finding(v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen})
	entry := NewEntry(open)
	decided := finding(merged(t, open.Spec.Triage, Plan(operation, &entry, open, selectedAt.Time, false).Triage))
	if end := v1alpha1.NewTime(selectedAt.Add(time.Hour)); !end.Equal(decided.Spec.Triage.ExpiresAt) {
		t.Errorf("the decision ends at %s, want %s", decided.Spec.Triage.ExpiresAt, end)
	}
	entry = NewEntry(decided)
	harness.Same(t, "the next time", Step{Outcome: Unchanged}, Plan(operation, &entry, decided, selectedAt.Time, false))
}

func TestADecisionRestsOnTheFactsThatWereSelected(t *testing.T) {
	operation := builder.TriageOperation("mute", "G1").Build()
	selected := finding(v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen})
	entry := NewEntry(selected)
	scanned := selected.DeepCopy()
	scanned.Spec.Details.Severity = v1alpha1.LevelHigh
	harness.Same(t, "what the decision rests on", entry.Facts, Plan(operation, &entry, scanned, time.Time{}, false).Triage["basis"])
}

// A scan may give the name of an undecided finding without version or code to compare to another problem, which makes
// no decision stale.
func TestAnOperationDecidesAboutNoProblemThatNobodySaw(t *testing.T) {
	operation := builder.TriageOperation("mute", "G1").Committed().Build()
	operation.Spec.Set.UserStatus = v1alpha1.UserStatusActive
	comments := operation.DeepCopy()
	comments.Spec.Set = &v1alpha1.OperationDecision{Comments: new("a note")}
	undecided := v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}
	known, low := &v1alpha1.FindingPackage{Version: "1.2.3"}, finding(undecided).Spec.Details.Severity
	const message, code = "message", "message.code" // kinds of evidence
	for _, c := range []struct {
		reason          string
		triage          v1alpha1.FindingTriage
		evidence, later string
		pkg, laterPkg   *v1alpha1.FindingPackage
		selected, then  int64
		severity        v1alpha1.Level
		want            Outcome
	}{
		{"no scan has changed it", undecided, message, message, nil, nil, 3, 3, low, Changed},
		{"a scan has", undecided, message, message, nil, nil, 3, 4, low, Conflicted},
		{"a scan has, and its code is known", undecided, code, code, nil, nil, 3, 4, low, Changed},
		{"its code is no longer known", undecided, code, message, nil, nil, 3, 4, low, Conflicted},
		{"its code was not known", undecided, message, code, nil, nil, 3, 4, low, Conflicted},
		{"its code was stored by an earlier version", undecided, "", code, nil, nil, 3, 4, low, Conflicted},
		{"a scan has, and its version is known", undecided, message, message, known, known, 3, 4, low, Changed},
		{"its version is no longer known, but its code is", undecided, message, code, known, nil, 3, 4, low, Conflicted},
		{"its version was not known", undecided, message, message, nil, known, 3, 4, low, Conflicted},
		{"its version was stored by an earlier version", undecided, "", message, known, known, 3, 4, low, Changed},
		{"a scan has, and its severity differs", undecided, message, message, nil, nil, 3, 4, v1alpha1.LevelHigh, Changed},
		{"the decision would become stale", decidedBy("ann"), message, message, nil, nil, 3, 4, low, Changed},
		{"an earlier version has selected it", undecided, message, message, nil, nil, 0, 4, low, Changed},
	} {
		f := finding(c.triage)
		f.Spec.Details.Code = "code()"
		f.Spec.Evidence, f.Spec.Package, f.Generation = c.evidence, c.pkg, c.selected
		entry := NewEntry(f)
		f.Spec.Evidence, f.Spec.Package, f.Generation = c.later, c.laterPkg, c.then
		f.Spec.Details.Severity = c.severity
		if got := Plan(operation, &entry, f, time.Time{}, false).Outcome; got != c.want {
			t.Errorf("%s: got %c, want %c", c.reason, got, c.want)
		}
		if got := Plan(comments, &entry, f, time.Time{}, false).Outcome; got != Changed {
			t.Errorf("%s, and it gets no decision: got %c", c.reason, got)
		}
		may := c.selected > 0 && c.triage.UserStatus == v1alpha1.UserStatusOpen
		harness.Same(t, c.reason+": may be skipped", may, MayBeSkipped(operation, &entry, f, time.Time{}))
		harness.Same(t, c.reason+": gets no decision", false, MayBeSkipped(comments, &entry, f, time.Time{}))
	}
}

// The same holds for a decision that an undo restores after its operation has withdrawn it.
func TestAnUndoGivesNoDecisionToAProblemThatNobodySaw(t *testing.T) {
	undo := builder.TriageOperation("undo", "").Undoes("o").Build()
	open, muted := v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}, decidedBy("ann")
	noted := v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen, Comments: "a note"}
	ended := decidedBy("ann")
	ended.ExpiresAt = &selectedAt
	const message, code = "message", "message.code" // kinds of evidence
	for _, c := range []struct {
		reason          string
		before, now     v1alpha1.FindingTriage
		by, evidence    string
		selected        int64
		between, within int64 // scans before the undo selects it, and after that
		want            Outcome
	}{
		{"no scan has changed it", muted, open, "o", message, 3, 0, 0, Changed},
		{"a scan has, before the undo selected it", muted, open, "o", message, 3, 1, 0, Conflicted},
		{"a scan has, after that", muted, open, "o", message, 3, 0, 1, Conflicted},
		{"a scan has, and its code is known", muted, open, "o", code, 3, 1, 1, Changed},
		{"a scan has, and stored a doubt about its decision", muted, decidedBy(""), "o", message, 3, 1, 1, Changed},
		{"a scan has, and it gets no decision back", noted, open, "o", message, 3, 1, 1, Changed},
		{"a scan has, and the decision that it gets back has ended", ended, open, "o", message, 3, 1, 1, Changed},
		{"the undo of a later operation has restored it", muted, open, "later", message, 3, 2, 0, Changed},
		{"and then a scan has changed it", muted, open, "later", message, 3, 2, 1, Conflicted},
		{"an earlier version has selected it", muted, open, "o", message, 0, 4, 0, Changed},
	} {
		f := finding(c.before)
		f.Spec.Evidence, f.Generation = c.evidence, c.selected
		entry := NewEntry(f)
		f.Spec.Triage, f.Generation = c.now, f.Generation+1+c.between
		f.Spec.Triage.By = Author(c.by)
		undone := Undo(&entry, f, Author("o"), true)
		f.Generation += c.within
		step := Plan(undo, &undone, f, selectedAt.Time, false)
		if step.Outcome != c.want {
			t.Errorf("%s: got %c, want %c", c.reason, step.Outcome, c.want)
		}
		if c.want == Conflicted {
			harness.Same(t, c.reason+": once it has begun", step, Plan(undo, &undone, f, selectedAt.Time, true))
		}
	}
}

// An interrupted operation cannot distinguish its own decision, which a user reverted before the history recorded it,
// from a decision that it never made.
func TestWhatMayHaveBeenDecidedAndTakenBackIsLeftAlone(t *testing.T) {
	operation := builder.TriageOperation("mute", "G1").Committed().Build()
	selected := finding(decidedBy("ann"))
	selected.Generation = 3
	entry := NewEntry(selected)
	operation.Spec.Set.UserStatus = v1alpha1.UserStatusActive
	for _, c := range []struct {
		reason         string
		generation     int64
		mayHaveDecided bool
		want           Outcome
	}{
		{"untouched", 3, false, Changed},
		{"a scan has changed it", 4, false, Changed},
		{"untouched when the operation goes on", 3, true, Changed},
		{"touched while it was cut off", 5, true, Conflicted},
	} {
		now := selected.DeepCopy()
		now.Generation = c.generation
		if got := Plan(operation, &entry, now, time.Time{}, c.mayHaveDecided).Outcome; got != c.want {
			t.Errorf("%s: got %c, want %c", c.reason, got, c.want)
		}
	}
}

// random returns any decision that may be stored.
func random(r *rand.Rand) v1alpha1.FindingTriage {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	triage := v1alpha1.FindingTriage{
		UserStatus: v1alpha1.UserStatus(pick("open", "active", "muted")), Reason: v1alpha1.DecisionReason(pick("", "duplicate", "accepted-risk")),
		Comments: pick("", "a", "<b> 'c' \u2028"), Basis: pick("", "severity=high", "severity=low;version=1"),
		By: pick("", "ann", "operation/mute"),
	}
	if r.IntN(2) == 0 {
		at := v1alpha1.NewTime(time.Date(2020+r.IntN(20), 1, 1, 0, 0, 0, 0, time.UTC))
		triage.ExpiresAt = &at
	}
	return triage
}

func merged(t *testing.T, triage v1alpha1.FindingTriage, changes map[string]any) v1alpha1.FindingTriage {
	t.Helper()
	after, err := jsonpatch.MergePatch(harness.JSON(t, triage), harness.JSON(t, changes))
	harness.Must(t, err)
	return harness.Decoded[v1alpha1.FindingTriage](t, after)
}

func TestAnUndoGivesBackAnyDecisionToTheLetter(t *testing.T) {
	undo := builder.TriageOperation("undo", "").Undoes("mute").Build()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	for range 2000 {
		before := finding(random(r))
		entry := NewEntry(before)
		if r.IntN(2) == 0 {
			entry.Basis = "" // as in a part of an earlier version
		}
		now := finding(random(r))
		now.Spec.Triage.By = Author("mute")
		undone := Undo(&entry, now, Author("mute"), true)
		step := Plan(undo, &undone, now, time.Time{}, false)
		got := now.Spec.Triage
		if len(step.Triage) > 0 {
			got = merged(t, got, step.Triage)
		}
		want := before.Spec.Triage
		want.By, want.Basis = "operation/undo", cmp.Or(entry.Basis, want.Basis)
		if len(step.Triage) == 0 {
			want.By = Author("mute") // there was nothing to restore
		}
		harness.Same(t, fmt.Sprintf("from %+v", now.Spec.Triage), want, got)
		// A second plan has nothing left to do.
		now.Spec.Triage = got
		if step := Plan(undo, &undone, now, time.Time{}, true); len(step.Triage) > 0 {
			t.Fatalf("an undo writes twice: %v", step.Triage)
		}
	}
}

// A decision that declares no basis, or only a part, rests on facts that only the status holds.
func TestAnUndoneDecisionIsAsStaleAsItWas(t *testing.T) {
	now := selectedAt.Time
	observe := func(f *v1alpha1.Finding) {
		f.Generation++
		now = now.Add(time.Minute)
		f.Status = findingstate.Observe(f, nil, now)
	}
	const scanned = "message.code"
	rated := func(s *v1alpha1.FindingSpec) { s.Details.Severity = v1alpha1.LevelHigh }
	doubted := func(s *v1alpha1.FindingSpec) { s.Doubt = &v1alpha1.FindingDoubt{Reason: "line moved", ScanID: "s-1"} }
	for _, c := range []struct {
		basis, decidedUpon, stale string
		facts                     func(*v1alpha1.FindingSpec)
	}{
		{"", scanned, "severity medium, now high", rated}, {"rated=medium", "", "severity medium, now high", rated},
		{"code=code", scanned, "severity medium, now high", rated},
		{"", scanned, "in doubt: line moved", doubted}, {"code=code", scanned, "in doubt: line moved", doubted},
	} {
		for _, status := range []v1alpha1.UserStatus{v1alpha1.UserStatusActive, v1alpha1.UserStatusMuted, v1alpha1.UserStatusOpen} {
			f := finding(decidedBy("ann"))
			f.Spec.Triage.Basis, f.Spec.Details.Severity, f.Spec.Evidence = c.basis, v1alpha1.LevelMedium, c.decidedUpon
			observe(f)
			f.Spec.Evidence = scanned
			observe(f)
			c.facts(&f.Spec)
			observe(f)
			operations := []*v1alpha1.TriageOperation{
				builder.TriageOperation("o", "G1").Spec(func(s *v1alpha1.TriageOperationSpec) { s.Set.UserStatus = status }).Build(),
				builder.TriageOperation("undo", "").Undoes("o").Build(), builder.TriageOperation("again", "").Undoes("undo").Build(),
				builder.TriageOperation("undo-again", "").Undoes("again").Build(),
			}
			entry := NewEntry(f)
			for i, operation := range operations {
				if i > 0 {
					entry = Undo(&entry, f, Author(operations[i-1].Name), true)
				}
				f.Spec.Triage = merged(t, f.Spec.Triage, Plan(operation, &entry, f, now, false).Triage)
				observe(f)
				want := ""
				if i%2 == 1 {
					want = c.stale
				}
				harness.Same(t, fmt.Sprintf("of a decision upon %q, set to %s: stale after %s", c.basis, status, operation.Name),
					want, findingstate.WhyStale(f))
			}
		}
	}
}

func TestWhatIsNoLongerTheOperationsIsNotUndone(t *testing.T) {
	undo := builder.TriageOperation("undo", "").Undoes("mute").Build()
	entry := NewEntry(finding(v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}))
	now := finding(decidedBy("ann"))
	undone := Undo(&entry, now, Author("mute"), false)
	step := Plan(undo, &undone, now, time.Time{}, false)
	if step.Outcome != Conflicted || step.Why != "ann decided about it since the undone operation" {
		t.Errorf("got %c, because %s", step.Outcome, step.Why)
	}

	earlier := finding(decidedBy(Author("undo")))
	earlier.Status.Transitions = []v1alpha1.Transition{{Type: v1alpha1.TransitionTriaged, By: Author("undo"), At: selectedAt}}
	undo.Status.SelectedAt = &selectedAt
	undone = Undo(&entry, earlier, Author("mute"), false)
	for _, mayHaveDecided := range []bool{false, true} {
		if step := Plan(undo, &undone, earlier, time.Time{}, mayHaveDecided); step.Outcome != Conflicted {
			t.Errorf("restored by an earlier undo of that name, may have decided %t: got %c", mayHaveDecided, step.Outcome)
		}
	}
}

func TestAnUndoLeavesADecisionAloneIfThePreviousOneWasNotKept(t *testing.T) {
	undo := builder.TriageOperation("undo", "").Undoes("mute").Build()
	kept, now := []Entry{NewEntry(finding(decidedBy("ann")))}, finding(decidedBy(Author("mute")))
	forget(kept)
	undone := Undo(&kept[0], now, Author("mute"), true)
	if step := Plan(undo, &undone, now, time.Time{}, false); step.Outcome != Failed || step.Why == "" || step.Triage != nil {
		t.Errorf("got %c, because %s: %v", step.Outcome, step.Why, step.Triage)
	}
}

func TestOnlyWhatAnUndoHasChangedIsRestored(t *testing.T) {
	set := decidedBy("ann")
	entries := []Entry{{Finding: "changed", Set: &set}, {Finding: "unchanged", Set: &set}, {Finding: "no undo"}, {Finding: "not yet", Set: &set}}
	text, _, err := Encode(entries)
	harness.Must(t, err)
	part := &v1alpha1.TriageOperationPart{Spec: v1alpha1.TriageOperationPartSpec{Count: 4, Entries: text, Outcomes: "cuc"}}
	harness.Same(t, "restored", map[v1alpha1.ResourceName]string{"changed": "ann"}, Restored(part))
	part.Spec.Outcomes = "uuuuc"
	harness.Same(t, "restored by more outcomes than findings", map[v1alpha1.ResourceName]string{}, Restored(part))
}

// An operation may wait for minutes until older ones have ended. What somebody decides meanwhile is newer.
func TestAnOperationThatWasCommittedBeforeItsTurnReplacesNoDecisionOfThatTime(t *testing.T) {
	requested := selectedAt.Time
	later, turn := requested.Add(time.Second), requested.Add(time.Hour)
	decided := func(by string, at time.Time) *v1alpha1.Finding {
		f := finding(decidedBy(by))
		f.Status = findingstate.Observe(f, nil, at)
		f.Status.Transitions[1].At = v1alpha1.NewTime(at)
		return f
	}
	scanned := func(f *v1alpha1.Finding, at time.Time) *v1alpha1.Finding {
		f.Generation++
		f.ManagedFields = append(f.ManagedFields, metav1.ManagedFieldsEntry{Manager: "scanner", Time: &metav1.Time{Time: at}})
		return f
	}
	// written returns the finding before the controllers have recorded the decision.
	written := func(by string, at time.Time) *v1alpha1.Finding {
		f := finding(v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen})
		f.Generation = 1
		f.Status = findingstate.Observe(f, nil, requested.Add(-time.Hour))
		f.Spec.Triage = decidedBy(by)
		return scanned(f, at)
	}
	withdrawn := decided("ann", later)
	withdrawn.Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen, By: "ann"}
	for _, c := range []struct {
		reason  string
		finding *v1alpha1.Finding
		commit  bool
		outcome Outcome
	}{
		{"nobody", finding(v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}), true, Changed},
		{"somebody before", decided("ann", requested.Add(-time.Second)), true, Changed},
		{"somebody in the same second", decided("ann", requested), true, Changed},
		{"somebody later", decided("ann", later), true, Conflicted},
		{"somebody later, who sees it in the preview", decided("ann", later), false, Changed},
		{"somebody withdrew it later", withdrawn, true, Conflicted},
		{"somebody later, not recorded yet", written("ann", later), true, Conflicted},
		{"somebody before, not recorded yet", written("ann", requested), true, Changed},
		{"somebody before, and a scan later", scanned(decided("ann", requested), later), true, Changed},
		{"somebody before and a scan later, not recorded yet", scanned(written("ann", requested), later), true, Conflicted},
		{"an older operation, in its turn", decided("operation/older", later), true, Changed},
		{"an older operation, not recorded yet", written("operation/older", later), true, Changed},
	} {
		operation := builder.TriageOperation("mute", "G1").Spec(func(s *v1alpha1.TriageOperationSpec) {
			s.Commit, s.Set.Reason = c.commit, v1alpha1.DecisionWillNotFix
		}).Build()
		operation.CreationTimestamp = metav1.NewTime(requested)
		entry := Select(operation, c.finding, turn)
		if step := Plan(operation, &entry, c.finding, turn, false); step.Outcome != c.outcome {
			t.Errorf("%s has decided: got %c, want %c", c.reason, step.Outcome, c.outcome)
		}
	}
}
