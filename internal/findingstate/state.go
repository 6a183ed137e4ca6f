// Package findingstate derives what is observed of a finding from what is declared of it.
//
// It is pure: the controller records its results in status, and the REST facade computes the
// same results for an object that the controller has yet to see.
package findingstate

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
)

// State sums up a finding: closed where the scanner closed it, else open_muted where a person or a verdict mutes it
// or the source suppresses it, else open.
func State(finding *v1alpha1.Finding) v1alpha1.FindingState {
	switch {
	case finding.Spec.Closed != nil:
		return v1alpha1.FindingStateClosed
	case UserStatus(finding) == v1alpha1.UserStatusMuted, mutedByVerdict(finding), finding.Spec.Suppression != nil:
		return v1alpha1.FindingStateOpenMuted
	default:
		return v1alpha1.FindingStateOpen
	}
}

// UserStatus is the decision in force; open where nobody has decided, or the decision has ended.
func UserStatus(finding *v1alpha1.Finding) v1alpha1.UserStatus {
	if Ended(finding) {
		return v1alpha1.UserStatusOpen
	}
	return Declared(&finding.Spec)
}

// Declared is what a person decided, in force or not; open where nobody has.
func Declared(spec *v1alpha1.FindingSpec) v1alpha1.UserStatus {
	if spec.Triage.UserStatus == "" {
		return v1alpha1.UserStatusOpen
	}
	return spec.Triage.UserStatus
}

// CreatedAt is when the finding was first seen: spec.detectedAt, else the resource's creation.
func CreatedAt(finding *v1alpha1.Finding) v1alpha1.Time {
	if finding.Spec.DetectedAt != nil {
		return v1alpha1.NewTime(finding.Spec.DetectedAt.UTC())
	}
	return v1alpha1.NewTime(finding.CreationTimestamp.UTC())
}

// UpdatedAt is when the finding's spec was last written, by the rule of package lastwrite.
func UpdatedAt(finding *v1alpha1.Finding, now time.Time) v1alpha1.Time {
	return lastwrite.UpdatedAt(finding, lastwrite.Observed{
		Generation: finding.Status.ObservedGeneration,
		UpdatedAt:  finding.Status.UpdatedAt,
	}, now)
}
