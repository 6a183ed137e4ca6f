package findingstate_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// unstored returns an imported finding as the API server returns it if no status was ever stored.
func unstored() *v1alpha1.Finding {
	f := imported()
	f.CreationTimestamp = metav1.NewTime(now)
	f.ManagedFields = []metav1.ManagedFieldsEntry{scannedAt(now)}
	f.Status = v1alpha1.FindingStatus{State: v1alpha1.FindingStateOpen, UserStatus: v1alpha1.UserStatusOpen}
	return f
}

func scannedAt(at time.Time) metav1.ManagedFieldsEntry {
	written := metav1.NewTime(at)
	return metav1.ManagedFieldsEntry{Manager: "scanner/gosec", Operation: metav1.ManagedFieldsOperationApply, Time: &written}
}

// observe updates the status like a controller that stores none for findings that are as created.
func observe(f *v1alpha1.Finding, now time.Time) {
	f.Status = findingstate.Observe(findingstate.ObservedBefore(f, nil, now), nil, now)
	f.Status.EmittedSeq = findingstate.History(&f.Status).LastSeq()
}

// later makes a change to the spec, as its n-th write.
func later(f *v1alpha1.Finding, n int64, change func(*v1alpha1.Finding)) {
	f.Generation = n
	change(f)
}

func byScanner(change func(*v1alpha1.Finding)) func(*v1alpha1.Finding) {
	return func(f *v1alpha1.Finding) {
		f.ManagedFields = []metav1.ManagedFieldsEntry{scannedAt(now.Add(10 * time.Second))}
		change(f)
	}
}

func closed(f *v1alpha1.Finding) {
	f.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(now.Add(time.Hour)), ScanID: "s-2"}
}

func noted(f *v1alpha1.Finding) { f.Spec.Triage.Comments = "seen" }

func TestWhatNobodyChangedSinceItsCreationIsRecordedWithoutAStatus(t *testing.T) {
	for reason, tc := range map[string]struct {
		change func(*v1alpha1.Finding)
		want   bool
	}{
		"as created":         {func(*v1alpha1.Finding) {}, true},
		"created closed":     {closed, false},
		"created muted":      {decide(v1alpha1.UserStatusMuted), false},
		"with a comment":     {noted, false},
		"with a reason":      {func(f *v1alpha1.Finding) { f.Spec.Triage.Reason = v1alpha1.DecisionAcceptedRisk }, false},
		"with an end":        {func(f *v1alpha1.Finding) { f.Spec.Triage.ExpiresAt = new(v1alpha1.NewTime(now)) }, false},
		"created suppressed": {func(f *v1alpha1.Finding) { f.Spec.Suppression = &v1alpha1.FindingSuppression{} }, false},
		"written again":      {func(f *v1alpha1.Finding) { f.Generation = 2 }, false},
		"recorded":           {func(f *v1alpha1.Finding) { f.Generation = 2; reconcile(f, now) }, true},
		"recorded, written again": {func(f *v1alpha1.Finding) {
			reconcile(f, now)
			f.Generation = 2
		}, false},
	} {
		f := unstored()
		tc.change(f)
		harness.Same(t, reason, tc.want, findingstate.IsRecorded(f))
	}
}

// A change of a finding without a stored status has the transitions that it would have with one.
func TestTheFirstChangeIsRecordedAsIfTheStatusHadBeenStored(t *testing.T) {
	at := now.Add(30 * time.Second) // when a finding may also be observed for the first time
	for reason, tc := range map[string]struct {
		change func(*v1alpha1.Finding)
		want   []string
	}{
		"decided":    {decide(v1alpha1.UserStatusMuted), []string{"triaged open muted ann "}},
		"commented":  {noted, []string{"triaged open open  "}},
		"closed":     {byScanner(closed), []string{"closed open closed scanner/gosec "}},
		"suppressed": {byScanner(func(f *v1alpha1.Finding) { f.Spec.Suppression = &v1alpha1.FindingSuppression{Kind: "external"} }), []string{"suppressed open open_muted scanner/gosec "}},
		"in doubt":   {byScanner(doubt("s-2")), nil},
		"rewritten":  {byScanner(severity("low")), []string{"updated open open scanner/gosec "}},
	} {
		t.Run(reason, func(t *testing.T) {
			f, remembered, stored := unstored(), unstored(), unstored()
			reconcile(stored, now)
			seen := findingstate.CreationOf(&stored.Status)
			later(f, 2, tc.change)
			later(stored, 2, tc.change)
			observe(f, at)
			observe(stored, at)
			harness.Same(t, "the history", append([]string{"created  open scanner/gosec "}, tc.want...), since(f, 0))
			if reason == "rewritten" {
				f.Status.Transitions[0].Scan = "s-1" // not known any longer
			}
			harness.Same(t, "with and without a stored status", stored.Status, f.Status)
			later(remembered, 2, tc.change)
			remembered.Status = findingstate.Observe(findingstate.ObservedBefore(remembered, seen, at), nil, at)
			remembered.Status.EmittedSeq = f.Status.EmittedSeq
			harness.Same(t, "with a creation that was observed", stored.Status, remembered.Status)
		})
	}
}

// A policy that matches at the first look decides together with the creation, like the scan's other findings.
func TestAVerdictAtTheFirstReconcileIsOfTheCreation(t *testing.T) {
	f := unstored()
	f.Status = findingstate.Observe(f, &v1alpha1.FindingVerdict{Policy: "p", UserStatus: "muted"}, now.Add(5*time.Second))
	harness.Same(t, "the history", []string{"created  open_muted scanner/gosec ", "judged open muted policy/p "}, since(f, 0))
	harness.Same(t, "the verdict's scan", "s-1", f.Status.Transitions[1].Scan)
}

func TestAVerdictOnAFindingWithoutAStatusIsOfNow(t *testing.T) {
	f := unstored()
	week := now.Add(7 * 24 * time.Hour)
	f.Status = findingstate.Observe(findingstate.ObservedBefore(f, nil, week),
		&v1alpha1.FindingVerdict{Policy: "p", UserStatus: "muted"}, week)
	if at := v1alpha1.NewTime(week); !f.Status.UpdatedAt.Equal(&at) || !f.Status.Verdict.Since.Equal(&at) {
		t.Errorf("updatedAt is %s and since is %s, want %s", f.Status.UpdatedAt, f.Status.Verdict.Since, at)
	}
	harness.Same(t, "the state", v1alpha1.FindingStateOpenMuted, f.Status.State)
}

// Whatever happens while the controllers are away, everything that the spec shows at the end has a transition, and
// what neither a scanner nor the facts show has none.
func TestWhatHappenedUnobservedIsInTheHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, scanned, rewritten := unstored(), false, false
		writes := rapid.IntRange(1, 5).Draw(t, "writes")
		for n := range writes {
			switch rapid.SampledFrom([]string{"decide", "close", "facts"}).Draw(t, "write") {
			case "decide":
				later(f, int64(n)+2, decide(rapid.SampledFrom([]v1alpha1.UserStatus{"active", "muted"}).Draw(t, "decision")))
			case "close":
				later(f, int64(n)+2, byScanner(closed))
				scanned = true
			case "facts":
				later(f, int64(n)+2, byScanner(severity(rapid.SampledFrom([]v1alpha1.Level{"low", "medium"}).Draw(t, "severity"))))
				scanned, rewritten = true, true
			}
		}
		observe(f, now.Add(2*time.Hour))
		history := strings.Join(since(f, 0), "\n")
		for kind, want := range map[string]bool{
			"created": true, "closed": f.Spec.Closed != nil, "triaged": f.Spec.Triage.UserStatus != v1alpha1.UserStatusOpen,
		} {
			if strings.Contains(history, kind+" ") != want {
				t.Fatalf("%s is expected: %t, in\n%s", kind, want, history)
			}
		}
		if updated := strings.Contains(history, "updated "); updated && !scanned || rewritten && writes == 1 && !updated {
			t.Fatalf("scanned: %t, facts rewritten: %t, in\n%s", scanned, rewritten, history)
		}
		before := f.Status
		observe(f, now.Add(3*time.Hour))
		harness.Same(t, "observed again", before, f.Status)
	})
}

// The API server fills the state of a finding without a stored status with a default, which nobody has observed.
func TestADefaultStateIsNotTheStateBefore(t *testing.T) {
	f := unstored()
	closed(f)
	reconcile(f, now)
	harness.Same(t, "the history", []string{"created  closed scanner/gosec "}, since(f, 0))
}
