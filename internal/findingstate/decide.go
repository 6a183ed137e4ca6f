package findingstate

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// Decision is what somebody decides about a finding, or the issue of a review. A nil member is not said.
type Decision struct {
	UserStatus *v1alpha1.UserStatus
	// Reason and ExpiresAt are taken away by an empty value and by the zero time.
	Reason    *v1alpha1.DecisionReason
	ExpiresAt *v1alpha1.Time
	Comments  *string
}

// Standing is what was decided about it until now.
type Standing struct {
	// UserStatus is the decision in force, Triage all that was declared, in force or not.
	UserStatus v1alpha1.UserStatus
	Triage     v1alpha1.FindingTriage
	// Stale says that the decision rests on facts that are no longer so, Facts are what one made now rests on; empty
	// where decisions rest on none.
	Stale bool
	Facts string
}

// StandingOf returns what was decided about the finding.
func StandingOf(finding *v1alpha1.Finding) Standing {
	return Standing{
		UserStatus: UserStatus(finding), Triage: finding.Spec.Triage, Stale: Stale(finding), Facts: Basis(&finding.Spec),
	}
}

// Changes returns the members of spec.triage that the decision changes, as a JSON merge patch has them; none where it
// changes nothing. Reason and end belong to a decision: another userStatus comes without those of the one before, and
// to repeat one that has ended puts it in force again. To repeat a stale decision is one, about the facts as they are.
func (d Decision) Changes(s Standing) map[string]any {
	out := map[string]any{}
	another := d.UserStatus != nil && *d.UserStatus != s.UserStatus
	if !another && s.UserStatus == v1alpha1.UserStatusOpen {
		// Without its end, a decision that has ended would be in force again.
		d.Reason, d.ExpiresAt = nil, nil
	}
	switch {
	case another:
		d.begin(s, out)
	case d.UserStatus != nil && s.Stale && s.Triage.Basis != s.Facts:
		out["basis"] = s.Facts
	}
	if reason := d.reason(another, s.Triage.Reason); reason != s.Triage.Reason {
		out["reason"] = orNull(reason, reason == "")
	}
	if end := d.end(another, s.Triage.ExpiresAt); !end.Equal(s.Triage.ExpiresAt) {
		out["expiresAt"] = orNull(end, end == nil)
	}
	if d.Comments != nil && *d.Comments != s.Triage.Comments {
		out["comments"] = *d.Comments
	}
	return out
}

// begin is for a decision other than the one in force.
func (d Decision) begin(s Standing, out map[string]any) {
	if *d.UserStatus != s.Triage.UserStatus {
		out["userStatus"] = *d.UserStatus
	}
	if s.Facts != "" || s.Triage.Basis != "" {
		out["basis"] = orNull(s.Facts, *d.UserStatus == v1alpha1.UserStatusOpen)
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

func orNull(value any, null bool) any {
	if null {
		return nil
	}
	return value
}
