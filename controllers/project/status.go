package project

import (
	"cmp"
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// observeSpec records when the spec last changed and its effective values.
func (r *Reconciler) observeSpec(_ context.Context, s *scope) error {
	status, effective := s.Status, inEffect(s.Object.Spec.User, s.Object.Spec.Scanner)
	s.ObserveSpec(&status.ObservedGeneration, &status.UpdatedAt)
	status.BusinessCriticality = effective.BusinessCriticality
	status.Exposure = effective.Exposure
	status.Summary = effective.Summary
	return nil
}

// inEffect takes each member from the user's assessment if it is set, else from the scanner's.
func inEffect(user, scanner v1alpha1.ProjectAssessment) v1alpha1.ProjectAssessment {
	return v1alpha1.ProjectAssessment{
		BusinessCriticality: cmp.Or(user.BusinessCriticality, scanner.BusinessCriticality),
		Exposure:            cmp.Or(user.Exposure, scanner.Exposure),
		Summary:             cmp.Or(user.Summary, scanner.Summary),
	}
}

// observeFindings records how many findings are not closed.
func (r *Reconciler) observeFindings(_ context.Context, s *scope) error {
	s.Status.FindingsCount = r.findings.Count(client.ObjectKeyFromObject(s.Object), openClass)
	return nil
}

func (r *Reconciler) observeRepository(ctx context.Context, s *scope) error {
	return s.JudgeByRepository(ctx, r.Client, s.Object.Spec.RepositoryRef.Name, "project",
		"The status is that of the spec.")
}
