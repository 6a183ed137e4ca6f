package review

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/transitions"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// kind is what the ledger of deliveries must know of reviews.
var kind = ledger.Kind{
	Name:   "Review",
	Prefix: webhooks.ReviewEventPrefix,
	Object: &v1alpha1.Review{},
	List:   &v1alpha1.ReviewList{},
	Book: func(object client.Object) ledger.Book {
		status := &object.(*v1alpha1.Review).Status
		return ledger.Book{Transitions: &status.Transitions, EmittedSeq: &status.EmittedSeq}
	},
	Data: func(object client.Object, t v1alpha1.Transition) any {
		return webhooks.DataOfReview(object.(*v1alpha1.Review), t)
	},
}

// makeRoom emits what is owed before the status is full of it.
func (r *Reconciler) makeRoom(ctx context.Context, s *scope) (ctrl.Result, error) {
	return ctrl.Result{}, r.ledger.MakeRoom(ctx, s.review, s.writer(r.client))
}

// emitLast makes what the review owes, since nobody can once it is gone. What cannot be made
// now goes with the review: an endpoint's backlog, or a quota, must not hold it.
func (r *Reconciler) emitLast(ctx context.Context, s *scope) (ctrl.Result, error) {
	status := &s.review.Status
	if len(transitions.History{Transitions: status.Transitions, EmittedSeq: status.EmittedSeq}.Owed()) == 0 {
		return ctrl.Result{}, nil
	}
	_, err := r.ledger.Settle(ctx, s.review, s.writer(r.client))
	if apierrors.IsForbidden(err) {
		ctrl.LoggerFrom(ctx).Error(err, "a review goes before its last events were made")
		err = nil
	}
	return ctrl.Result{}, err
}

// writer stores the status where anything in it differs.
func (s *scope) writer(c client.Client) ledger.Write {
	return func(ctx context.Context) (bool, error) {
		written, err := patch.Status(ctx, c, s.review, patch.Stored(s.before.ObservedGeneration, s.before), s.review.Status)
		if written {
			s.before = *s.review.Status.DeepCopy()
		}
		return written, err
	}
}
