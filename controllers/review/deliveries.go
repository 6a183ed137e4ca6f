package review

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// emitLast makes the deliveries that the review owes, which is impossible once it is deleted. Deliveries that cannot be
// made now are dropped: an endpoint's backlog, a quota, a cluster's own policy or a missing right must not block the
// deletion.
func (r *Reconciler) emitLast(ctx context.Context, s *scope) error {
	if len(ledger.HistoryOf(s.Object).Owed()) == 0 {
		return nil
	}
	write := func(ctx context.Context) (bool, error) { return s.Store(ctx, r.Client) }
	err := r.ledger.EmitLast(ctx, s.Object, write)
	if r.blocks(client.ObjectKeyFromObject(s.Object), err) {
		ctrl.LoggerFrom(ctx).Error(err, "the review is removed before its last deliveries were created")
		err = nil
	}
	return err
}

// blocks notes how the last deliveries of a review ended, and reports whether the error still blocks its removal.
// Patience counts from the first of consecutive refusals, because the review may have been deleted long before the API
// server started.
func (r *Reconciler) blocks(review types.NamespacedName, err error) bool {
	if !kube.IsRefusal(err) {
		r.refused.Forget(review)
		return false
	}
	return r.refused.For(review, time.Now()) > reconcile.RefusalPatience || kube.IsQuotaExceeded(err)
}
