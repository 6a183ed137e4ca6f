package project

import (
	"cmp"
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
)

// claim makes sure that the project does not go without us. It comes first, so that nothing
// can be counted for a project that nobody would clean up after.
func (r *Reconciler) claim(ctx context.Context, s *scope) (ctrl.Result, error) {
	return ctrl.Result{}, patch.AddFinalizer(ctx, r.client, s.project, v1alpha1.CleanupFinalizer)
}

// observeSpec records when the spec last changed and what is in effect of it.
func (r *Reconciler) observeSpec(_ context.Context, s *scope) (ctrl.Result, error) {
	status := &s.project.Status
	updatedAt := lastwrite.UpdatedAt(s.project, lastwrite.Observed{
		Generation: status.ObservedGeneration, UpdatedAt: status.UpdatedAt,
	}, s.now)
	status.UpdatedAt = &updatedAt
	status.ObservedGeneration = s.project.Generation

	effective := inEffect(s.project.Spec.User, s.project.Spec.Scanner)
	status.BusinessCriticality = effective.BusinessCriticality
	status.Exposure = effective.Exposure
	status.Summary = effective.Summary
	return ctrl.Result{}, nil
}

// inEffect takes each member from people where they have said anything, else from scanners.
func inEffect(user, scanner v1alpha1.ProjectAssessment) v1alpha1.ProjectAssessment {
	return v1alpha1.ProjectAssessment{
		BusinessCriticality: cmp.Or(user.BusinessCriticality, scanner.BusinessCriticality),
		Exposure:            cmp.Or(user.Exposure, scanner.Exposure),
		Summary:             cmp.Or(user.Summary, scanner.Summary),
	}
}

// observeFindings records how many findings are not closed.
func (r *Reconciler) observeFindings(_ context.Context, s *scope) (ctrl.Result, error) {
	s.project.Status.FindingsCount = r.findings.Count(s.key(), openClass)
	return ctrl.Result{}, nil
}

// observeRepository records whether the repository is there. Nothing is retried where it is
// not: the watch on repositories wakes the project when it comes.
func (r *Reconciler) observeRepository(ctx context.Context, s *scope) (ctrl.Result, error) {
	name := s.project.Spec.RepositoryRef.Name
	err := r.client.Get(ctx, client.ObjectKey{Namespace: s.project.Namespace, Name: string(name)},
		&v1alpha1.Repository{}, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("look up repository %q: %w", name, err)
	}
	verdict := conditions.Ready("The status is that of the spec.")
	if err != nil {
		verdict = conditions.Verdict{
			Reason:  v1alpha1.ReasonRepositoryNotFound,
			Message: fmt.Sprintf("There is no Repository %q in this namespace: create it, or delete the project.", name),
		}
	}
	conditions.Set(&s.project.Status.Conditions, verdict, s.project.Generation, s.now)
	return ctrl.Result{}, nil
}
