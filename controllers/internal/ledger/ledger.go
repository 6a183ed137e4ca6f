// Package ledger makes webhook deliveries of the transitions in the status of objects: one delivery
// per transition and endpoint.
//
// A transition is stored before its deliveries are made, and its emission afterwards. A delivery's name is derived
// from the transition and the endpoint, so an interrupted run is repeated without making a delivery twice. Emitted
// transitions are never processed again, so their deliveries may be retired.
//
// A transition that can be derived from the object at any time need not be stored: then its deliveries are the record
// that they were made, and must not be retired before the status is stored.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// secondLook is how soon an object that has begun to owe deliveries is reconciled again: a change of an endpoint just
// before that could not enqueue the object, which did not owe any then.
const secondLook = time.Second

// Write stores the status of the ledger's object if it differs from the stored one, and reports whether that was so. It
// may be called more than once. It must carry the resourceVersion that was read, as package patch does.
type Write func(context.Context) (bool, error)

// Ledger makes the deliveries for one kind.
type Ledger struct {
	kind Kind
	store
}

// New returns the ledger of the kind. It indexes the kind's objects in the manager's cache by whether they owe
// deliveries, so there must be one ledger per kind and manager.
func New(ctx context.Context, mgr ctrl.Manager, kind Kind) (*Ledger, error) {
	has, err := newStore(mgr)
	if err != nil {
		return nil, err
	}
	l := &Ledger{kind: kind, store: has}
	if err := index.Add(ctx, mgr, kind.object, owes, l.owedBy); err != nil || !kind.paged {
		return l, err
	}
	return l, index.Add(ctx, mgr, &v1alpha1.WebhookDelivery{}, covers, coveredBy)
}

// MakeRoom emits what the object owes if the next observation might otherwise add more transitions than the status can
// hold. It does so even for endpoints that are held back. If it fails, the object must not be observed.
func (l *Ledger) MakeRoom(ctx context.Context, object client.Object, write Write) error {
	if !l.kind.book(object).history().Full() {
		return nil
	}
	return l.emitToAll(ctx, object, write, emission{force: true})
}

// EmitLast makes the deliveries that an object owes before it is removed. It tries each one, even if a quota has just
// refused others, because it is the last chance. All transitions of the object must be stored already.
func (l *Ledger) EmitLast(ctx context.Context, object client.Object, write Write) error {
	return l.emitToAll(ctx, object, write, emission{last: true})
}

func (l *Ledger) emitToAll(ctx context.Context, object client.Object, write Write, how emission) error {
	endpoints, err := l.endpointsOf(ctx, object.GetNamespace())
	if err != nil {
		return err
	}
	return l.emit(ctx, object, endpoints, write, how)
}

// StoreAndEmit stores the observed status of the object, makes the deliveries that it owes, and stores that they were
// made. Without a subscribed endpoint, it writes at most once. It returns when to reconcile again; 0 for no need. While
// a quota has no room for deliveries in the namespace, it fails with a FullError.
//
// An object that still owes deliveries, because of an endpoint's backlog or a page to come, is enqueued by the watches
// of package ledger: see Endpoints, Pages, ScansGone and OperationsGone.
func (l *Ledger) StoreAndEmit(ctx context.Context, object client.Object, write Write) (again time.Duration, err error) {
	book := l.kind.book(object)
	var endpoints []v1alpha1.WebhookEndpoint
	if len(book.history().Owed()) > 0 {
		// List them once for all steps: there may be thousands, and findings are stored by the thousand.
		if endpoints, err = l.endpointsOf(ctx, object.GetNamespace()); err != nil {
			return 0, err
		}
	}
	subscribed := l.isSubscribed(object, endpoints)
	if !subscribed && len(book.history().Owed()) > 0 {
		book.emitted(book.history().LastSeq())
	}
	written, err := write(ctx)
	if err != nil || !subscribed {
		return 0, err
	}
	if err := l.emit(ctx, object, endpoints, write, emission{current: written}); err != nil {
		return 0, err
	}
	return l.again(object, written), nil
}

// again returns when to reconcile the object once more: after secondLook if it has just begun to owe deliveries.
func (l *Ledger) again(object client.Object, stored bool) time.Duration {
	if stored && len(l.kind.book(object).history().Owed()) > 0 {
		return secondLook
	}
	return 0
}

// isSubscribed reports whether an endpoint subscribes to any transition that the object owes.
func (l *Ledger) isSubscribed(object client.Object, endpoints []v1alpha1.WebhookEndpoint) bool {
	owed := l.kind.book(object).history().Owed()
	for i := range endpoints {
		for j := range owed {
			if webhooks.Subscribes(&endpoints[i], l.eventType(owed[j]), owed[j].At.Time) {
				return true
			}
		}
	}
	return false
}

func (l *Ledger) eventType(t v1alpha1.Transition) string { return l.kind.prefix + "." + string(t.Type) }

// emission holds options for making deliveries.
type emission struct {
	// force makes deliveries even to endpoints that are held back.
	force bool
	// last means that the object is about to be removed: a namespace without room is tried anyway.
	last bool
	// current means that the object is known to be current from a response of the API server.
	current bool
}

// emit makes the deliveries that the object owes to the endpoints, and stores how far it got, even after a failure.
func (l *Ledger) emit(ctx context.Context, object client.Object, endpoints []v1alpha1.WebhookEndpoint, write Write,
	how emission) error {
	_, upTo, failed := l.makeDue(ctx, object, endpoints, how)
	book := l.kind.book(object)
	if upTo <= *book.EmittedSeq {
		return failed
	}
	book.emitted(upTo)
	if _, err := write(ctx); err != nil && failed == nil {
		return err
	}
	return failed
}

// makeDue makes the deliveries that the object owes to the endpoints, and returns them and the seq up to which all
// exist.
func (l *Ledger) makeDue(ctx context.Context, object client.Object, endpoints []v1alpha1.WebhookEndpoint,
	how emission) (made []due, upTo int64, err error) {
	made, upTo, err = l.toMake(ctx, object, endpoints, how.force)
	if err != nil {
		return nil, 0, err
	}
	if len(made) > 0 && !how.last {
		if err := l.quotas.takeTurn(object.GetNamespace()); err != nil {
			return nil, min(upTo, made[0].seq-1), err
		}
	}
	if len(made) > 0 && !how.current {
		if err := l.checkCurrent(ctx, object); err != nil {
			return nil, 0, err
		}
	}
	for i, d := range made {
		if l.Implied.IsLost(object, d.delivery.Name) {
			continue // it was deleted meanwhile
		}
		if err := l.makeIfRoom(ctx, d.delivery); err != nil {
			return made[:i], min(upTo, d.seq-1), err
		}
	}
	return made, upTo, nil
}

// checkCurrent fails with a conflict if the cached object is stale: deliveries that it owes may have been made and
// retired meanwhile.
func (l *Ledger) checkCurrent(ctx context.Context, object client.Object) error {
	kind, err := l.client.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	current := kube.MetadataOf(kind)
	if err := l.live.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
		return fmt.Errorf("check whether the %s owes deliveries: %w", kind.Kind, err)
	}
	if current.UID != object.GetUID() || current.ResourceVersion != object.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, object.GetName(),
			errors.New("the cache is behind"))
	}
	return nil
}

// due is a delivery to make for the transition with that seq.
type due struct {
	seq      int64
	delivery *v1alpha1.WebhookDelivery
}

// toMake returns the deliveries to make now, and the seq up to which all deliveries exist after that.
//
// An endpoint that is held back does not delay the deliveries of other endpoints.
func (l *Ledger) toMake(ctx context.Context, object client.Object, endpoints []v1alpha1.WebhookEndpoint,
	force bool) ([]due, int64, error) {
	history := l.kind.book(object).history()
	var out []due
	upTo, held := history.EmittedSeq, false
	for _, t := range history.Owed() {
		for i := range endpoints {
			if !webhooks.Subscribes(&endpoints[i], l.eventType(t), t.At.Time) {
				continue
			}
			delivery, err := l.owedTo(ctx, object, t, &endpoints[i], force)
			switch {
			case errors.Is(err, errHeld):
				held = true
			case err != nil:
				return nil, 0, err
			case delivery != nil:
				out = append(out, due{t.Seq, delivery})
			}
		}
		if !held {
			upTo = t.Seq
		}
	}
	return out, upTo, nil
}

// errHeld means that a delivery is owed, but must not be made yet.
var errHeld = errors.New("held back")

// owedTo returns the delivery of the transition that the endpoint has yet to get; nil if it exists already.
func (l *Ledger) owedTo(ctx context.Context, object client.Object, t v1alpha1.Transition,
	endpoint *v1alpha1.WebhookEndpoint, force bool) (*v1alpha1.WebhookDelivery, error) {
	made, err := l.isMade(ctx, object, t, endpoint)
	if err != nil || made {
		return nil, err
	}
	// A page may outlive its cause, and its endpoint may no longer subscribe to pages.
	if l.kind.paged {
		covered, err := l.isCovered(ctx, object, t, endpoint)
		if err != nil || covered {
			return nil, err
		}
	}
	paged, err := l.goesInPage(ctx, object, t, endpoint)
	if err != nil {
		return nil, err
	}
	if !force && (paged || webhooks.HoldsBack(endpoint, t.Type, t.By)) {
		return nil, errHeld
	}
	return webhooks.NewDelivery(webhooks.Event{
		Type:       l.eventType(t),
		Time:       t.At.Time,
		Subject:    v1alpha1.WebhookEventSubject{Kind: l.kind.name, Name: v1alpha1.ResourceName(object.GetName())},
		SubjectUID: object.GetUID(),
		Sequence:   t.Seq,
		Data:       l.kind.data(object, t),
	}, endpoint)
}
