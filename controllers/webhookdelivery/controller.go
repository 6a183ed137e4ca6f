// Package webhookdelivery sends each WebhookDelivery to its endpoint and records every attempt.
//
// An attempt is recorded in two writes: that it begins, with the digests of its signatures,
// before the request leaves, and how it ended. A controller that dies in between leaves an
// attempt of which nobody knows whether it arrived, and the next one sends the event again with
// the same webhook-id: at least once.
package webhookdelivery

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

const (
	// The limits bound the attempts at a time, as the dispatcher says. A try takes up to 15 s: even
	// with hundreds of endpoints dead, others find room. 448 attempts hold at most 28 MiB of
	// payloads, as the controllers make them.
	overallLimit  = 128
	failingLimit  = overallLimit / 2
	slowLimit     = 2 * overallLimit
	endpointLimit = 4
	// slowAfter is how long an attempt may take before others need not wait for its end.
	slowAfter = 2 * time.Second
	// recordTimeout bounds for how long the end of an attempt is tried to be recorded once it is
	// known, and recordInterval spaces the tries.
	recordTimeout  = time.Minute
	recordInterval = 100 * time.Millisecond
	// stopGrace is what attempts get to end when the controller is stopped: more than a try takes,
	// less than the manager waits.
	stopGrace = 17 * time.Second
	// troubleDelay is how long a delivery rests after the API server refused what an attempt needs.
	troubleDelay = 5 * time.Second
	// settleDelay is how long the cache gets to show what an attempt wrote.
	settleDelay = 50 * time.Millisecond
	// doneBuffer is how many ends of attempts wait for the queue.
	doneBuffer = 64
)

var standardLimits = limits{
	overall: overallLimit, failing: failingLimit, slow: slowLimit, perEndpoint: endpointLimit,
	slowAfter: slowAfter, grace: stopGrace,
}

// Settings are what the operator decides on.
type Settings struct {
	// Timeout of a whole try. Default: 15 s.
	Timeout time.Duration
	// Allowed are the address ranges that may be sent to though they are not public.
	Allowed []netip.Prefix
}

// DefaultTimeout is that of a whole try.
const DefaultTimeout = 15 * time.Second

// Reconciler reconciles WebhookDeliveries.
type Reconciler struct {
	client client.Client
	// live asks the API server itself. Secrets are read with it alone, so that none is kept in a
	// cache.
	live       client.Reader
	recorder   events.EventRecorder
	clock      clock.WithDelayedExecution
	sender     *sender
	dispatcher *dispatcher
	ended      chan event.TypedGenericEvent[ended]
}

// ended says that work on a delivery has come to an end, and whether it got anywhere.
type ended struct {
	delivery types.NamespacedName
	trouble  bool
}

// SetupWithManager adds the controller of WebhookDeliveries to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options, settings Settings) error {
	if settings.Timeout == 0 {
		settings.Timeout = DefaultTimeout
	}
	r := &Reconciler{
		client:     mgr.GetClient(),
		live:       mgr.GetAPIReader(),
		recorder:   mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		clock:      clock.RealClock{},
		sender:     newSender(settings.Timeout, settings.Allowed),
		dispatcher: newDispatcher(standardLimits, clock.RealClock{}),
		ended:      make(chan event.TypedGenericEvent[ended], doneBuffer),
	}
	r.dispatcher.work, r.dispatcher.done = r.attempt, r.reportEnd
	if err := mgr.Add(r.dispatcher); err != nil {
		return fmt.Errorf("add the sender of webhooks: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.WebhookDelivery{}, endpointIndex, endpointOf); err != nil {
		return fmt.Errorf("index webhook deliveries by endpoint: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		// Statuses are ours alone, and whoever writes one sees to what follows from it.
		For(&v1alpha1.WebhookDelivery{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, redeliveryAsked))).
		Watches(&v1alpha1.WebhookEndpoint{}, handler.EnqueueRequestsFromMapFunc(r.deliveriesOf), builder.WithPredicates(concernsDeliveries)).
		WatchesRawSource(source.TypedChannel(r.ended, enqueueEnded)).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope struct {
	delivery *v1alpha1.WebhookDelivery
	// before is the status as it was read; delivery.Status becomes what is to be written.
	before v1alpha1.WebhookDeliveryStatus
	// endpoint that the delivery is for; nil where there is none.
	endpoint *v1alpha1.WebhookEndpoint
	now      time.Time
}

// Reconcile closes what an earlier controller left open, and has an attempt made when one is
// due. It sends nothing itself.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.dispatcher.isBusy(req.NamespacedName) {
		return ctrl.Result{}, nil // the end of the attempt brings the delivery back
	}
	s, err := r.load(ctx, r.client, req.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	return patch.Outcome(r.run(ctx, s))
}

func (r *Reconciler) run(ctx context.Context, s *scope) (ctrl.Result, error) {
	// Nobody is at work on it: what was begun was begun by a controller that is no more.
	abandoned := closeUnfinished(&s.delivery.Status)
	webhooks.TakeUpRedelivery(s.delivery, s.now)
	followSecrets(s)
	step := decide(s)
	if s.endpoint == nil && step.outlook == outlookGone {
		var err error
		if step, err = r.confirmGone(ctx, s, step); err != nil {
			return ctrl.Result{}, err
		}
	}
	endpoint := types.NamespacedName{Namespace: s.delivery.Namespace, Name: string(s.delivery.Spec.EndpointRef.Name)}
	due, known := step.outlook == outlookDue, standingOf(s.endpoint)
	if !due || abandoned || !r.dispatcher.hasRoom(endpoint, known) {
		// An attempt that can begin at once writes all this itself.
		if err := r.conclude(ctx, s, step); err != nil {
			return ctrl.Result{}, err
		}
	}
	if abandoned {
		attemptsMade.count(v1alpha1.WebhookAttemptUnknown)
	}
	if due {
		r.dispatcher.submit(client.ObjectKeyFromObject(s.delivery), endpoint, known)
	}
	return ctrl.Result{RequeueAfter: step.wait}, nil
}

// standingOf is what the endpoint's status says of it.
func standingOf(endpoint *v1alpha1.WebhookEndpoint) standing {
	switch {
	case endpoint == nil:
		return standingUnknown
	case endpoint.Status.ConsecutiveFailures > 0:
		return standingFailing
	case endpoint.Status.LastSuccessAt != nil:
		return standingProven
	}
	return standingUnknown
}

// load reads the delivery and its endpoint. It returns nil where there is nothing to be done.
func (r *Reconciler) load(ctx context.Context, from client.Reader, key types.NamespacedName) (*scope, error) {
	delivery := &v1alpha1.WebhookDelivery{}
	if err := from.Get(ctx, key, delivery); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !delivery.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	s := &scope{delivery: delivery, before: *delivery.Status.DeepCopy(), now: r.clock.Now()}
	ref := delivery.Spec.EndpointRef
	endpoint := &v1alpha1.WebhookEndpoint{}
	err := from.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: string(ref.Name)}, endpoint)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("get webhook endpoint %s: %w", ref.Name, err)
	case ref.UID == "" || ref.UID == string(endpoint.UID):
		s.endpoint = endpoint
	}
	return s, nil
}
