// Package findingstate derives a finding's status from its spec.
//
// It is pure: the controller records its results in status, and the REST facade computes the same
// results for an object that the controller has not observed yet.
package findingstate

import (
	"cmp"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
)

// State returns a finding's state: closed if the scanner closed it, else open_muted if a user or a verdict mutes it
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

// UserStatus returns the decision in spec.triage if it is in force; open if there is none, or it has ended.
func UserStatus(finding *v1alpha1.Finding) v1alpha1.UserStatus {
	if Ended(finding) {
		return v1alpha1.UserStatusOpen
	}
	return Declared(&finding.Spec)
}

// Declared returns the decision in spec.triage, in force or not; open if there is none.
func Declared(spec *v1alpha1.FindingSpec) v1alpha1.UserStatus {
	return cmp.Or(spec.Triage.UserStatus, v1alpha1.UserStatusOpen)
}

// Decided reports whether a decision of the finding's own (spec.triage), which mutes or confirms it, is in force.
func Decided(finding *v1alpha1.Finding) bool { return UserStatus(finding) != v1alpha1.UserStatusOpen }

// CreatedAt returns when the finding was first seen: spec.detectedAt, else the resource's creation.
func CreatedAt(finding *v1alpha1.Finding) v1alpha1.Time {
	if finding.Spec.DetectedAt != nil {
		return v1alpha1.NewTime(finding.Spec.DetectedAt.UTC())
	}
	return v1alpha1.NewTime(finding.CreationTimestamp.UTC())
}

// UpdatedAt returns when the finding's spec was last written, by the rules of package lastwrite.
func UpdatedAt(finding *v1alpha1.Finding, now time.Time) v1alpha1.Time {
	return lastwrite.UpdatedAt(finding, lastwrite.Observed{
		Generation: finding.Status.ObservedGeneration,
		UpdatedAt:  finding.Status.UpdatedAt,
	}, now)
}
