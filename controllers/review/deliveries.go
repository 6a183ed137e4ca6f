package review

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// refusalPatience is how long after its deletion a review waits for deliveries that the API server refuses: a starting
// one knows neither roles nor policies for a while.
const refusalPatience = 2 * time.Minute

// emitLast makes the deliveries that the review owes, since that is impossible once it is deleted.
// Those that cannot be made now are dropped: an endpoint's backlog, a quota or a missing right must not block the
// deletion.
func (r *Reconciler) emitLast(ctx context.Context, s *scope) error {
	if len(ledger.HistoryOf(s.Object).Owed()) == 0 {
		return nil
	}
	write := func(ctx context.Context) (bool, error) { return s.Store(ctx, r.Client) }
	err := r.ledger.EmitLast(ctx, s.Object, write)
	if blocks(err, s.Now.Sub(s.Object.DeletionTimestamp.Time)) {
		ctrl.LoggerFrom(ctx).Error(err, "a review goes before its last events were made")
		err = nil
	}
	return err
}

// blocks reports whether the error would block the removal of a review that was deleted that long ago.
func blocks(err error, deletedFor time.Duration) bool {
	return kube.IsQuotaExceeded(err) || apierrors.IsForbidden(err) && deletedFor > refusalPatience
}
