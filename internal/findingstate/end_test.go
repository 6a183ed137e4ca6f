package findingstate_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// mutedUntil returns a finding that ann muted at now, after a reconcile. She wrote the end with a fraction of a second,
// which does not count.
func mutedUntil(end time.Time) *v1alpha1.Finding {
	f := imported()
	reconcile(f, now)
	f.Generation++
	decide(v1alpha1.UserStatusMuted)(f)
	f.Spec.Triage.Reason, f.Spec.Triage.ExpiresAt = v1alpha1.DecisionAcceptedRisk, &v1alpha1.Time{Time: end.Add(time.Second / 2)}
	reconcile(f, now)
	return f
}

// since returns the transitions after seq, as short texts.
func since(f *v1alpha1.Finding, seq int64) (out []string) {
	for _, t := range f.Status.Transitions {
		if t.Seq > seq {
			out = append(out, strings.Join([]string{string(t.Type), t.From, t.To, t.By, string(t.Reason)}, " "))
		}
	}
	return out
}

func TestADecisionEndsAtItsSecond(t *testing.T) {
	end := now.Add(time.Hour)
	f := mutedUntil(end)
	harness.Same(t, "how long it waits for the end", time.Hour, findingstate.UntilEnd(f, now))
	before := f.Status
	harness.Same(t, "status before the end", before, findingstate.Observe(f, nil, end.Add(-time.Nanosecond)))
	spec := f.Spec.DeepCopy()
	seq := findingstate.History(&f.Status).LastSeq()
	reconcile(f, end)
	if !findingstate.Ended(f) || findingstate.UserStatus(f) != v1alpha1.UserStatusOpen || f.Status.UserStatus != v1alpha1.UserStatusOpen ||
		f.Status.State != v1alpha1.FindingStateOpen || findingstate.State(f) != v1alpha1.FindingStateOpen || f.Status.Basis != "" {
		t.Errorf("at the end the status is %+v", f.Status)
	}
	harness.Same(t, "updatedAt, which is the end", new(v1alpha1.NewTime(end)), f.Status.UpdatedAt)
	harness.Same(t, "the history", []string{"expired muted open ann accepted-risk"}, since(f, seq))
	harness.Same(t, "spec", *spec, f.Spec)
	after := f.Status
	for _, later := range []time.Time{end, end.Add(time.Hour), now} {
		harness.Same(t, "status at "+later.String()+", once it has ended", after, findingstate.Observe(f, nil, later))
	}
}

// Callers that do not ask for a verdict store the status without one.
func TestAVerdictWillCountIfItCountsOnceTheFindingIsObserved(t *testing.T) {
	end := now.Add(time.Hour)
	ended := mutedUntil(end)
	reconcile(ended, end)
	muted := imported()
	decide(v1alpha1.UserStatusMuted)(muted)
	shut := imported()
	closed(shut)
	for reason, c := range map[string]struct {
		finding *v1alpha1.Finding
		at      time.Time
		want    bool
	}{
		"undecided":               {imported(), now, true},
		"closed":                  {shut, now, false},
		"decided without an end":  {muted, now, false},
		"before the end":          {mutedUntil(end), end.Add(-time.Nanosecond), false},
		"at the end":              {mutedUntil(end), end, true},
		"ended, by another clock": {ended, now, true},
	} {
		harness.Same(t, reason, c.want, findingstate.VerdictWillCount(c.finding, c.at))
		c.finding.Status = findingstate.Observe(c.finding, nil, c.at)
		harness.Same(t, reason+": once observed", c.want, findingstate.VerdictCounts(c.finding))
	}
}

// Clients that ask for what has changed since the decision must see that it has ended.
func TestADecisionSeenAfterItsEndIsUpdatedWhenSeen(t *testing.T) {
	decided := now.Add(-2 * time.Minute)
	f := imported()
	f.Generation++
	decide(v1alpha1.UserStatusMuted)(f)
	f.Spec.Triage.ExpiresAt = new(v1alpha1.NewTime(now.Add(-time.Minute)))
	f.CreationTimestamp = metav1.NewTime(decided)
	f.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "findings-api", Time: new(metav1.NewTime(decided))}}
	reconcile(f, now)
	if !f.Status.UpdatedAt.Equal(new(v1alpha1.NewTime(now))) || f.Status.UserStatus != v1alpha1.UserStatusOpen {
		t.Errorf("updated at %s as %s, want now, %s, as open", f.Status.UpdatedAt, f.Status.UserStatus, now)
	}
}

func TestWhatIsDecidedAfterTheEndIsInForce(t *testing.T) {
	end := now.Add(time.Hour)
	for name, tc := range map[string]struct {
		change func(*v1alpha1.FindingTriage)
		in     v1alpha1.UserStatus
		want   []string
	}{
		"confirmed":                 {func(t *v1alpha1.FindingTriage) { t.UserStatus, t.ExpiresAt = "active", nil }, "active", []string{"triaged open active ann accepted-risk"}},
		"the same with a later end": {func(t *v1alpha1.FindingTriage) { t.ExpiresAt = new(v1alpha1.NewTime(end.Add(time.Hour))) }, "muted", []string{"triaged open muted ann accepted-risk"}},
		"the same without an end":   {func(t *v1alpha1.FindingTriage) { t.ExpiresAt = nil }, "muted", []string{"triaged open muted ann accepted-risk"}},
		"a comment alone":           {func(t *v1alpha1.FindingTriage) { t.Comments = "seen" }, "open", []string{"triaged open open ann accepted-risk"}},
		"an end that is past": {func(t *v1alpha1.FindingTriage) { t.ExpiresAt = new(v1alpha1.NewTime(now)) }, "open",
			[]string{"triaged open muted ann accepted-risk", "expired muted open ann accepted-risk"}},
		"taken back": {func(t *v1alpha1.FindingTriage) { *t = v1alpha1.FindingTriage{By: "ann"} }, "open", []string{"triaged open open ann "}},
	} {
		t.Run(name, func(t *testing.T) {
			f := mutedUntil(end)
			reconcile(f, end)
			seq := findingstate.History(&f.Status).LastSeq()
			tc.change(&f.Spec.Triage)
			f.Generation++
			reconcile(f, end.Add(time.Minute))
			if f.Status.UserStatus != tc.in || findingstate.UserStatus(f) != tc.in {
				t.Errorf("in force is %s (%s), want %s", f.Status.UserStatus, findingstate.UserStatus(f), tc.in)
			}
			harness.Same(t, "the history", tc.want, since(f, seq))
		})
	}
}

// An ended decision has no basis, so it is not stale, whatever scans report.
func TestAnEndedDecisionIsNotStale(t *testing.T) {
	end := now.Add(time.Hour)
	f := mutedUntil(end)
	severity("low")(f)
	f.Generation++
	reconcile(f, now.Add(time.Minute))
	if !findingstate.Stale(f) {
		t.Fatal("the decision is not stale before its end")
	}
	reconcile(f, end)
	if findingstate.Stale(f) || v1alpha1.FindCondition(f.Status.Conditions, v1alpha1.ConditionDecisionStale) != nil {
		t.Error("the decision is stale after its end")
	}
}

// Digests stored before decisions had reasons and ends must not change: another digest would cause an event.
func TestTheDigestOfADecisionWithoutReasonAndEndStays(t *testing.T) {
	for want, triage := range map[string]v1alpha1.FindingTriage{
		"63e9f398c4e15f807cf6691bea49164a": {UserStatus: "muted", Comments: "c", Basis: "severity=high"},
		"d81a7fac1cf9ca1b0acec04a62371c67": {},
	} {
		f := finding()
		f.Spec.Triage = triage
		if reconcile(f, now); f.Status.TriageDigest != want {
			t.Errorf("the digest of %+v is %s, want %s", triage, f.Status.TriageDigest, want)
		}
	}
}

func TestReasonAndEndAreOfTheDigest(t *testing.T) {
	seen := map[string]bool{}
	for _, triage := range []v1alpha1.FindingTriage{
		{UserStatus: "muted"}, {UserStatus: "muted", Reason: "duplicate"}, {UserStatus: "muted", Reason: "accepted-risk"},
		{UserStatus: "muted", ExpiresAt: new(v1alpha1.NewTime(now))}, {UserStatus: "muted", Basis: `{"reason":"duplicate"}`},
	} {
		f := finding()
		f.Spec.Triage = triage
		reconcile(f, now)
		seen[f.Status.TriageDigest] = true
	}
	harness.Same(t, "digests of 5 decisions", 5, len(seen))
}

// Its end counts from its second on, also while no controller has recorded it.
func TestADecisionAtTheEndOfAnotherIsANewOne(t *testing.T) {
	end := now.Add(time.Hour)
	later, muted, open := v1alpha1.NewTime(end.Add(time.Hour)), v1alpha1.UserStatusMuted, v1alpha1.UserStatusOpen
	for name, tc := range map[string]struct {
		decision findingstate.Decision
		want     map[string]any
	}{
		"repeated":                  {findingstate.Decision{UserStatus: &muted}, map[string]any{"basis": "severity=high;code=code1111", "reason": nil, "expiresAt": nil}},
		"taken back":                {findingstate.Decision{UserStatus: &open}, map[string]any{"userStatus": open, "basis": nil, "reason": nil, "expiresAt": nil}},
		"a comment and no end":      {findingstate.Decision{ExpiresAt: &v1alpha1.Time{}, Comments: new("c")}, map[string]any{"comments": "c"}},
		"a comment and a later end": {findingstate.Decision{ExpiresAt: &later, Comments: new("c")}, map[string]any{"comments": "c"}},
	} {
		harness.Same(t, name, tc.want, tc.decision.Changes(findingstate.StandingOf(mutedUntil(end)), end))
	}
}

func TestADecisionChangesOnlyWhatDiffers(t *testing.T) {
	end := now.Add(time.Hour)
	later := v1alpha1.NewTime(end.Add(time.Hour))
	ended := mutedUntil(end)
	reconcile(ended, end)
	stale, partly := mutedUntil(end), mutedUntil(end)
	severity("low")(stale)
	stale.Generation++
	reconcile(stale, now)
	partly.Spec.Triage.Basis = "severity=high"
	status := func(s v1alpha1.UserStatus) *v1alpha1.UserStatus { return &s }
	for name, tc := range map[string]struct {
		of       *v1alpha1.Finding
		decision findingstate.Decision
		want     map[string]any
	}{
		"the same":                        {mutedUntil(end), findingstate.Decision{UserStatus: status("muted")}, map[string]any{}},
		"stale, repeated":                 {stale, findingstate.Decision{UserStatus: status("muted")}, map[string]any{"basis": "severity=low;code=code1111"}},
		"stale, and a comment":            {stale, findingstate.Decision{Comments: new("c")}, map[string]any{"comments": "c"}},
		"the same with a part of a basis": {partly, findingstate.Decision{UserStatus: status("muted")}, map[string]any{}},
		"another comes without both":      {mutedUntil(end), findingstate.Decision{UserStatus: status("active")}, map[string]any{"userStatus": v1alpha1.UserStatusActive, "basis": "severity=high;code=code1111", "reason": nil, "expiresAt": nil}},
		"taken back":                      {mutedUntil(end), findingstate.Decision{UserStatus: status("open")}, map[string]any{"userStatus": v1alpha1.UserStatusOpen, "basis": nil, "reason": nil, "expiresAt": nil}},
		"another end":                     {mutedUntil(end), findingstate.Decision{UserStatus: status("muted"), ExpiresAt: &later}, map[string]any{"expiresAt": &later}},
		"end and reason taken away":       {mutedUntil(end), findingstate.Decision{UserStatus: status("muted"), ExpiresAt: &v1alpha1.Time{}, Reason: new(v1alpha1.DecisionReason)}, map[string]any{"expiresAt": nil, "reason": nil}},
		"ended, repeated":                 {ended, findingstate.Decision{UserStatus: status("muted")}, map[string]any{"basis": "severity=high;code=code1111", "reason": nil, "expiresAt": nil}},
		"ended, repeated with a new end":  {ended, findingstate.Decision{UserStatus: status("muted"), ExpiresAt: &later, Reason: new(v1alpha1.DecisionAcceptedRisk)}, map[string]any{"basis": "severity=high;code=code1111", "expiresAt": &later}},
		"ended, and open is what it is":   {ended, findingstate.Decision{UserStatus: status("open")}, map[string]any{}},
		"ended, open, and without an end": {ended, findingstate.Decision{UserStatus: status("open"), ExpiresAt: &v1alpha1.Time{}}, map[string]any{}},
		"ended, and only its end goes":    {ended, findingstate.Decision{ExpiresAt: &v1alpha1.Time{}, Comments: new("c")}, map[string]any{"comments": "c"}},
		"a comment keeps reason and end":  {mutedUntil(end), findingstate.Decision{Comments: new("c")}, map[string]any{"comments": "c"}},
	} {
		harness.Same(t, name+": changes", tc.want, tc.decision.Changes(findingstate.StandingOf(tc.of), now))
	}
}
