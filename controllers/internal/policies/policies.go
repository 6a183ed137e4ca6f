// Package policies provides controllers with the compiled TriagePolicies in force, and the facts that they evaluate.
package policies

import (
	"context"
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
	err     error
}

// NewJudge returns a Judge with the policies that are in force in the namespace now.
func NewJudge(ctx context.Context, cache client.Reader, namespace string, now time.Time) (*Judge, error) {
	inForce, err := InForce(ctx, cache, namespace)
	return &Judge{cache: cache, inForce: inForce, now: now}, err
}

// Of returns a findingstate.Judge. If the facts of a finding cannot be read, it keeps its verdict, and Err returns the
// error. Without policies, it looks nothing up.
func (j *Judge) Of(ctx context.Context) findingstate.Judge {
	return func(finding *v1alpha1.Finding) *v1alpha1.FindingVerdict {
		if len(j.inForce) == 0 {
			return nil
		}
		facts, err := Facts(ctx, j.cache, finding)
		if err != nil {
			j.err = err
			return finding.Status.Verdict
		}
		if decides := triagepolicy.First(j.inForce, facts, j.now); decides != nil {
			return decides.Verdict()
		}
		return nil
	}
}

// Err returns the last error.
func (j *Judge) Err() error { return j.err }

// Differs reports whether judge returns another verdict, or panics: the reconcile of that object reports the panic, and
// the other objects are still judged.
func Differs(judge func() *v1alpha1.FindingVerdict, verdict *v1alpha1.FindingVerdict) bool {
	differs := false
	err := safely.Func(func() error {
		differs = !findingstate.SameVerdict(judge(), verdict)
		return nil
	})()
	return differs || err != nil
}
