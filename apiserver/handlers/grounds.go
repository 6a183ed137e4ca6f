package handlers

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// The members of a body that say why a decision is made, and when it ends.
const (
	memberReason    = "reason"
	memberExpiresAt = "expires_at"
)

// noGrounds as a value of one of them takes away what was there.
const noGrounds = "none"

// givenDecision reads what is decided, why, and when it ends.
func givenDecision(status *openapi.UserStatus, comments *string, reason *openapi.GivenReason,
	end *openapi.GivenEnd) (findingstate.Decision, error) {
	decision := findingstate.Decision{
		UserStatus: (*v1alpha1.UserStatus)(status), Comments: comments, Reason: (*v1alpha1.DecisionReason)(reason),
	}
	if reason != nil && *reason == noGrounds {
		decision.Reason = new(v1alpha1.DecisionReason)
	}
	if end == nil {
		return decision, nil
	}
	decision.ExpiresAt = &v1alpha1.Time{}
	if *end == noGrounds {
		return decision, nil
	}
	at, err := endOf(*end)
	*decision.ExpiresAt = at
	return decision, err
}

// endOf reads when a decision ends.
func endOf(text string) (v1alpha1.Time, error) {
	at, err := v1alpha1.ParseTime(text)
	if err != nil {
		return at, problem.InvalidBody(memberExpiresAt + ": " + err.Error()).In(memberExpiresAt)
	}
	at = v1alpha1.NewTime(at.UTC().Truncate(time.Second)) // as it is stored
	if !at.After(time.Now()) {
		return at, problem.InvalidBody(memberExpiresAt + " must be in the future").In(memberExpiresAt)
	}
	return at, nil
}

// checkGrounds refuses reasons and ends where nobody has decided. status is the decision in force until now.
func checkGrounds(decision findingstate.Decision, status v1alpha1.UserStatus) error {
	if decision.UserStatus != nil {
		status = *decision.UserStatus
	}
	if status != v1alpha1.UserStatusOpen {
		return nil
	}
	const detail = " belongs to a decision: user_status must be active or muted"
	switch {
	case decision.Reason != nil && *decision.Reason != "":
		return problem.InvalidBody(memberReason + detail).In(memberReason)
	case decision.ExpiresAt != nil && !decision.ExpiresAt.IsZero():
		return problem.InvalidBody(memberExpiresAt + detail).In(memberExpiresAt)
	}
	return nil
}
