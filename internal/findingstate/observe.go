package findingstate

import (
	"time"
	"unicode/utf8"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/transitions"
)

// Observe returns the status that follows from the finding's spec and its status so far:
// state, updatedAt, what a decision rests on and whether it is stale, and the transitions since the last
// reconcile. The other conditions and emittedSeq are left as they are. Where the spec has not changed the
// status comes back equal, unless the decision has ended meanwhile, or an earlier version wrote the status and
// recorded no basis of the decision. The judge is asked only if no person has decided, and the status comes back equal
// as long as the verdict is the same; nil: there are no policies.
func Observe(finding *v1alpha1.Finding, judge Judge, now time.Time) v1alpha1.FindingStatus {
	next := *finding.Status.DeepCopy()
	next.EndedAt = endedAt(finding, now)
	next.Verdict = due(&v1alpha1.Finding{ObjectMeta: finding.ObjectMeta, Spec: finding.Spec, Status: next}, judge)
	known := finding.Status.UpdatedAt != nil && finding.Status.ObservedGeneration == finding.Generation
	if known && next.EndedAt.Equal(finding.Status.EndedAt) && SameVerdict(next.Verdict, finding.Status.Verdict) {
		if next.Basis == "" && Decided(finding) {
			next.Transitions = History(&next).Record(*next.UpdatedAt, observeDecision(finding, &next, now)...)
		}
		return next
	}
	updatedAt := UpdatedAt(finding, now)
	if known {
		updatedAt = laterOf(updatedAt, now)
	}
	if next.Verdict != nil && !SameVerdict(next.Verdict, finding.Status.Verdict) {
		next.Verdict.Since = updatedAt
	}
	seen := &v1alpha1.Finding{Spec: finding.Spec, Status: next}
	next.ObservedGeneration = finding.Generation
	next.State = State(seen)
	next.UserStatus = UserStatus(seen)
	next.TriageDigest = triageDigest(&finding.Spec)
	next.FactsDigest = factsDigest(&finding.Spec)
	next.SuppressionDigest = suppressionDigest(&finding.Spec)
	next.UpdatedAt = &updatedAt
	happened := append(changes(finding, &next), observeDecision(finding, &next, now)...)
	next.Transitions = History(&next).Record(updatedAt, happened...)
	return next
}

// laterOf is now, to the second, unless the other time is later.
func laterOf(at v1alpha1.Time, now time.Time) v1alpha1.Time {
	if second := now.UTC().Truncate(time.Second); second.After(at.Time) {
		return v1alpha1.NewTime(second)
	}
	return at
}

// DecisionWaits reports whether people have decided what the finding's status does not record yet.
func DecisionWaits(finding *v1alpha1.Finding) bool {
	if finding.Status.UpdatedAt == nil {
		return isTriaged(&finding.Spec)
	}
	return finding.Status.TriageDigest != triageDigest(&finding.Spec)
}

// History is what the status has recorded of the finding.
func History(status *v1alpha1.FindingStatus) transitions.History {
	return transitions.History{Transitions: status.Transitions, EmittedSeq: status.EmittedSeq}
}

// changes lists what happened between two looks: what the scanner did first, then what people
// did. They have no number and no time yet.
func changes(finding *v1alpha1.Finding, next *v1alpha1.FindingStatus) []v1alpha1.Transition {
	before := &finding.Status
	if before.UpdatedAt == nil {
		return firstChanges(finding, next)
	}
	var out []v1alpha1.Transition
	wasClosed, isClosed := before.State == v1alpha1.FindingStateClosed, next.State == v1alpha1.FindingStateClosed
	if wasClosed && !isClosed {
		out = append(out, scanned(finding, v1alpha1.TransitionReopened, next))
	}
	if before.FactsDigest != next.FactsDigest {
		out = append(out, scanned(finding, v1alpha1.TransitionUpdated, next))
	}
	out = append(out, suppressions(finding, next)...)
	if !wasClosed && isClosed {
		out = append(out, scanned(finding, v1alpha1.TransitionClosed, next))
	}
	if before.TriageDigest != next.TriageDigest {
		out = append(out, triaged(finding, before.UserStatus, UserStatus(finding)))
	}
	return append(append(out, ends(finding, next)...), judged(finding, next)...)
}

// ends is the transition of a decision that has ended since the last reconcile.
func ends(finding *v1alpha1.Finding, next *v1alpha1.FindingStatus) []v1alpha1.Transition {
	if next.EndedAt == nil || Ended(finding) {
		return nil
	}
	return []v1alpha1.Transition{expired(finding)}
}

func firstChanges(finding *v1alpha1.Finding, next *v1alpha1.FindingStatus) []v1alpha1.Transition {
	out := append([]v1alpha1.Transition{scanned(finding, v1alpha1.TransitionCreated, next)},
		suppressions(finding, next)...)
	if isTriaged(&finding.Spec) {
		out = append(out, triaged(finding, v1alpha1.UserStatusOpen, Declared(&finding.Spec)))
	}
	return append(append(out, ends(finding, next)...), judged(finding, next)...)
}

// suppressions is the transition that the source makes by suppressing the finding, or no longer.
func suppressions(finding *v1alpha1.Finding, next *v1alpha1.FindingStatus) []v1alpha1.Transition {
	if finding.Status.SuppressionDigest == next.SuppressionDigest {
		return nil
	}
	suppression := finding.Spec.Suppression
	if suppression == nil {
		return []v1alpha1.Transition{scanned(finding, v1alpha1.TransitionUnsuppressed, next)}
	}
	t := scanned(finding, v1alpha1.TransitionSuppressed, next)
	t.Comment = string(suppression.Kind)
	if suppression.Justification != "" {
		t.Comment = cut(t.Comment + ": " + suppression.Justification)
	}
	return []v1alpha1.Transition{t}
}

// scanned is a transition of the scanner's making.
func scanned(finding *v1alpha1.Finding, kind v1alpha1.TransitionType,
	next *v1alpha1.FindingStatus) v1alpha1.Transition {
	return v1alpha1.Transition{
		Type: kind,
		From: string(finding.Status.State),
		To:   string(next.State),
		By:   v1alpha1.ScannerFieldManagerPrefix + finding.Spec.Tool,
		Scan: scanOf(&finding.Spec, kind),
	}
}

// scanOf is the scan that made the transition; "" where none is named, or by a name that a
// transition has no room for.
func scanOf(spec *v1alpha1.FindingSpec, kind v1alpha1.TransitionType) string {
	var name string
	switch {
	case kind == v1alpha1.TransitionClosed && spec.Closed != nil:
		name = spec.Closed.ScanID
	case spec.Scan != nil:
		name = spec.Scan.ScanID
	}
	if len(name) > maxTransitionScan {
		return ""
	}
	return name
}

// triaged is a transition of a person's making.
func triaged(finding *v1alpha1.Finding, from, to v1alpha1.UserStatus) v1alpha1.Transition {
	return v1alpha1.Transition{
		Type:      v1alpha1.TransitionTriaged,
		From:      string(from),
		To:        string(to),
		By:        finding.Spec.Triage.By,
		Reason:    finding.Spec.Triage.Reason,
		ExpiresAt: finding.Spec.Triage.ExpiresAt,
		Comment:   cut(finding.Spec.Triage.Comments),
	}
}

func isTriaged(spec *v1alpha1.FindingSpec) bool {
	return Declared(spec) != v1alpha1.UserStatusOpen || spec.Triage.Comments != ""
}

const (
	// maxTransitionScan is how long a transition's scan may be.
	maxTransitionScan = 128
	// cutMark ends a comment that was cut, as it ends the texts that the importer cuts.
	cutMark = " ... [cut]"
)

// cut shortens a comment to what a transition has room for.
func cut(comment string) string { return shortened(comment, v1alpha1.MaxTransitionComment) }

// shortened cuts a text to so many characters, as the API server counts them.
func shortened(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-len(cutMark)]) + cutMark
}
