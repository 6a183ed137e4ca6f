package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/cluster"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// stored is a resource that users decide about, as the API server stores it.
type stored interface {
	comparable
	kube.Object
}

// shown is such a resource in the read model.
type shown[T stored] interface {
	// Object returns the parts of the resource that a decision needs.
	Object() T
	// Standing returns the decisions made about it so far.
	Standing() findingstate.Standing
	// Tag returns the entity tag of the state that is shown.
	Tag() string
}

// subject is what a request decides about: T is the stored type, I the type in the read model.
type subject[T stored, I shown[T]] struct {
	id string
	// is reports whether a resource is the one that the request means.
	is func(T) bool
	// find returns the organization's resource with the id. apply adds an object that the API server returned
	// to the model.
	find  func(organization, id string) (I, bool)
	apply func(T) (I, error)
	store *cluster.Triager[T]
}

// known returns the organization's resource with the id as the model shows it. A resource missing in the model is read
// from the API server, because another replica may already have shown it.
func (s subject[T, I]) known(ctx context.Context, request Request) (none I, err error) {
	if item, there := s.find(request.Organization, s.id); there {
		return item, nil
	}
	stored, err := s.store.Stored(ctx, request.Namespace, s.id)
	if err != nil {
		return none, err
	}
	return s.apply(stored)
}

// selection is the finding that a request means, by all the ids in the request.
type selection struct {
	finding string
	// repositories and projects that the finding must belong to, all of them.
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

func (b *Backend) finding(selected selection) subject[*v1alpha1.Finding, *readmodel.Item] {
	return subject[*v1alpha1.Finding, *readmodel.Item]{
		id: selected.finding, is: selected.agrees, find: b.Model.Finding, apply: b.Model.Apply,
		store: b.Cluster.Findings,
	}
}

func (b *Backend) reviewIssue(id string) subject[*v1alpha1.ReviewIssue, *readmodel.Issue] {
	return subject[*v1alpha1.ReviewIssue, *readmodel.Issue]{
		id: id, is: func(*v1alpha1.ReviewIssue) bool { return true },
		find: b.Model.ReviewIssue, apply: b.Model.ApplyIssue,
		store: b.Cluster.ReviewIssues,
	}
}

// decide stores a decision and returns the resource as it now is. The result is in the read model, so that a
// client that has received the response reads it from now on.
func decide[T stored, I shown[T]](ctx context.Context, request Request, about subject[T, I],
	decided findingstate.Decision) (none I, err error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.Patience)
	defer cancel()
	noun := about.store.Noun
	item, err := about.known(ctx, request)
	if err != nil {
		return none, err
	}
	decision := cluster.Decision{Decision: decided, By: request.Author()}
	if !request.IfMatch.NamesStates() {
		// The decision is based on the facts shown to the client, not on those that a scan writes meanwhile. If the client
		// names a state, that one is changed, because this replica may have shown an older one.
		decision.Basis = item.Standing().Facts
	}
	done, err := about.store.Turn(ctx, item.Object())
	if err != nil {
		return none, err
	}
	defer done()
	// A writer that had its turn before may have changed it.
	item, there := tracing.Do(ctx, "read model: "+noun, func() (I, bool) {
		return about.find(request.Organization, about.id)
	})
	if !there {
		return none, problem.NotFound(noun)
	}
	known := cluster.Known[T]{Object: item.Object(), Standing: item.Standing()}
	written, err := about.store.Triage(ctx, known, about.check(request, decided, item, known), decision)
	if err != nil {
		return none, err
	}
	return tracing.Do(ctx, "read model: apply "+noun, func() (I, error) { return about.apply(written) })
}

// check returns a function that refuses a decision about the current state of the resource. item shows the known state.
func (s subject[T, I]) check(request Request, decided findingstate.Decision, item I,
	known cluster.Known[T]) func(current cluster.Known[T]) error {
	return func(current cluster.Known[T]) (err error) {
		if !s.is(current.Object) {
			return problem.NotFound(s.store.Noun)
		}
		if err := checkGrounds(decided, current.Standing.InForce(apitime.Now())); err != nil {
			return err
		}
		if !request.IfMatch.Given() {
			return nil
		}
		present := item
		if current.Object != known.Object {
			// Add the state that the API server has just returned to the model.
			if present, err = s.apply(current.Object); err != nil {
				return err
			}
		}
		if !request.IfMatch.Names(present.Tag()) {
			return problem.PreconditionFailed("the " + s.store.Noun + " has changed since; read it again")
		}
		return nil
	}
}
