package repository

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
)

// observeSpec records when the spec last changed.
func (r *Reconciler) observeSpec(_ context.Context, s *scope) error {
	s.ObserveSpec(&s.Status.ObservedGeneration, &s.Status.UpdatedAt)
	return nil
}

// observeCounts records how many findings are not closed, and how many projects there are.
func (r *Reconciler) observeCounts(_ context.Context, s *scope) error {
	key := client.ObjectKeyFromObject(s.Object)
	s.Status.Counts = v1alpha1.RepositoryCounts{
		Findings: r.findings.Total(key) - r.findings.Count(key, closedClass), // includes findings without a category
		Code:     r.findings.Count(key, string(v1alpha1.CategoryCode)),
		Package:  r.findings.Count(key, string(v1alpha1.CategoryPackage)),
		Secret:   r.findings.Count(key, string(v1alpha1.CategorySecret)),
	}
	s.Status.Projects = r.projects.Total(key)
	return nil
}

// observeScans records when a scan last succeeded. Scans are retired, so a recorded time stays if
// no scan is left to replace it.
func (r *Reconciler) observeScans(ctx context.Context, s *scope) error {
	_, succeeded, err := r.latest.Of(ctx, s.Object)
	if succeeded != nil {
		s.Status.LastScannedAt = succeeded.Spec.CompletedAt.DeepCopy()
	}
	return err
}

// judge records Ready: a repository has no references that could be missing.
func (r *Reconciler) judge(_ context.Context, s *scope) error {
	s.Judge(conditions.Ready("The status is that of the spec."))
	return nil
}
