package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const (
	policiesResource = "triagepolicies"
	policyNoun       = "triage policy"
)

// Policies returns all policies of a namespace as they are stored now. Unreadable policies are left out.
func (c *Client) Policies(ctx context.Context, namespace string) ([]*v1alpha1.TriagePolicy, error) {
	return listOf[*v1alpha1.TriagePolicy](ctx, c, namespace, "triage policies")
}

// Policy returns the policy as it is stored now.
func (c *Client) Policy(ctx context.Context, namespace, name string) (*v1alpha1.TriagePolicy, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, problem.NotFound(policyNoun) // no resource can have that name
	}
	policy := &v1alpha1.TriagePolicy{}
	if err := kube.Get(ctx, c.rest, namespace, name, policy); err != nil {
		return nil, explainPolicy(name, err)
	}
	return policy, nil
}

// CreatePolicy stores a policy and returns it once the controllers have observed its spec, or as it is after
// ten seconds.
func (c *Client) CreatePolicy(ctx context.Context, policy *v1alpha1.TriagePolicy) (*v1alpha1.TriagePolicy, error) {
	created := &v1alpha1.TriagePolicy{}
	err := func() error {
		ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
		defer cancel()
		return c.rest.Post().Namespace(policy.Namespace).Resource(policiesResource).
			Param("fieldManager", v1alpha1.APIFieldManager).Body(policy).Do(ctx).Into(created)
	}()
	if err != nil {
		return nil, explainPolicy(policy.Name, err)
	}
	return await(ctx, c, created, observed), nil
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
}

// SetPolicyMode changes a policy's mode and returns the policy once the controllers have observed it, or as it
// is after ten seconds. If the policy already has that mode, nothing is written and the author stays.
func (c *Client) SetPolicyMode(ctx context.Context, namespace, name string,
	change ModeChange) (*v1alpha1.TriagePolicy, error) {
	trying, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		policy, err := c.Policy(trying, namespace, name)
		if err != nil {
			return nil, err
		}
		if change.Generation != nil && int64(*change.Generation) != policy.Generation {
			return nil, problem.PreconditionFailed("the policy has changed since: look at it as it is now").In("generation")
		}
		if mode := policy.Spec.Mode; mode == change.Mode || mode == "" && change.Mode == v1alpha1.PolicyPreview {
			return await(ctx, c, policy, observed), nil
		}
		changed, err := c.patchPolicy(trying, policy, map[string]any{"mode": change.Mode, "by": change.By})
		if err == nil {
			return await(ctx, c, changed, observed), nil
		}
		if !apierrors.IsConflict(err) || trying.Err() != nil {
			return nil, explainPolicy(name, err)
		}
	}
}

func (c *Client) patchPolicy(ctx context.Context, policy *v1alpha1.TriagePolicy,
	spec map[string]any) (*v1alpha1.TriagePolicy, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": policy.ResourceVersion},
		"spec":     spec,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	changed := &v1alpha1.TriagePolicy{}
	return changed, c.rest.Patch(types.MergePatchType).
		Namespace(policy.Namespace).Resource(policiesResource).Name(policy.Name).
		Param("fieldManager", v1alpha1.APIFieldManager).Body(patch).Do(ctx).Into(changed)
}

// explainPolicy translates an error of the API server for clients that know nothing of it.
func explainPolicy(name string, err error) error {
	var known *problem.Problem
	switch {
	case errors.As(err, &known):
		return err
	case apierrors.IsAlreadyExists(err):
		return problem.Refused(fmt.Errorf("another triage policy is called %s: give another name, or none", name))
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return problem.Refused(errPolicyQuota)
	default:
		return explain(policyNoun, fmt.Errorf("store the triage policy: %w", err))
	}
}

var errPolicyQuota = errors.New("the organization has as many triage policies as its quota allows: " +
	"delete some, or raise spec.quotas.triagePolicies of the Organization")
