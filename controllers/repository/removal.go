package repository

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/controllers/internal/removal"
)

// observeRemoval records how many objects are left that go along, and the counts with them. Both
// are left as they were where little has changed: see removal.Progress.
func (r *Reconciler) observeRemoval(ctx context.Context, s *scope) (ctrl.Result, error) {
	known, err := r.scansOf(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	left := r.projects.Total(s.key()) + r.findings.Total(s.key()) + r.reviews.Total(s.key()) + int32(len(known)) //nolint:gosec // fewer than etcd holds
	progress := removal.Progress(s.before.Removal, left, s.now)
	if progress == s.before.Removal {
		return ctrl.Result{}, nil
	}
	s.repository.Status.Removal = progress
	return r.observeCounts(ctx, s)
}

// removeChildren removes a batch of what belongs to the repository and comes back, until the
// API server says that nothing is left; then it lets the repository go. Projects go first and
// take their own findings and scans along, as reviews do with their issues; what names the
// repository and a project that is not there is left for us. What is made in the meantime is caught by the next look.
func (r *Reconciler) removeChildren(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(s.repository, v1alpha1.CleanupFinalizer) {
		s.released = true
		return ctrl.Result{}, nil
	}
	for _, child := range []struct {
		kind    client.Object
		message string
	}{
		{&v1alpha1.Project{}, "The repository is being deleted; its projects are being removed."},
		{&v1alpha1.Finding{}, "The repository is being deleted; its findings are being removed."},
		{&v1alpha1.Scan{}, "The repository is being deleted; its scans are being removed."},
		{&v1alpha1.Review{}, "The repository is being deleted; its reviews are being removed."},
	} {
		again, err := r.remover.Batch(ctx, child.kind, s.repository.Namespace, repositoryField, s.repository.Name)
		if err != nil {
			return ctrl.Result{}, err
		}
		if again > 0 {
			r.progress(s, child.message)
			return ctrl.Result{RequeueAfter: again}, nil
		}
	}
	s.released = true
	return ctrl.Result{}, patch.RemoveFinalizer(ctx, r.client, s.repository, v1alpha1.CleanupFinalizer)
}

// progress says what is going on; status.removal says how much is left.
func (r *Reconciler) progress(s *scope, message string) {
	ready := v1alpha1.FindCondition(s.before.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonDeleting {
		r.recorder.Eventf(s.repository, nil, corev1.EventTypeNormal, v1alpha1.ReasonDeleting, "Remove",
			"Removing the repository's projects (%d), findings (%d of them not closed), scans and reviews: %d objects in all.",
			s.repository.Status.Projects, s.repository.Status.Counts.Findings, s.repository.Status.Removal.Total)
	}
	conditions.Set(&s.repository.Status.Conditions, conditions.Verdict{
		Reason: v1alpha1.ReasonDeleting, Message: message,
	}, s.repository.Generation, s.now)
}
