package finding

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// leaveAsCreated stores no status if it would hold nothing but what follows from the creation, unless the settings ask
// for it. Storing it costs the API server as much as creating the finding, and an import creates thousands. Where an
// endpoint may get the event of the creation, the status is stored nevertheless: it records which deliveries have been
// made. One write stores both, because that a finding was created can be told from the finding.
func (r *Reconciler) leaveAsCreated(ctx context.Context, s *scope) error {
	if s.Before.UpdatedAt != nil || !addsNothing(s.Object) {
		r.implied.Forget(client.ObjectKeyFromObject(s.Object))
		return nil
	}
	s.Derivable()
	heard, err := r.ledger.HasListener(ctx, s.Object.Namespace, s.Object.CreationTimestamp.Time)
	if err != nil {
		return err
	}
	if heard || r.implied == nil {
		r.implied.Forget(client.ObjectKeyFromObject(s.Object))
		return nil
	}
	s.LeaveStatus()
	r.implied.Leave(s.Object)
	return nil
}

// addsNothing reports whether the observed status follows from the finding's creation.
func addsNothing(finding *v1alpha1.Finding) bool {
	return findingstate.AsCreated(finding) && finding.Status.Verdict == nil && len(finding.Status.Conditions) == 1 &&
		v1alpha1.IsConditionTrue(finding.Status.Conditions, v1alpha1.ConditionReady)
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
