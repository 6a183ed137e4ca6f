package handlers

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// The members of a body with the reason and the end of a decision.
const (
	memberReason    = "reason"
	memberExpiresAt = "expires_at"
)

// noGrounds as the value of such a member removes the stored value.
const noGrounds = "none"

// givenDecision returns the decision with its reason and end.
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
	if *end == noGrounds {
		decision.ExpiresAt = &v1alpha1.Time{}
		return decision, nil
	}
	var err error
	decision.ExpiresAt, err = endOf(*end)
	return decision, err
}

// endOf parses the time when a decision ends.
func endOf(text string) (*v1alpha1.Time, error) {
	at, err := momentOf(memberExpiresAt, &text)
	if err != nil {
		return nil, err
	}
	if !at.After(apitime.Now()) {
		return nil, problem.InvalidBody(memberExpiresAt + " must be in the future").In(memberExpiresAt)
	}
	return at, nil
}

// checkGrounds refuses a reason or an end without a decision. status is the decision in force so far.
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
