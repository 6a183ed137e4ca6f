package findingstate

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
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
	next.Transitions = record(finding.Status, changes(finding, next), updatedAt)
	return next
}

// LastSeq is the number of the newest transition; 0 where there is none.
func LastSeq(status *v1alpha1.FindingStatus) int64 {
	last := status.EmittedSeq
	for _, transition := range status.Transitions {
		last = max(last, transition.Seq)
	}
	return last
}

// change is a transition before it has a number and a time.
type change struct {
	kind     v1alpha1.TransitionType
	from, to string
	by       string
}

// changes lists what happened between two reconciles: what the scanner did first, then what people did.
func changes(finding *v1alpha1.Finding, next v1alpha1.FindingStatus) []change {
	before := finding.Status
	if before.UpdatedAt == nil {
		return firstChanges(finding, next)
	}
	var out []change
	scanner := v1alpha1.ScannerFieldManagerPrefix + finding.Spec.Tool
	wasClosed, isClosed := before.State == v1alpha1.FindingStateClosed, next.State == v1alpha1.FindingStateClosed
	if wasClosed && !isClosed {
		out = append(out, change{v1alpha1.TransitionReopened, string(before.State), string(next.State), scanner})
	}
	if before.FactsDigest != next.FactsDigest {
		out = append(out, change{v1alpha1.TransitionUpdated, string(before.State), string(next.State), scanner})
	}
	if !wasClosed && isClosed {
		out = append(out, change{v1alpha1.TransitionClosed, string(before.State), string(next.State), scanner})
	}
	if before.TriageDigest != next.TriageDigest {
		out = append(out, triaged(finding, before.UserStatus, next.UserStatus))
	}
	return out
}

func firstChanges(finding *v1alpha1.Finding, next v1alpha1.FindingStatus) []change {
	out := []change{{
		kind: v1alpha1.TransitionCreated,
		to:   string(next.State),
		by:   v1alpha1.ScannerFieldManagerPrefix + finding.Spec.Tool,
	}}
	if isTriaged(&finding.Spec) {
		out = append(out, triaged(finding, v1alpha1.UserStatusOpen, next.UserStatus))
	}
	return out
}

func triaged(finding *v1alpha1.Finding, from, to v1alpha1.UserStatus) change {
	return change{v1alpha1.TransitionTriaged, string(from), string(to), finding.Spec.Triage.By}
}

func isTriaged(spec *v1alpha1.FindingSpec) bool {
	return UserStatus(spec) != v1alpha1.UserStatusOpen || spec.Triage.Comments != ""
}

// record numbers the changes and puts them behind the transitions kept so far. Of those, the
// oldest make room, but never one whose deliveries are still to be made.
func record(before v1alpha1.FindingStatus, happened []change, at metav1.Time) []v1alpha1.Transition {
	kept := before.DeepCopy().Transitions
	seq := LastSeq(&before)
	for _, c := range happened {
		seq++
		kept = append(kept, v1alpha1.Transition{
			Seq: seq, Type: c.kind, At: at, From: c.from, To: c.to, By: c.by,
		})
	}
	for len(kept) > v1alpha1.MaxTransitions && kept[0].Seq <= before.EmittedSeq {
		kept = kept[1:]
	}
	return kept
}
