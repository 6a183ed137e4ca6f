package handlers

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// policiesPath is where triage policies are served.
const policiesPath = "/v2/triage-policies/"

// CreateTriagePolicy is an operation of the contract.
func (b *Backend) CreateTriagePolicy(ctx context.Context, request Request) (Response, error) {
	var given openapi.TriagePolicyRequest
	if err := request.Body.Into(&given); err != nil {
		return Response{}, err
	}
	spec, err := policySpecOf(&given)
	if err != nil {
		return Response{}, err
	}
	spec.By = request.Author()
	policy := &v1alpha1.TriagePolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TriagePolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: policyName()},
		Spec:       spec,
	}
	if given.Name != nil && *given.Name != "" {
		name, err := nameIn("name", *given.Name)
		if err != nil {
			return Response{}, err
		}
		policy.Name = string(name)
	}
	stored, err := b.Cluster.CreatePolicy(ctx, policy)
	if err != nil {
		return Response{}, err
	}
	return policyResponse(http.StatusCreated, stored)
}

// policyName returns a random, unique name.
func policyName() string { return "policy-" + strings.ToLower(rand.Text()[:10]) }

// policySpecOf returns the spec that the request asks for. Values that the resource's schema would reject are
// refused here, with the names of the REST API.
func policySpecOf(given *openapi.TriagePolicyRequest) (spec v1alpha1.TriagePolicySpec, err error) {
	spec = v1alpha1.TriagePolicySpec{
		Match: given.Match, Mode: v1alpha1.PolicyPreview,
		Set:         v1alpha1.PolicyDecision{UserStatus: v1alpha1.PolicyStatus(given.Set.UserStatus)},
		Priority:    int32(ptr.Deref(given.Priority, 0)),    //nolint:gosec // bounded
		MaxFindings: int32(ptr.Deref(given.MaxFindings, 0)), //nolint:gosec // bounded
	}
	if given.Mode != nil {
		spec.Mode = policyModeOf(*given.Mode)
	}
	if given.Set.Reason != nil {
		spec.Set.Reason = v1alpha1.DecisionReason(*given.Set.Reason)
	}
	spec.Set.Comment = ptr.Deref(given.Set.Comment, "")
	if spec.Set.UserStatus == v1alpha1.PolicyStatus(v1alpha1.UserStatusMuted) && spec.Set.Reason == "" {
		return spec, problem.InvalidBody("set.reason is required to mute").In("set.reason").Coded(problem.CodeMissing)
	}
	if err := checkMatch(given.Match); err != nil {
		return spec, err
	}
	if spec.ValidFrom, err = momentOf("valid_from", given.ValidFrom); err != nil {
		return spec, err
	}
	if spec.ValidUntil, err = momentOf("valid_until", given.ValidUntil); err != nil || spec.ValidUntil == nil {
		return spec, err
	}
	if !spec.ValidUntil.After(apitime.Now()) ||
		spec.ValidFrom != nil && !spec.ValidUntil.After(spec.ValidFrom.Time) {
		return spec, problem.InvalidBody("valid_until must be in the future and after valid_from").In("valid_until")
	}
	return spec, nil
}

// checkMatch refuses an invalid expression.
func checkMatch(match string) error {
	if match == "" {
		return problem.InvalidBody("match is empty: give an expression").In("match").Coded(problem.CodeMissing)
	}
	_, err := triagepolicy.Compile(match)
	if wrong, is := triagepolicy.IsCompileError(err); is {
		return problem.InvalidBody("match does not compile: " + wrong.Error()).In("match")
	}
	return err
}

// policyModeOf returns the stored form of a mode.
func policyModeOf(mode openapi.TriagePolicyMode) v1alpha1.PolicyMode {
	if mode == openapi.TriagePolicyModeApply {
		return v1alpha1.PolicyApply
	}
	return v1alpha1.PolicyPreview
}

// momentOf parses a time in a body, truncated to seconds as it is stored.
func momentOf(member string, text *string) (*v1alpha1.Time, error) {
	if text == nil {
		return nil, nil //nolint:nilnil // what is not given has no time
	}
	at, err := v1alpha1.ParseTime(*text)
	if err != nil {
		return nil, problem.InvalidBody(member + ": " + err.Error()).In(member)
	}
	return new(v1alpha1.NewTime(at.Time)), nil
}
