package findingstate

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Ended reports whether the declared decision has ended according to the status: only the controllers' clock decides,
// so that all readers of an object agree.
func Ended(finding *v1alpha1.Finding) bool {
	end := endOf(&finding.Spec)
	return end != nil && end.Equal(finding.Status.EndedAt)
}

// UntilEnd returns how long the decision stays in force; 0 if it has no end or has ended.
func UntilEnd(finding *v1alpha1.Finding, now time.Time) time.Duration {
	end := endOf(&finding.Spec)
	if end == nil || Ended(finding) {
		return 0
	}
	return max(0, end.Sub(now))
}

// endOf returns when the decision ends, in whole seconds; nil if there is no decision or it has no
// end.
func endOf(spec *v1alpha1.FindingSpec) *v1alpha1.Time {
	if spec.Triage.ExpiresAt == nil || Declared(spec) == v1alpha1.UserStatusOpen {
		return nil
	}
	return new(v1alpha1.NewTime(spec.Triage.ExpiresAt.Time))
}

// endedAt returns the end of the decision if it has passed, else nil. An ended decision stays ended even if
// a clock is set back.
func endedAt(finding *v1alpha1.Finding, now time.Time) *v1alpha1.Time {
	end := endOf(&finding.Spec)
	if end == nil || !Ended(finding) && now.Before(end.Time) {
		return nil
	}
	return end
}

// expired returns the transition for the end of a decision. It names the decision's author.
func expired(finding *v1alpha1.Finding) v1alpha1.Transition {
	t := triaged(finding, Declared(&finding.Spec), v1alpha1.UserStatusOpen)
	t.Type = v1alpha1.TransitionExpired
	return t
}
