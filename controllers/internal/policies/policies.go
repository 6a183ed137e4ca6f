// Package policies provides controllers with the compiled TriagePolicies in force, and the facts that they evaluate.
package policies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/safely"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// InForce returns the namespace's policies in force, in the order in which they decide.
func InForce(ctx context.Context, cache client.Reader, namespace string) ([]triagepolicy.Policy, error) {
	list := &v1alpha1.TriagePolicyList{}
	if err := cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the triage policies: %w", err)
	}
	return triagepolicy.InForce(list.Items, Compile), nil
}

// Facts returns the facts of a finding, with its project and repository if they exist.
func Facts(ctx context.Context, cache client.Reader, finding *v1alpha1.Finding) (*triagepolicy.Facts, error) {
	facts := &triagepolicy.Facts{Finding: finding}
	project, repository := &v1alpha1.Project{}, &v1alpha1.Repository{}
	found, err := reconcile.Exists(ctx, cache, project, finding.Namespace, finding.Spec.ProjectRef.Name)
	if err != nil {
		return nil, err
	}
	if found {
		facts.Project = project
	}
	found, err = reconcile.Exists(ctx, cache, repository, finding.Namespace, finding.Spec.RepositoryRef.Name)
	if err != nil {
		return nil, err
	}
	if found {
		facts.Repository = repository
	}
	return facts, nil
}

// Judge evaluates the policies over findings, as of one time.
type Judge struct {
	cache   client.Reader
	inForce []triagepolicy.Policy
	now     time.Time
}

// NewJudge returns a Judge with the policies that are in force in the namespace now.
func NewJudge(ctx context.Context, cache client.Reader, namespace string, now time.Time) (*Judge, error) {
	inForce, err := InForce(ctx, cache, namespace)
	return &Judge{cache: cache, inForce: inForce, now: now}, err
}

// Verdict returns the policies' verdict on the finding, without its time; nil if none decides. Without policies, it
// looks nothing up.
func (j *Judge) Verdict(ctx context.Context, finding *v1alpha1.Finding) (*v1alpha1.FindingVerdict, error) {
	if len(j.inForce) == 0 {
		return nil, nil //nolint:nilnil // no verdict is no error
	}
	facts, err := Facts(ctx, j.cache, finding)
	if err != nil {
		return nil, err
	}
	if decides := triagepolicy.First(j.inForce, facts, j.now); decides != nil {
		return decides.Verdict(), nil
	}
	return nil, nil //nolint:nilnil // no verdict is no error
}

// Differs reports whether judge returns another verdict, or panics: the reconcile of that object reports the panic, and
// the other objects are still judged. If judge fails, it returns false and the error.
func Differs(judge func() (*v1alpha1.FindingVerdict, error), verdict *v1alpha1.FindingVerdict) (bool, error) {
	differs := false
	err := safely.Func(func() error {
		judged, err := judge()
		differs = err == nil && !findingstate.SameVerdict(judged, verdict)
		return err
	})()
	if _, panicked := errors.AsType[*safely.Panic](err); panicked {
		return true, nil
	}
	return differs, err
}
