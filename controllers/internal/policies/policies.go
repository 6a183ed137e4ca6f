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

// Book reads policies and facts from the manager's cache. It is safe for concurrent use.
type Book struct{ cache client.Reader }

// NewBook returns a Book that reads from the cache.
func NewBook(cache client.Reader) *Book { return &Book{cache: cache} }

// Compile compiles the expression, or returns the cached program.
func (b *Book) Compile(match string) (*triagepolicy.Program, error) { return programs.compile(match) }

// InForce returns the namespace's policies in force, in the order in which they decide.
func (b *Book) InForce(ctx context.Context, namespace string) ([]triagepolicy.Policy, error) {
	list := &v1alpha1.TriagePolicyList{}
	if err := b.cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the triage policies: %w", err)
	}
	return triagepolicy.InForce(list.Items, b.Compile), nil
}

// Facts returns the facts of a finding, with its project and repository if they exist.
func (b *Book) Facts(ctx context.Context, finding *v1alpha1.Finding) (*triagepolicy.Facts, error) {
	facts := &triagepolicy.Facts{Finding: finding}
	project, repository := &v1alpha1.Project{}, &v1alpha1.Repository{}
	found, err := reconcile.Exists(ctx, b.cache, project, finding.Namespace, finding.Spec.ProjectRef.Name)
	if err != nil {
		return nil, err
	}
	if found {
		facts.Project = project
	}
	found, err = reconcile.Exists(ctx, b.cache, repository, finding.Namespace, finding.Spec.RepositoryRef.Name)
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
	book    *Book
	inForce []triagepolicy.Policy
	now     time.Time
	err     error
}

// Judge returns a Judge with the policies that are in force in the namespace now.
func (b *Book) Judge(ctx context.Context, namespace string, now time.Time) (*Judge, error) {
	inForce, err := b.InForce(ctx, namespace)
	return &Judge{book: b, inForce: inForce, now: now}, err
}

// Of returns a findingstate.Judge. If the facts of a finding cannot be read, it keeps its verdict, and Err returns the
// error. Without policies, it looks nothing up.
func (j *Judge) Of(ctx context.Context) findingstate.Judge {
	return func(finding *v1alpha1.Finding) *v1alpha1.FindingVerdict {
		if len(j.inForce) == 0 {
			return nil
		}
		facts, err := j.book.Facts(ctx, finding)
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
