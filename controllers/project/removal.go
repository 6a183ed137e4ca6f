package project

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

// observeRemoval records how many objects are left that go along, and the count with them. Both
// are left as they were where little has changed: see removal.Progress.
func (r *Reconciler) observeRemoval(ctx context.Context, s *scope) (ctrl.Result, error) {
	known, err := r.scansOf(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	left := r.findings.Total(s.key()) + int32(len(known)) //nolint:gosec // fewer than etcd holds
	progress := removal.Progress(s.before.Removal, left, s.now)
	if progress == s.before.Removal {
		return ctrl.Result{}, nil
	}
	s.project.Status.Removal = progress
	return r.observeFindings(ctx, s)
}

// removeChildren removes a batch of what belongs to the project and comes back, until the API
// server says that nothing is left; then it lets the project go. Findings made in the
// meantime are caught by the next look.
func (r *Reconciler) removeChildren(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(s.project, v1alpha1.CleanupFinalizer) {
		s.released = true
		return ctrl.Result{}, nil
	}
	for _, child := range []struct {
		kind    client.Object
		message string
	}{
		{&v1alpha1.Finding{}, "The project is being deleted; its findings are being removed."},
		{&v1alpha1.Scan{}, "The project is being deleted; its scans are being removed."},
	} {
		again, err := r.remover.Batch(ctx, child.kind, s.project.Namespace, projectField, s.project.Name)
		if err != nil {
			return ctrl.Result{}, err
		}
		if again > 0 {
			r.progress(s, child.message)
			return ctrl.Result{RequeueAfter: again}, nil
		}
	}
	s.released = true
	return ctrl.Result{}, patch.RemoveFinalizer(ctx, r.client, s.project, v1alpha1.CleanupFinalizer)
}

// progress says what is going on; status.removal says how much is left.
func (r *Reconciler) progress(s *scope, message string) {
	ready := v1alpha1.FindCondition(s.before.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonDeleting {
		r.recorder.Eventf(s.project, nil, corev1.EventTypeNormal, v1alpha1.ReasonDeleting, "Remove",
			"Removing the project's findings, %d of them not closed, and its scans: %d objects in all.",
			s.project.Status.FindingsCount, s.project.Status.Removal.Total)
	}
	conditions.Set(&s.project.Status.Conditions, conditions.Verdict{
		Reason: v1alpha1.ReasonDeleting, Message: message,
	}, s.project.Generation, s.now)
}
