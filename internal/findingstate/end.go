package findingstate

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Ended reports whether the decision that the spec declares has ended. The status tells: the controllers' clock
// decides, so that everybody who reads the same object agrees.
func Ended(finding *v1alpha1.Finding) bool {
	end := endOf(&finding.Spec)
	return end != nil && end.Equal(finding.Status.EndedAt)
}

// UntilEnd returns how long the decision stays in force; 0 where it has no end, or that has come.
func UntilEnd(finding *v1alpha1.Finding, now time.Time) time.Duration {
	end := endOf(&finding.Spec)
	if end == nil || Ended(finding) {
		return 0
	}
	return max(0, end.Sub(now))
}

// endOf is when the decision ends, to the second; nil where there is none, or it has no end.
func endOf(spec *v1alpha1.FindingSpec) *v1alpha1.Time {
	if spec.Triage.ExpiresAt == nil || Declared(spec) == v1alpha1.UserStatusOpen {
		return nil
	}
	end := v1alpha1.NewTime(spec.Triage.ExpiresAt.UTC().Truncate(time.Second))
	return &end
}

// endedAt is the end of the decision where it has come. What has ended stays so, even if a clock goes back.
func endedAt(finding *v1alpha1.Finding, now time.Time) *v1alpha1.Time {
	end := endOf(&finding.Spec)
	if end == nil || !Ended(finding) && now.Before(end.Time) {
		return nil
	}
	return end
}

// expired is the transition that the end of a decision makes. It names whose decision it was.
func expired(finding *v1alpha1.Finding) v1alpha1.Transition {
	t := triaged(finding, Declared(&finding.Spec), v1alpha1.UserStatusOpen)
	t.Type = v1alpha1.TransitionExpired
	return t
}
