package handlers

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/cluster"
	"github.com/appsec-dev/findings-operator/apiserver/etag"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// keyPrefix comes before the key's name where a finding records who decided.
const keyPrefix = "apikey/"

// selection is the finding that a request means, by all the ids that it gave.
type selection struct {
	finding string
	// repositories and projects that the finding must be in, each of them.
	repositories, projects []string
}

func (s selection) agrees(finding *v1alpha1.Finding) bool {
	for _, repository := range s.repositories {
		if string(finding.Spec.RepositoryRef.Name) != repository {
			return false
		}
	}
	for _, project := range s.projects {
		if string(finding.Spec.ProjectRef.Name) != project {
			return false
		}
	}
	return true
}

// decide stores a decision and returns the finding as it now is. What it returns is in the
// read model, so that whoever took the answer reads it from here on.
func (b *Backend) decide(ctx context.Context, request Request, selected selection,
	decided findingstate.Decision) (*readmodel.Item, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.Patience)
	defer cancel()
	item, there := b.Model.Finding(request.Organization, selected.finding)
	if !there {
		return nil, problem.NotFound("finding")
	}
	known := item.Object()
	// What was seen counts, and not what a scan writes while the decision is on its way.
	decision := cluster.Decision{Decision: decided, By: keyPrefix + request.KeyName, Basis: item.Basis}
	done, err := b.Cluster.Turn(ctx, types.NamespacedName{Namespace: known.Namespace, Name: known.Name})
	if err != nil {
		return nil, err
	}
	defer done()
	// Whoever had the turn before has changed it.
	item, there = tracing.Do(ctx, "read model: finding", func() (*readmodel.Item, bool) {
		return b.Model.Finding(request.Organization, selected.finding)
	})
	if !there {
		return nil, problem.NotFound("finding")
	}
	known = item.Object()
	check := func(finding *v1alpha1.Finding) (err error) {
		if !selected.agrees(finding) {
			return problem.NotFound("finding")
		}
		if err := checkGrounds(decided, finding); err != nil {
			return err
		}
		if !request.IfMatch.Given() {
			return nil
		}
		shown := item
		if finding != known {
			// What the API server has just returned is in the model from here on.
			if shown, err = b.Model.Apply(finding); err != nil {
				return err
			}
		}
		return unchanged(request.IfMatch, shown)
	}
	written, err := b.Cluster.Triage(ctx, cluster.Known{Finding: known, Stale: item.Stale}, check, decision)
	if err != nil {
		return nil, err
	}
	return tracing.Do(ctx, "read model: apply finding", func() (*readmodel.Item, error) { return b.Model.Apply(written) })
}

// unchanged refuses a finding that is not in the state that the request is conditional on.
func unchanged(condition etag.Condition, item *readmodel.Item) error {
	if !condition.Names(item.Tag()) {
		return problem.PreconditionFailed("the finding has changed since; read it again")
	}
	return nil
}
