package main

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// world holds everything in a namespace that policies depend on, except findings.
type world struct {
	policies     map[string]*v1alpha1.TriagePolicy
	projects     map[string]*v1alpha1.Project
	repositories map[string]*v1alpha1.Repository
}

func (w *world) empty() bool { return len(w.policies)+len(w.projects)+len(w.repositories) == 0 }

func readWorld(ctx context.Context, s *session) (*world, error) {
	w := &world{}
	var err error
	if w.policies, err = readAll[v1alpha1.TriagePolicy](ctx, s, "TriagePolicy"); err != nil {
		return nil, err
	}
	if w.projects, err = readAll[v1alpha1.Project](ctx, s, "Project"); err != nil {
		return nil, err
	}
	w.repositories, err = readAll[v1alpha1.Repository](ctx, s, "Repository")
	return w, err
}

// readAll returns the objects of a kind in the session's namespace, by name.
func readAll[T any](ctx context.Context, s *session, kind string) (map[string]*T, error) {
	all := map[string]*T{}
	err := s.eachPage(ctx, kind, 0, s.inNamespace(), func(page []unstructured.Unstructured) error {
		for item, object := range readable[T](s, page) {
			all[item.GetName()] = object
		}
		return nil
	})
	return all, err
}
