// Package ledger makes deliveries of the transitions that objects have in their status, each
// for each endpoint once.
//
// A transition is stored before anything is made of it, and counts as emitted once its
// deliveries are stored. A delivery's name follows from the transition and the endpoint. So
// whatever is cut off is done again and makes nothing twice; and since nothing that counts as
// emitted is looked at again, deliveries may be retired.
package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// secondLook is how long after it began to owe an object is looked at once more. An endpoint that
// changed just before could not wake it: the index did not name it yet.
const secondLook = time.Second

// Write stores the status of the object that the ledger works on, where anything in it differs
// from what is stored, and reports whether a write was needed. It may be called more than once.
// It must carry the resourceVersion that was read, as package patch does.
type Write func(context.Context) (bool, error)

// Ledger is that of one kind.
type Ledger struct {
	kind   Kind
	client client.Client
	// live asks the API server itself, where the cache's being behind would make a delivery twice.
	live client.Reader
	// own asks it for this project's kinds, and passes over what cannot be read.
	own rest.Interface
}

// New returns the ledger of the kind. It indexes the kind's objects in the manager's cache by
// whether they owe, so there must be one ledger per kind and manager.
func New(ctx context.Context, mgr ctrl.Manager, kind Kind) (*Ledger, error) {
	own, err := kube.NewClient(mgr.GetConfig())
	if err != nil {
		return nil, err
	}
	l := &Ledger{kind: kind, client: mgr.GetClient(), live: mgr.GetAPIReader(), own: own}
	if err := index.Add(ctx, mgr, kind.object, owes, l.owedBy); err != nil || !kind.paged {
		return l, err
	}
	return l, index.Add(ctx, mgr, &v1alpha1.WebhookDelivery{}, covers, coveredBy)
}

// MakeRoom emits what the object owes where that is so much that another look at it might find
// more than a status can hold, whatever holds the endpoints back. Nothing may be observed of
// the object where it fails.
func (l *Ledger) MakeRoom(ctx context.Context, object client.Object, write Write) error {
	if !l.kind.book(object).history().Full() {
		return nil
	}
	return l.emit(ctx, object, write, emission{force: true})
}

// Settle stores what has been observed of the object, and then makes the deliveries that it owes
// and stores that they are made. Where no endpoint asks for any there is one write in all. It returns how soon to
// come back; 0: no need.
//
// An object that goes on owing, since an endpoint has too much to do or a page is to come, is
// woken by the watches of package ledger: see Endpoints, Pages, ScansGone and OperationsGone.
func (l *Ledger) Settle(ctx context.Context, object client.Object, write Write) (again time.Duration, err error) {
	book := l.kind.book(object)
	asked, err := l.asked(ctx, object)
	if err != nil {
		return 0, err
	}
	if !asked && len(book.history().Owed()) > 0 {
		book.emitted(book.history().LastSeq())
	}
	written, err := write(ctx)
	if err != nil || !asked {
		return 0, err
	}
	if err := l.emit(ctx, object, write, emission{current: written}); err != nil {
		return 0, err
	}
	if written && len(book.history().Owed()) > 0 {
		return secondLook, nil
	}
	return 0, nil
}

// asked reports whether an endpoint asks for anything that the object owes.
func (l *Ledger) asked(ctx context.Context, object client.Object) (bool, error) {
	owed := l.kind.book(object).history().Owed()
	if len(owed) == 0 {
		return false, nil
	}
	endpoints, err := endpointsOf(ctx, l.client, object.GetNamespace())
	if err != nil {
		return false, err
	}
	for i := range endpoints {
		for j := range owed {
			if webhooks.Subscribes(&endpoints[i], l.eventType(owed[j]), owed[j].At.Time) {
				return true, nil
			}
		}
	}
	return false, nil
}

func (l *Ledger) eventType(t v1alpha1.Transition) string { return l.kind.prefix + "." + string(t.Type) }

// emission is how deliveries are to be made.
type emission struct {
	// force makes even what is held back.
	force bool
	// current says that the object is as the API server has it, by an answer of its own.
	current bool
}

// emit makes what the object owes and stores how far it got, though it failed on the way.
func (l *Ledger) emit(ctx context.Context, object client.Object, write Write, how emission) error {
	due, upTo, err := l.bill(ctx, object, how.force)
	if err != nil {
		return err
	}
	if len(due) > 0 && !how.current {
		if err := l.checkCurrent(ctx, object); err != nil {
			return err
		}
	}
	book := l.kind.book(object)
	var failed error
	for _, d := range due {
		if failed = makeDelivery(ctx, l.client, d.delivery); failed != nil {
			upTo = min(upTo, d.seq-1)
			break
		}
	}
	if upTo <= *book.EmittedSeq {
		return failed
	}
	book.emitted(upTo)
	if _, err := write(ctx); err != nil && failed == nil {
		return err
	}
	return failed
}

// checkCurrent fails with a conflict where the cache is behind: what it says is owed may have
// been made meanwhile, and retired.
func (l *Ledger) checkCurrent(ctx context.Context, object client.Object) error {
	kind, err := apiutil.GVKForObject(object, l.client.Scheme())
	if err != nil {
		return err
	}
	current := &metav1.PartialObjectMetadata{}
	current.SetGroupVersionKind(kind)
	if err := l.live.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
		return fmt.Errorf("look whether the %s owes: %w", kind.Kind, err)
	}
	if current.UID != object.GetUID() || current.ResourceVersion != object.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, object.GetName(),
			errors.New("the cache is behind"))
	}
	return nil
}

// due is a delivery that is to be made of the transition of that seq.
type due struct {
	seq      int64
	delivery *v1alpha1.WebhookDelivery
}

// bill lists the deliveries that are to be made now, and says up to which seq all are there once
// these are.
//
// One endpoint that is held back does not hold back another: what is owed to that one is made.
func (l *Ledger) bill(ctx context.Context, object client.Object, force bool) ([]due, int64, error) {
	endpoints, err := endpointsOf(ctx, l.client, object.GetNamespace())
	if err != nil {
		return nil, 0, err
	}
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

// errHeld says that a delivery is owed and is not to be made now.
var errHeld = errors.New("held back")

// owedTo is the delivery that the endpoint is still to get of the transition; nil: it has it.
func (l *Ledger) owedTo(ctx context.Context, object client.Object, t v1alpha1.Transition,
	endpoint *v1alpha1.WebhookEndpoint, force bool) (*v1alpha1.WebhookDelivery, error) {
	made, err := isMade(ctx, l.client, object, t, endpoint)
	if err != nil || made {
		return nil, err
	}
	paged, err := l.goesInPage(ctx, object, t, endpoint)
	if err != nil {
		return nil, err
	}
	if paged {
		covered, err := isCovered(ctx, l.client, object, t, endpoint)
		if err != nil || covered {
			return nil, err
		}
	}
	if !force && (paged || webhooks.Backlogged(endpoint)) {
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

// isMade reports whether the transition's own delivery to the endpoint is in the cache.
func isMade(ctx context.Context, c client.Reader, object client.Object, t v1alpha1.Transition,
	endpoint *v1alpha1.WebhookEndpoint) (bool, error) {
	key := client.ObjectKey{
		Namespace: object.GetNamespace(), Name: webhooks.DeliveryName(object.GetUID(), t.Seq, endpoint.UID),
	}
	err := c.Get(ctx, key, &v1alpha1.WebhookDelivery{}, client.UnsafeDisableDeepCopy)
	return err == nil, client.IgnoreNotFound(err)
}

// makeDelivery stores the delivery. One that is there already was made by someone who then was
// cut off. In a namespace that is being removed nothing is owed any longer.
func makeDelivery(ctx context.Context, c client.Writer, delivery *v1alpha1.WebhookDelivery) error {
	err := c.Create(ctx, delivery)
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	// A quota that is used up comes here too, and is tried again, later each time.
	return fmt.Errorf("create the delivery of %s %s: %w", delivery.Spec.Event.Type, delivery.Spec.Event.Subject.Name, err)
}

func endpointsOf(ctx context.Context, c client.Reader, namespace string) ([]v1alpha1.WebhookEndpoint, error) {
	list := &v1alpha1.WebhookEndpointList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the webhook endpoints: %w", err)
	}
	// In one order: else each try after a failure is another, and a test of what is made by then one of chance.
	slices.SortFunc(list.Items, func(a, b v1alpha1.WebhookEndpoint) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}
