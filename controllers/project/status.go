package project

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observeSpec records when the spec last changed and its effective values.
func (r *Reconciler) observeSpec(_ context.Context, s *scope) error {
	status, effective := s.Status, s.Object.Spec.InEffect()
	s.ObserveSpec(&status.ObservedGeneration, &status.UpdatedAt)
	status.BusinessCriticality = effective.BusinessCriticality
	status.Exposure = effective.Exposure
	status.Summary = effective.Summary
	return nil
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
