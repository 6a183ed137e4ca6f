package findingstate

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/transitions"
	"github.com/appsec-dev/findings-operator/internal/truncate"
)

// Observe returns the status that follows from the finding's spec and its current status: state, updatedAt, the basis
// of a decision and whether it is stale, and the transitions since the last reconcile. The other conditions and
// emittedSeq stay. If neither the spec nor the verdict has changed, the returned status equals the current one, unless
// the decision has ended meanwhile, or an earlier version wrote the status without the basis of the decision. The
// verdict is that of a policy, or of a decision about the same result in a pull request; nil for none. It counts only
// if VerdictWillCount; its time is set here.
func Observe(finding *v1alpha1.Finding, verdict *v1alpha1.FindingVerdict, now time.Time) v1alpha1.FindingStatus {
	finding = withoutDefault(finding)
	seen := *finding // with the status that it gets
	seen.Status = *finding.Status.DeepCopy()
	next := &seen.Status
	next.EndedAt = endedAt(finding, now)
	next.Verdict = due(&seen, verdict)
	known := finding.Status.UpdatedAt != nil && finding.Status.ObservedGeneration == finding.Generation
	if known && next.EndedAt.Equal(finding.Status.EndedAt) && SameVerdict(next.Verdict, finding.Status.Verdict) {
		if next.Basis == "" && Decided(finding) {
			next.Transitions = History(next).Record(*next.UpdatedAt, observeDecision(finding, next, now)...)
		}
		return *next
	}
	updatedAt := UpdatedAt(finding, now)
	if known || len(ends(finding, next)) > 0 { // the end of a decision is not a write of the spec
		updatedAt = laterOf(updatedAt, now)
	}
	if next.Verdict != nil && !SameVerdict(next.Verdict, finding.Status.Verdict) {
		next.Verdict.Since = updatedAt
	}
	next.ObservedGeneration = finding.Generation
	next.State = State(&seen)
	next.UserStatus = UserStatus(&seen)
	next.TriageDigest = TriageDigest(&finding.Spec)
	next.FactsDigest = factsDigest(&finding.Spec)
	next.SuppressionDigest = suppressionDigest(&finding.Spec)
	next.UpdatedAt = &updatedAt
	happened := append(changes(finding, next), observeDecision(finding, next, now)...)
	next.Transitions = History(next).Record(updatedAt, happened...)
	return *next
}

// laterOf returns now, in whole seconds, or the other time if that is later.
func laterOf(at v1alpha1.Time, now time.Time) v1alpha1.Time {
	if second := now.UTC().Truncate(time.Second); second.After(at.Time) {
		return v1alpha1.NewTime(second)
	}
	return at
}

// DecisionWaits reports whether the finding has a decision in spec.triage, whoever made it (an operation too), that its
// status does not record yet.
func DecisionWaits(finding *v1alpha1.Finding) bool {
	if finding.Status.UpdatedAt == nil {
		return isTriaged(&finding.Spec)
	}
	return finding.Status.TriageDigest != TriageDigest(&finding.Spec)
}

// History returns the recorded transitions of the finding.
func History(status *v1alpha1.FindingStatus) transitions.History {
	return transitions.Of(status.Transitions, status.EmittedSeq)
}

// changes returns the transitions between two reconciles: first those by the scanner, then those by decisions, without
// number and time.
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

// ends returns the transition of a decision that has ended since the last reconcile.
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

// suppressions returns the transition if the source has begun or ceased to suppress the finding, or
// does so for another reason.
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
		t.Comment = cut(t.Comment+": "+suppression.Justification, v1alpha1.MaxTransitionComment)
	}
	return []v1alpha1.Transition{t}
}

// scanned returns a transition caused by the scanner.
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

// scanOf returns the scan that caused the transition; "" if none is named, or if its name is too long for a transition.
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

// triaged returns a transition caused by a decision in spec.triage.
func triaged(finding *v1alpha1.Finding, from, to v1alpha1.UserStatus) v1alpha1.Transition {
	return v1alpha1.Transition{
		Type:      v1alpha1.TransitionTriaged,
		From:      string(from),
		To:        string(to),
		By:        finding.Spec.Triage.By,
		Reason:    finding.Spec.Triage.Reason,
		ExpiresAt: finding.Spec.Triage.ExpiresAt,
		Comment:   cut(finding.Spec.Triage.Comments, v1alpha1.MaxTransitionComment),
	}
}

func isTriaged(spec *v1alpha1.FindingSpec) bool {
	return Declared(spec) != v1alpha1.UserStatusOpen || spec.Triage.Comments != ""
}

// maxTransitionScan is the maximum length of a transition's scan.
const maxTransitionScan = 128

// cut truncates a text with the mark that the importer uses too.
func cut(text string, limit int) string {
	return truncate.Marked(text, limit, fingerprints.CutMark)
}
