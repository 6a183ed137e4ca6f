package findingstate

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Decision is a new decision about a finding or a review issue. A nil member leaves the value unchanged.
type Decision struct {
	UserStatus *v1alpha1.UserStatus
	// An empty Reason and a zero ExpiresAt remove the value.
	Reason    *v1alpha1.DecisionReason
	ExpiresAt *v1alpha1.Time
	Comments  *string
}

// Standing is the existing decision.
type Standing struct {
	// UserStatus is the decision in force, Triage the declared one, in force or not.
	UserStatus v1alpha1.UserStatus
	Triage     v1alpha1.FindingTriage
	// Stale means that the facts that the decision is based on have changed. Facts is the basis of a decision made now;
	// empty if decisions have no basis.
	Stale bool
	Facts string
}

// StandingOf returns the existing decision about the finding.
func StandingOf(finding *v1alpha1.Finding) Standing {
	return Standing{
		UserStatus: UserStatus(finding), Triage: finding.Spec.Triage, Stale: Stale(finding), Facts: Basis(&finding.Spec),
	}
}

// Changes returns the members of spec.triage that the decision, made now, changes, in the form of a JSON merge patch;
// empty if it changes nothing. Reason and end belong to a decision: another userStatus drops those of the previous one,
// and repeating an ended decision puts it in force again. Repeating a stale decision counts as a new one, based on the
// current facts.
//
// now is the API server's time or, in the controllers, that by which they end decisions: by another clock that is
// ahead, repeating a decision just before its end would replace it by one without an end and a reason.
func (d Decision) Changes(s Standing, now time.Time) map[string]any {
	out := map[string]any{}
	// Write a withdrawal at the end anyway, so that its author sees it at once.
	if ptr.Deref(d.UserStatus, "") != v1alpha1.UserStatusOpen {
		s.UserStatus = s.InForce(now)
	}
	another := d.UserStatus != nil && *d.UserStatus != s.UserStatus
	if !another && s.UserStatus == v1alpha1.UserStatusOpen {
		// Removing the end would put an ended decision in force again.
		d.Reason, d.ExpiresAt = nil, nil
	}
	switch {
	case another:
		d.begin(s, out)
	case d.UserStatus != nil && s.Stale && s.Triage.Basis != s.Facts:
		out["basis"] = s.Facts
	}
	if reason := d.reason(another, s.Triage.Reason); reason != s.Triage.Reason {
		out["reason"] = OrNull(reason, reason == "")
	}
	if end := d.end(another, s.Triage.ExpiresAt); !end.Equal(s.Triage.ExpiresAt) {
		out["expiresAt"] = OrNull(end, end == nil)
	}
	if d.Comments != nil && *d.Comments != s.Triage.Comments {
		out["comments"] = *d.Comments
	}
	return out
}

// InForce returns the decision in force now. It is open from the second of its end on, even while the status does not
// record the end yet.
func (s Standing) InForce(now time.Time) v1alpha1.UserStatus {
	if end := s.Triage.ExpiresAt; end != nil && !now.Before(end.Truncate(time.Second)) {
		return v1alpha1.UserStatusOpen
	}
	return s.UserStatus
}

// begin sets the members for a decision that differs from the one in force.
func (d Decision) begin(s Standing, out map[string]any) {
	if *d.UserStatus != s.Triage.UserStatus {
		out["userStatus"] = *d.UserStatus
	}
	if s.Facts != "" || s.Triage.Basis != "" {
		out["basis"] = OrNull(s.Facts, *d.UserStatus == v1alpha1.UserStatusOpen)
	}
}

func (d Decision) reason(another bool, before v1alpha1.DecisionReason) v1alpha1.DecisionReason {
	switch {
	case d.Reason != nil:
		return *d.Reason
	case another:
		return ""
	default:
		return before
	}
}

func (d Decision) end(another bool, before *v1alpha1.Time) *v1alpha1.Time {
	switch {
	case d.ExpiresAt != nil && !d.ExpiresAt.IsZero():
		return d.ExpiresAt
	case d.ExpiresAt != nil, another:
		return nil
	default:
		return before
	}
}

// OrNull returns the value for a patch; nil, which removes what is stored, if null.
func OrNull(value any, null bool) any {
	if null {
		return nil
	}
	return value
}
