package finding

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/implied"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// creationSeq is the number of the transition that a finding was created.
const creationSeq = 1

// leaveAsCreated stores no status if it would hold nothing but what follows from the creation, unless the settings ask
// for it. Storing it costs the API server as much as creating the finding, and an import creates thousands. What
// follows from the creation is not which deliveries have been made of it: they are made first. If each endpoint has
// one, they are the record, and retention asks for the status before it removes them.
func (r *Reconciler) leaveAsCreated(ctx context.Context, s *scope) error {
	finding := client.ObjectKeyFromObject(s.Object)
	if s.Before.UpdatedAt != nil {
		r.implied.Forget(finding)
		return nil
	}
	due, told := r.implied.Due(finding)
	if told {
		s.Status.EmittedSeq = max(s.Status.EmittedSeq, creationSeq)
	}
	if !addsNothing(s.Object) {
		return nil
	}
	s.Derivable()
	if due {
		return nil
	}
	told, err := r.ledger.Tell(ctx, s.Object)
	if err != nil {
		s.LeaveStatus()
		return err
	}
	if told {
		s.LeaveStatus()
		r.implied.Leave(s.Object)
	}
	return nil
}

// addsNothing reports whether the observed status follows from the finding's creation.
func addsNothing(finding *v1alpha1.Finding) bool {
	return findingstate.AsCreated(finding) && finding.Status.Verdict == nil && len(finding.Status.Conditions) == 1 &&
		v1alpha1.IsConditionTrue(finding.Status.Conditions, v1alpha1.ConditionReady)
}

// enqueueDue enqueues, after all others, the findings whose status is to be stored.
func (r *Reconciler) enqueueDue() handler.TypedEventHandler[implied.News, ctrl.Request] {
	return handler.TypedFuncs[implied.News, ctrl.Request]{
		GenericFunc: func(_ context.Context, _ event.TypedGenericEvent[implied.News], q watch.Queue) {
			var requests []ctrl.Request
			for _, finding := range r.implied.NewlyDue() {
				requests = append(requests, ctrl.Request{NamespacedName: finding})
			}
			watch.AddLast(q, 0, requests)
		},
	}
}

// noteLost has the status stored of a finding that was left without one, when a delivery of its creation is deleted by
// anyone but retention. Deliveries that go with their endpoint are of no interest any more.
func (r *Reconciler) noteLost() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ watch.Queue) {
		delivery := e.Object.(*v1alpha1.WebhookDelivery)
		subject, endpoint := delivery.Spec.Event.Subject, &v1alpha1.WebhookEndpoint{}
		if delivery.Spec.Event.Type != webhooks.FindingEvent(v1alpha1.TransitionCreated) {
			return
		}
		key := client.ObjectKey{Namespace: delivery.Namespace, Name: string(delivery.Spec.EndpointRef.Name)}
		if err := r.Client.Get(ctx, key, endpoint, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
			return
		}
		r.implied.Lost(client.ObjectKey{Namespace: delivery.Namespace, Name: string(subject.Name)})
	}}
}

// enqueueHeard enqueues the findings without a status that a new endpoint may get events of: they may have been left
// without one before the cache showed the endpoint.
func (r *Reconciler) enqueueHeard() handler.EventHandler {
	return watch.Changes(func(ctx context.Context, change watch.Change, q watch.Queue) {
		if change.Before != nil || change.Initial {
			return
		}
		since := change.After.GetCreationTimestamp()
		list := &v1alpha1.FindingList{}
		err := r.Client.List(ctx, list, client.InNamespace(change.After.GetNamespace()), client.UnsafeDisableDeepCopy)
		if err != nil {
			// A cached list fails only while the manager stops, and a handler cannot return an error.
			ctrl.LoggerFrom(ctx).Error(err, "list the findings that a new endpoint hears of")
		}
		var heard []ctrl.Request
		for i := range list.Items {
			f := &list.Items[i]
			if f.Status.UpdatedAt == nil && !f.CreationTimestamp.Before(&since) {
				heard = append(heard, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f)})
			}
		}
		watch.AddAfter(q, 0, heard)
	})
}
