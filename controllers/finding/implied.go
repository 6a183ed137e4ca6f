package finding

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// leaveImplied tells the loop that the status can be derived if it would hold only what follows from the finding's
// creation. Then none is stored, unless the settings or a request ask for it, or the deliveries of the creation are not
// record enough: see EmitAndStore of Ledger. Storing it costs the API server as much as creating the finding, and an
// import creates thousands.
func (r *Reconciler) leaveImplied(_ context.Context, s *scope) error {
	switch {
	case s.Before.UpdatedAt != nil:
		r.forgetRecorded(s)
	case addsNothing(s.Object):
		s.Derivable()
	}
	return nil
}

// addsNothing reports whether the observed status follows from the finding's creation.
func addsNothing(finding *v1alpha1.Finding) bool {
	return findingstate.AsCreated(finding) && finding.Status.Verdict == nil && len(finding.Status.Conditions) == 1 &&
		v1alpha1.IsConditionTrue(finding.Status.Conditions, v1alpha1.ConditionReady)
}

// forgetRecorded forgets the finding once its status records the deliveries of its creation.
func (r *Reconciler) forgetRecorded(s *scope) {
	if s.Status.EmittedSeq > 0 {
		r.implied.Forget(client.ObjectKeyFromObject(s.Object))
	}
}

// enqueueRequested enqueues findings whose status was requested, behind all others of their namespace.
func (r *Reconciler) enqueueRequested(_ context.Context, q watch.Queue) error {
	r.implied.OnRequest(func(finding types.NamespacedName) {
		watch.AddLast(q, 0, []ctrl.Request{{NamespacedName: finding}})
	})
	return nil
}

// lossDelay is when a finding is reconciled after a delivery of its creation was deleted: more may be deleted with it.
const lossDelay = time.Second

// onLostDelivery has the status of a finding stored if the delivery that was just deleted was the only record of its
// creation. Retention deletes no such delivery.
func (r *Reconciler) onLostDelivery() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watch.Queue) {
		delivery, finding := e.Object.(*v1alpha1.WebhookDelivery), &v1alpha1.Finding{}
		key := client.ObjectKey{Namespace: delivery.Namespace, Name: string(delivery.Spec.Event.Subject.Name)}
		// A cached Get fails only if the finding does not exist, or while the manager stops.
		err := r.Client.Get(ctx, key, finding, client.UnsafeDisableDeepCopy)
		if err == nil && finding.DeletionTimestamp.IsZero() && webhooks.RecordsCreation(delivery, finding) {
			r.implied.Lose(finding, delivery.Name)
			q.AddAfter(ctrl.Request{NamespacedName: key}, lossDelay)
		}
	}}
}

// enqueueForNewEndpoint enqueues the findings without a status that a new endpoint may get events about: the cache may
// not have shown the endpoint when they were left without one. Once the cache shows more endpoints than get events, no
// finding is left without a status. So the first of those that get none still enqueues findings, and the others, which
// may be thousands, do not.
func (r *Reconciler) enqueueForNewEndpoint() handler.EventHandler {
	enqueue := watch.Later(func(ctx context.Context, change watch.Change, q watch.Queue) {
		if r.followsUnserved(ctx, change.After) {
			return
		}
		since := change.After.GetCreationTimestamp()
		list := &v1alpha1.FindingList{}
		err := r.Client.List(ctx, list, client.InNamespace(change.After.GetNamespace()), client.UnsafeDisableDeepCopy)
		watch.LogError(ctx, err, "list the findings that a new endpoint may get events of")
		var affected []ctrl.Request
		for i := range list.Items {
			f := &list.Items[i]
			if f.Status.UpdatedAt == nil && !f.CreationTimestamp.Before(&since) {
				affected = append(affected, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f)})
			}
		}
		watch.AddChanged(q, affected)
	})
	created := watch.Changes(enqueue)
	// An update is another endpoint of the same name: see watch.CreatedOrDeleted.
	return handler.Funcs{CreateFunc: created.Create, UpdateFunc: created.Update}
}

// followsUnserved reports whether an older endpoint of the namespace gets no events either, because too many are older.
func (r *Reconciler) followsUnserved(ctx context.Context, endpoint client.Object) bool {
	all, err := ledger.EndpointsOf(ctx, r.Client, endpoint.GetNamespace())
	watch.LogError(ctx, err, "count the endpoints that are older than a new one")
	return webhooks.CountOlder(endpoint.(*v1alpha1.WebhookEndpoint), all) > webhooks.MaxServed
}
