package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// world holds everything in a namespace, except findings, that policies depend on.
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
	_, err := s.eachPage(ctx, kind, 0, inNamespace(s.namespace), func(page []unstructured.Unstructured) error {
		for _, item := range page {
			object, err := decode[T](item)
			if err != nil {
				return fmt.Errorf("read %s %s: %w", kind, item.GetName(), err)
			}
			all[item.GetName()] = &object
		}
		return nil
	})
	return all, err
}

func inNamespace(namespace string) client.ListOptions {
	return client.ListOptions{Namespace: namespace}
}

// accepted checks with the API server, by a dry run, that it accepts the policies. A user who may not write policies
// may still test them: the report then notes that this was not checked.
func (t *trials) accepted(ctx context.Context, s *session) (errs []error) {
	for _, trial := range t.all {
		switch err := s.dryApply(ctx, trial.filed); {
		case err == nil:
		case apierrors.IsForbidden(err):
			trial.report.note("you may not write policies here, so the API server was not asked whether it accepts this one")
		default:
			errs = append(errs, fmt.Errorf("%s: the API server refuses policy %s: %w", trial.filed.source, trial.filed.Name, err))
		}
	}
	return errs
}

// dryApply applies the policy as kubectl apply --server-side --dry-run=server does.
func (s *session) dryApply(ctx context.Context, policy *filedPolicy) error {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(policyKind)
	object.SetName(policy.Name)
	object.SetNamespace(policy.Namespace)
	object.SetLabels(policy.Labels)
	object.SetAnnotations(policy.Annotations)
	object.Object["spec"] = policy.declared
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.DryRunAll, client.ForceOwnership,
		client.FieldOwner(fieldManager))
}
