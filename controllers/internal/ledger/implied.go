package ledger

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// EmitAndStore is StoreAndEmit for a finding whose transitions can be derived: if they are not stored, the next
// reconcile observes transitions with the same numbers and types. It makes the deliveries first, and then writes at
// most once. It leaves the finding to Implied, without a status, if none was requested there and the deliveries are
// record enough: each endpoint has one, or will get one after its backlog.
func (l *Ledger) EmitAndStore(ctx context.Context, object client.Object, write Write) (time.Duration, error) {
	finding := object.(*v1alpha1.Finding)
	endpoints, err := EndpointsOf(ctx, l.client, finding.Namespace)
	if err != nil {
		return 0, err
	}
	made, upTo, failed := l.makeDue(ctx, finding, webhooks.Served(endpoints), emission{})
	if kube.IsConflict(failed) {
		return 0, failed // the status would conflict too
	}
	if failed == nil && !l.Implied.IsRequested(finding) {
		left, again, err := l.leave(ctx, finding, endpoints, made)
		if left {
			return again, nil
		}
		failed = err
	}
	if book := l.kind.book(finding); upTo > *book.EmittedSeq {
		book.emitted(upTo)
	}
	_, err = write(ctx)
	if err = cmp.Or(failed, err); err != nil {
		return 0, err
	}
	return l.again(finding, true), nil
}

// leave leaves the finding without a status if the deliveries of its creation are record enough, and reports whether it
// did. These deliveries are then the only record: retention requests the status before it removes any of them. again is
// when to reconcile once more; 0 for not at all.
func (l *Ledger) leave(ctx context.Context, finding *v1alpha1.Finding, endpoints []v1alpha1.WebhookEndpoint,
	made []due) (left bool, again time.Duration, err error) {
	each, waits, err := l.everyEndpointHasOne(ctx, finding, endpoints, made)
	if err != nil || !each {
		return false, 0, err
	}
	if waits && !l.Implied.Owes(finding) {
		again = secondLook
	}
	l.Implied.Leave(finding, waits)
	return true, again, nil
}

// everyEndpointHasOne reports whether each endpoint that existed when a transition happened has a separate delivery of
// it, including those that were just made, or will get one after its backlog. An existing endpoint without one could
// still get the transition later: after it subscribes, is enabled, or replaces an endpoint that gets events, or in a
// page.
func (l *Ledger) everyEndpointHasOne(ctx context.Context, object client.Object, endpoints []v1alpha1.WebhookEndpoint,
	made []due) (each, waits bool, err error) {
	if len(endpoints) > webhooks.MaxServed {
		return false, false, nil
	}
	for _, t := range l.kind.book(object).history().Owed() {
		for i := range endpoints {
			e := &endpoints[i]
			isIt := func(d due) bool { return d.seq == t.Seq && d.delivery.Spec.EndpointRef.UID == string(e.UID) }
			if webhooks.IsOlder(e, t.At.Time) || slices.ContainsFunc(made, isIt) {
				continue
			}
			has, err := l.isMade(ctx, object, t, e)
			if err != nil || !has && !l.waitsForBacklog(t, e) {
				return false, false, err
			}
			waits = waits || !has
		}
	}
	return true, waits, nil
}

// waitsForBacklog reports whether the endpoint will get a separate delivery of the transition after its backlog.
func (l *Ledger) waitsForBacklog(t v1alpha1.Transition, endpoint *v1alpha1.WebhookEndpoint) bool {
	return webhooks.Subscribes(endpoint, l.eventType(t), t.At.Time) && webhooks.HoldsBack(endpoint, t.Type, t.By) &&
		endpoint.Spec.Batch != v1alpha1.WebhookBatchPerScan
}
