package render

import (
	"cmp"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// TriagePolicyJSON renders a policy. The same policy always gives the same bytes.
func TriagePolicyJSON(p *v1alpha1.TriagePolicy) ([]byte, error) {
	spec, status := &p.Spec, &p.Status
	return encodeNamed("triage policy", p.Name, &openapi.TriagePolicy{
		Id:    p.Name,
		Match: spec.Match,
		Set: openapi.TriagePolicyDecision{
			UserStatus: openapi.TriagePolicyDecisionUserStatus(spec.Set.UserStatus),
			Reason:     enum[openapi.DecisionReason](spec.Set.Reason),
			Comment:    spec.Set.Comment,
		},
		Mode:      policyMode(spec.Mode),
		Priority:  spec.Priority,
		ValidFrom: optionalSecond(spec.ValidFrom), ValidUntil: optionalSecond(spec.ValidUntil),
		MaxFindings: spec.Limit(),
		Generation:  p.Generation,
		Uid:         string(p.UID),
		Author:      spec.By,
		CreatedAt:   second(p.CreationTimestamp.Time),
		Observed:    status.ObservedGeneration == p.Generation,
		InForce:     status.InForce != nil,
		Matched:     status.Matched, Applied: status.Applied, WouldApply: status.WouldApply,
		Shadowed: status.Shadowed, ShadowedBy: stringsOf(status.ShadowedBy),
		Overridden: status.Overridden, Failed: status.Failed, Failure: policyFailure(status.Failure),
		Samples:       stringsOf(status.Samples),
		LastMatchedAt: optionalSecond(status.LastMatchedAt),
		CompileError:  compileError(status.Conditions),
		Conditions:    convert(status.Conditions, conditionOf),
	})
}

// policyMode returns the shown mode of a policy; the default is preview.
func policyMode(mode v1alpha1.PolicyMode) openapi.TriagePolicyMode {
	return openapi.TriagePolicyMode(strings.ToLower(string(cmp.Or(mode, v1alpha1.PolicyPreview))))
}

func policyFailure(failure *v1alpha1.PolicyFailure) openapi.TriagePolicyFailure {
	f := valueOf(failure)
	return openapi.TriagePolicyFailure{FindingId: string(f.Finding), Message: f.Message}
}

// compileError parses the message of the condition Compiled.
func compileError(conditions []v1alpha1.Condition) openapi.TriagePolicyCompileError {
	compiled := valueOf(v1alpha1.FindCondition(conditions, v1alpha1.ConditionCompiled))
	e, _ := triagepolicy.ParseQuoted(compiled.Message)
	return openapi.TriagePolicyCompileError{
		Line: int32(e.Line), Column: int32(e.Column), Message: e.Message, //nolint:gosec // an expression is short
	}
}

func conditionOf(c v1alpha1.Condition) openapi.ResourceCondition {
	return openapi.ResourceCondition{
		Type: c.Type, Status: openapi.ResourceConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
		ChangedAt: second(c.LastTransitionTime.Time),
	}
}
