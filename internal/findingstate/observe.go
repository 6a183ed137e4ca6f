package findingstate

import (
	"time"
	"unicode/utf8"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/transitions"
)

// Observe returns the status that follows from the finding's spec and its status so far:
// state, updatedAt and the transitions since the last reconcile. Conditions and emittedSeq
// are left as they are. Where the spec has not changed the status comes back equal.
func Observe(finding *v1alpha1.Finding, now time.Time) v1alpha1.FindingStatus {
	next := *finding.Status.DeepCopy()
	if finding.Status.UpdatedAt != nil && finding.Status.ObservedGeneration == finding.Generation {
		return next
	}
	updatedAt := UpdatedAt(finding, now)
	next.ObservedGeneration = finding.Generation
	next.State = State(&finding.Spec)
	next.UserStatus = UserStatus(&finding.Spec)
	next.TriageDigest = triageDigest(&finding.Spec)
	next.FactsDigest = factsDigest(&finding.Spec)
	next.UpdatedAt = &updatedAt
	next.Transitions = history(&next).Record(updatedAt, changes(finding, &next)...)
	return next
}

// LastSeq is the number of the newest transition; 0 where there is none.
func LastSeq(status *v1alpha1.FindingStatus) int64 { return history(status).LastSeq() }

func history(status *v1alpha1.FindingStatus) transitions.History {
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
	if !wasClosed && isClosed {
		out = append(out, scanned(finding, v1alpha1.TransitionClosed, next))
	}
	if before.TriageDigest != next.TriageDigest {
		out = append(out, triaged(finding, before.UserStatus, next.UserStatus))
	}
	return out
}

func firstChanges(finding *v1alpha1.Finding, next *v1alpha1.FindingStatus) []v1alpha1.Transition {
	out := []v1alpha1.Transition{scanned(finding, v1alpha1.TransitionCreated, next)}
	if isTriaged(&finding.Spec) {
		out = append(out, triaged(finding, v1alpha1.UserStatusOpen, next.UserStatus))
	}
	return out
}

// scanned is a transition of the scanner's making.
func scanned(finding *v1alpha1.Finding, kind v1alpha1.TransitionType, next *v1alpha1.FindingStatus) v1alpha1.Transition {
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
		Type:    v1alpha1.TransitionTriaged,
		From:    string(from),
		To:      string(to),
		By:      finding.Spec.Triage.By,
		Comment: cut(finding.Spec.Triage.Comments),
	}
}

func isTriaged(spec *v1alpha1.FindingSpec) bool {
	return UserStatus(spec) != v1alpha1.UserStatusOpen || spec.Triage.Comments != ""
}

const (
	// maxTransitionScan is how long a transition's scan may be.
	maxTransitionScan = 128
	// cutMark ends a comment that was cut, as it ends the texts that the importer cuts.
	cutMark = " ... [cut]"
)

// cut shortens a comment to what a transition has room for, in characters as the API server
// counts them.
func cut(comment string) string {
	if utf8.RuneCountInString(comment) <= v1alpha1.MaxTransitionComment {
		return comment
	}
	return string([]rune(comment)[:v1alpha1.MaxTransitionComment-len(cutMark)]) + cutMark
}
