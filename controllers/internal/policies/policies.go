// Package policies gives controllers the TriagePolicies that decide, compiled, and the facts that they decide about.
package policies

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// Book reads policies and facts from the manager's cache. It is safe for concurrent use.
type Book struct{ cache client.Reader }

// NewBook returns a book that reads from that cache.
func NewBook(cache client.Reader) *Book { return &Book{cache: cache} }

// Compile compiles the expression, once.
func (b *Book) Compile(match string) (*triagepolicy.Program, error) { return programs.compile(match) }

// InForce are the namespace's policies that decide, in the order in which they do.
func (b *Book) InForce(ctx context.Context, namespace string) ([]triagepolicy.Policy, error) {
	list := &v1alpha1.TriagePolicyList{}
	if err := b.cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the triage policies: %w", err)
	}
	return triagepolicy.InForce(list.Items, b.Compile), nil
}

// Facts are those of a finding, with its project and its repository as far as they exist.
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

// Judge says what the policies decide about findings at one time.
type Judge struct {
	book    *Book
	inForce []triagepolicy.Policy
	now     time.Time
	err     error
}

// Judge returns that of the namespace as it is now.
func (b *Book) Judge(ctx context.Context, namespace string, now time.Time) (*Judge, error) {
	inForce, err := b.InForce(ctx, namespace)
	return &Judge{book: b, inForce: inForce, now: now}, err
}

// Of returns a findingstate.Judge. Where the facts of a finding cannot be read, it keeps its verdict, and Err returns
// why. Nothing is looked up where there are no policies.
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
