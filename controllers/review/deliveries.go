package review

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/internal/transitions"
)

// emitLast makes the deliveries that the review owes, since that is impossible once it is deleted.
// Those that cannot be made now are dropped: an endpoint's backlog or a quota must not block the
// deletion.
func (r *Reconciler) emitLast(ctx context.Context, s *scope) error {
	if len(transitions.History{Transitions: s.Status.Transitions, EmittedSeq: s.Status.EmittedSeq}.Owed()) == 0 {
		return nil
	}
	write := func(ctx context.Context) (bool, error) { return s.Store(ctx, r.Client) }
	err := r.ledger.EmitLast(ctx, s.Object, write)
	if apierrors.IsForbidden(err) {
		ctrl.LoggerFrom(ctx).Error(err, "a review goes before its last events were made")
		err = nil
	}
	return err
}
