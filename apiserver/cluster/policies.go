package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

const policyNoun = "triage policy"

// Policies calls each with every policy of a namespace as they are stored now. Unreadable policies are left out.
func (c *Client) Policies(ctx context.Context, namespace string, each func(*v1alpha1.TriagePolicy) error) error {
	return listOf(ctx, c, namespace, "triage policies", each)
}

// Policy returns the policy as it is stored now.
func (c *Client) Policy(ctx context.Context, namespace, name string) (*v1alpha1.TriagePolicy, error) {
	return read[*v1alpha1.TriagePolicy](ctx, c.rest, namespace, name, policyNoun)
}

// maxPolicies is the number of policies from which no further one is created. Previews count, because each change of a
// finding causes the matches of all policies to be counted again. It is not exact: concurrent requests do not see each
// other's policies.
const maxPolicies = 2 * triagepolicy.MaxInForce

// CreatePolicy stores a policy and returns it once the controllers have observed its spec, or as it is after
// ten seconds.
func (c *Client) CreatePolicy(ctx context.Context, policy *v1alpha1.TriagePolicy) (*v1alpha1.TriagePolicy, error) {
	stored, err := countOf[*v1alpha1.TriagePolicy](ctx, c, policy.Namespace)
	if err != nil {
		return nil, problem.TryAgain("the triage policies could not be counted", err)
	}
	if stored >= maxPolicies {
		return nil, problem.Refused(errTooManyPolicies)
	}
	created, err := create(ctx, c, policy, policyNoun, sameSpec)
	if err != nil {
		return nil, explainPolicy(policy.Name, err)
	}
	return await(ctx, c, created, observed, policyDeleted)
}

// policyDeleted is the detail for a policy that is deleted while a request waits for it.
const policyDeleted = "the triage policy was deleted in the meantime"

// sameSpec reports whether both policies have the same spec, which names the author, because anybody may have chosen
// the name.
func sameSpec(stored, sent *v1alpha1.TriagePolicy) bool {
	first, err := json.Marshal(stored.Spec)
	second, failed := json.Marshal(sent.Spec)
	return err == nil && failed == nil && bytes.Equal(first, second)
}

// observed reports whether a policy's status belongs to its present spec.
func observed(policy *v1alpha1.TriagePolicy) bool {
	return policy.Status.ObservedGeneration == policy.Generation
}

// ModeChange is a change of a policy's mode.
type ModeChange struct {
	Mode v1alpha1.PolicyMode
	By   string
	// Generation that the policy must still have; nil for any.
	Generation *int
	// UID that the policy must still have; empty for any.
	UID types.UID
}

// SetPolicyMode changes a policy's mode and returns the policy once the controllers have observed it, or as it
// is after ten seconds. If the policy already has that mode, nothing is written and the author stays.
func (c *Client) SetPolicyMode(ctx context.Context, namespace, name string,
	to ModeChange) (*v1alpha1.TriagePolicy, error) {
	members := func(policy *v1alpha1.TriagePolicy) (map[string]any, error) {
		if err := checkUID(policy, to.UID, "policy"); err != nil {
			return nil, err
		}
		if to.Generation != nil && int64(*to.Generation) != policy.Generation {
			return nil, problem.PreconditionFailed("the policy has changed since: look at it as it is now").In("generation")
		}
		if mode := cmp.Or(policy.Spec.Mode, v1alpha1.PolicyPreview); mode == to.Mode {
			return nil, nil
		}
		return map[string]any{"mode": to.Mode, "by": to.By}, nil
	}
	policy, err := change(ctx, c, namespace, name, policyNoun, members)
	if err != nil {
		return nil, explainPolicy(name, err)
	}
	return await(ctx, c, policy, observed, policyDeleted)
}

// explainPolicy translates an error of the API server for clients, which do not know the API server.
func explainPolicy(name string, err error) error {
	switch {
	case kube.IsAlreadyExists(err):
		return problem.Refused(fmt.Errorf("another triage policy is called %s: give another name, or none", name))
	case kube.IsQuotaExceeded(err):
		return problem.Refused(errPolicyQuota)
	default:
		return explain(policyNoun, err)
	}
}

var errTooManyPolicies = errors.New("the organization has twice as many triage policies as may be in force: " +
	"delete some with kubectl")

var errPolicyQuota = errors.New("the organization has as many triage policies as its quota allows: " +
	"delete some, or raise spec.quotas.triagePolicies of the Organization")
