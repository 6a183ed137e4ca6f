package repository

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/controllers/internal/scans"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
)

// claim makes sure that the repository does not go without us. It comes first, so that
// nothing can be counted for a repository that nobody would clean up after.
func (r *Reconciler) claim(ctx context.Context, s *scope) (ctrl.Result, error) {
	return ctrl.Result{}, patch.AddFinalizer(ctx, r.client, s.repository, v1alpha1.CleanupFinalizer)
}

// observeSpec records when the spec last changed.
func (r *Reconciler) observeSpec(_ context.Context, s *scope) (ctrl.Result, error) {
	status := &s.repository.Status
	updatedAt := lastwrite.UpdatedAt(s.repository, lastwrite.Observed{
		Generation: status.ObservedGeneration, UpdatedAt: status.UpdatedAt,
	}, s.now)
	status.UpdatedAt = &updatedAt
	status.ObservedGeneration = s.repository.Generation
	return ctrl.Result{}, nil
}

// observeCounts records how many findings are not closed, and how many projects there are.
func (r *Reconciler) observeCounts(_ context.Context, s *scope) (ctrl.Result, error) {
	s.repository.Status.Counts = v1alpha1.RepositoryCounts{
		Findings: r.findings.Total(s.key()) - r.findings.Count(s.key(), closedClass), // those of no category too
		Code:     r.findings.Count(s.key(), string(v1alpha1.CategoryCode)),
		Package:  r.findings.Count(s.key(), string(v1alpha1.CategoryPackage)),
		Secret:   r.findings.Count(s.key(), string(v1alpha1.CategorySecret)),
	}
	s.repository.Status.Projects = r.projects.Total(s.key())
	return ctrl.Result{}, nil
}

// observeScans records when a scan last succeeded. Scans are retired, so what was once
// recorded stands where no scan is left that says otherwise.
func (r *Reconciler) observeScans(ctx context.Context, s *scope) (ctrl.Result, error) {
	known, err := r.scansOf(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if at := scans.LastSuccess(known); at != nil {
		s.repository.Status.LastScannedAt = at
	}
	return ctrl.Result{}, nil
}

// scansOf are the repository's scans in the cache, not to be changed.
func (r *Reconciler) scansOf(ctx context.Context, s *scope) ([]v1alpha1.Scan, error) {
	known := &v1alpha1.ScanList{}
	if err := r.client.List(ctx, known, client.InNamespace(s.repository.Namespace),
		client.MatchingFields{repositoryField: s.repository.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the repository's scans: %w", err)
	}
	return known.Items, nil
}

// judge records that all is done: a repository refers to nothing that could be missing.
func (r *Reconciler) judge(_ context.Context, s *scope) (ctrl.Result, error) {
	conditions.Set(&s.repository.Status.Conditions,
		conditions.Ready("The status is that of the spec."), s.repository.Generation, s.now)
	return ctrl.Result{}, nil
}
