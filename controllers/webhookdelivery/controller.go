// Package webhookdelivery sends each WebhookDelivery to its endpoint and records every attempt.
//
// An attempt is recorded in two writes: its start, with the digests of its signatures, before the
// request is sent, and its outcome. If the outcome cannot be recorded, because the controller dies or
// the API server does not answer, it is Unknown, and the event is sent again with the same
// webhook-id: delivery is at least once.
package webhookdelivery

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

const (
	// Limits of concurrent attempts; see limits. An attempt takes up to 15 s, and hundreds of dead endpoints must leave
	// room for others. 448 attempts hold at most 28 MiB of payloads.
	overallLimit  = 128
	failingLimit  = overallLimit / 2
	slowLimit     = 2 * overallLimit
	endpointLimit = 4
	// slowAfter is how long an attempt may take before it no longer blocks others.
	slowAfter = 2 * time.Second
	// prepareTimeout bounds the work before an attempt's request: an API server that does not answer must not block the
	// slot forever.
	prepareTimeout = 15 * time.Second
	// recordTimeout bounds the retries of recording an attempt's outcome. In the delivery, an outage of the API server
	// does not count, and outageTimeout is the limit: no other attempt can begin meanwhile, so the slot is not needed. At
	// the endpoint, an outage counts, because other attempts wait. A leader whose Lease is in the same API server ends
	// after about 10 s of an outage.
	recordTimeout = time.Minute
	outageTimeout = 15 * time.Minute
	// stopGrace is how long attempts may take to end when the controller stops: longer than an attempt, shorter than the
	// manager waits (shutdownTimeout in cmd/findings-operator), which is shorter than the pod's
	// terminationGracePeriodSeconds.
	stopGrace = 17 * time.Second
	// errorDelay is when a delivery is requeued after the API server failed during an attempt or the cache was behind, and
	// how long an endpoint pauses after its secret could not be read or used.
	errorDelay = 5 * time.Second
	// settleDelay is how long to wait for the cache to show what an attempt wrote.
	settleDelay = 50 * time.Millisecond
)

var standardLimits = limits{
	overall: overallLimit, failing: failingLimit, slow: slowLimit, perEndpoint: endpointLimit,
	slowAfter: slowAfter, grace: stopGrace,
}

// Settings configure the controller.
type Settings struct {
	// Timeout of a whole attempt. Default and maximum: DefaultTimeout, because an attempt that does not end within
	// stopGrace has an unknown outcome.
	Timeout time.Duration
	// Allowed holds the non-public address ranges that may be sent to.
	Allowed []netip.Prefix
	// Denied holds the address ranges that may not be sent to, even if they are public or in Allowed.
	Denied []netip.Prefix
	// NAT64 holds further prefixes of 96 bits under which the network's NAT64 reaches IPv4 addresses.
	NAT64 []netip.Prefix
	// limits of concurrent attempts. Default: standardLimits.
	limits limits
}

// DefaultTimeout is the default timeout of a whole attempt.
const DefaultTimeout = 15 * time.Second

// Does not compile unless stopGrace is longer than an attempt.
const _ = uint(stopGrace - DefaultTimeout - 1)

// Reconciler reconciles WebhookDeliveries.
type Reconciler struct {
	reconcile.Base
	sender     *sender
	dispatcher *dispatcher
}

// SetupWithManager adds the controller of WebhookDeliveries to the manager.
func (s Settings) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	s.Timeout, s.limits = cmp.Or(s.Timeout, DefaultTimeout), cmp.Or(s.limits, standardLimits)
	r := &Reconciler{
		Base:       reconcile.NewBase(mgr),
		sender:     newSender(s),
		dispatcher: newDispatcher(s.limits, clock.RealClock{}),
	}
	r.dispatcher.work = r.attempt
	if err := mgr.Add(r.dispatcher); err != nil {
		return fmt.Errorf("add the sender of webhooks: %w", err)
	}
	if err := index.AddReference(ctx, mgr, &v1alpha1.WebhookDelivery{}, endpointIndex, index.EndpointOf); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		// Only this controller writes the status, and requeues itself where needed.
		For(&v1alpha1.WebhookDelivery{}, builder.WithPredicates(worthReconciling, predicate.Not(urgent))).
		Watches(&v1alpha1.WebhookDelivery{}, watch.EnqueueFirst(), builder.WithPredicates(worthReconciling, urgent)).
		// Include finished deliveries: their recorded signatures are updated when a secret expires.
		Watches(&v1alpha1.WebhookEndpoint{}, r.enqueueDeliveries(),
			builder.WithPredicates(watch.NewSinceStart, concernsDeliveries)).
		WatchesRawSource(source.Func(r.enqueueEnded)).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope struct {
	*reconcile.Scope[*v1alpha1.WebhookDelivery, *v1alpha1.WebhookDeliveryStatus]
	// endpoint is the one that the delivery is for; nil if it does not exist.
	endpoint *v1alpha1.WebhookEndpoint
}

func newScope() *scope {
	return &scope{Scope: reconcile.NewScope(&v1alpha1.WebhookDelivery{})}
}

// Reconcile closes an attempt whose outcome could not be recorded, and submits the delivery to the dispatcher when an
// attempt is due. It sends nothing itself. If the dispatcher already has the delivery, it only records what cannot
// wait.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	handle := r.schedule
	if r.dispatcher.isBusy(req.NamespacedName) {
		handle = r.catchUp // the end of the attempt enqueues the delivery again
	}
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope,
		Phases: []reconcile.Phase[*scope]{r.findEndpoint, handle},
	}.Run(ctx, req)
}

// catchUp records what cannot wait while the delivery is in the dispatcher, where its turn may be much later: that the
// secrets of earlier signatures have expired, and that a redelivery was requested. It makes no attempt and ends none.
// If an attempt writes at the same time, one of the two conflicts: this reconcile is then repeated, an unsent attempt
// waits for its next turn, and the outcome of a sent one is recorded again.
func (r *Reconciler) catchUp(ctx context.Context, s *scope) error {
	followSecrets(s)
	if outlivesEndpoint(s) {
		if _, err := r.confirm(ctx, s); err != nil {
			return err
		}
	}
	if webhooks.RedeliveryAsked(s.Object) == "" {
		return nil
	}
	earlier := s.Status.DeepCopy()
	webhooks.TakeUpRedelivery(s.Object, s.Now)
	if step := decide(s); step.outlook == outlookDue {
		s.LeaveStatus()
		return r.conclude(ctx, s, step)
	}
	*s.Status = *earlier // its turn takes the new one up
	return nil
}

// schedule hands a due delivery to the dispatcher, and records the status of any other.
func (r *Reconciler) schedule(ctx context.Context, s *scope) error {
	s.LeaveStatus()
	// No attempt is running: an unfinished one began in an earlier controller, or could not be recorded.
	abandoned := closeUnfinished(s.Status)
	webhooks.TakeUpRedelivery(s.Object, s.Now)
	followSecrets(s)
	step := decide(s)
	if step.outlook == outlookUnconfirmed || outlivesEndpoint(s) {
		var err error
		if step, err = r.confirm(ctx, s); err != nil {
			return err
		}
	}
	endpoint := types.NamespacedName{Namespace: s.Object.Namespace, Name: string(s.Object.Spec.EndpointRef.Name)}
	due, known, urgent := step.outlook == outlookDue, healthOf(s.endpoint), isUrgent(s.Object)
	if !due || abandoned || hasStatus(s) && !r.dispatcher.hasRoom(endpoint, known, urgent) {
		// An attempt that can begin at once writes the status itself, and the default status of a new delivery already shows
		// it as pending. After an import thousands of them wait.
		if err := r.conclude(ctx, s, step); err != nil {
			return err
		}
	}
	if abandoned {
		attemptsMade.count(v1alpha1.WebhookAttemptUnknown)
	}
	if due {
		r.dispatcher.submit(client.ObjectKeyFromObject(s.Object), endpoint, known, urgent)
	}
	s.RequeueAfter(min(step.wait, reconcile.MaxWait))
	return nil
}

// confirm decides by the endpoint in the API server: the cache of endpoints may lag behind that of deliveries, and a
// delivery that was given up is not resumed. If the endpoint does not exist, the signatures expire.
func (r *Reconciler) confirm(ctx context.Context, s *scope) (step, error) {
	if err := s.readEndpoint(ctx, r.Live); err != nil {
		return step{}, err
	}
	if s.endpoint == nil && s.Object.Spec.EndpointRef.UID != "" {
		endSignatures(s)
	}
	return decide(s), nil
}

// hasStatus reports whether the delivery has or needs a status other than the default.
func hasStatus(s *scope) bool { return s.Before.ObservedGeneration > 0 || s.Status.Redelivery != nil }

// healthOf returns the health according to the endpoint's status.
func healthOf(endpoint *v1alpha1.WebhookEndpoint) health {
	switch {
	case endpoint == nil:
		return healthUnknown
	case endpoint.Status.ConsecutiveFailures > 0:
		return healthFailing
	case endpoint.Status.LastSuccessAt != nil:
		return healthProven
	}
	return healthUnknown
}

// load reads the delivery and its endpoint from the API server. It returns nil if the delivery does not exist or
// is being deleted.
func (r *Reconciler) load(ctx context.Context, key types.NamespacedName) (*scope, error) {
	s := newScope()
	if err := r.Live.Get(ctx, key, s.Object); err != nil || !s.Object.DeletionTimestamp.IsZero() {
		return nil, kube.IgnoreNotFound(err)
	}
	s.Begin(r.Clock.Now())
	return s, s.readEndpoint(ctx, r.Live)
}

func (r *Reconciler) findEndpoint(ctx context.Context, s *scope) error {
	return s.readEndpoint(ctx, r.Client)
}

func (s *scope) readEndpoint(ctx context.Context, from client.Reader) error {
	s.endpoint = nil
	ref, endpoint := s.Object.Spec.EndpointRef, &v1alpha1.WebhookEndpoint{}
	err := from.Get(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: string(ref.Name)}, endpoint)
	switch {
	case kube.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("get webhook endpoint %s: %w", ref.Name, err)
	case ref.UID == "" || ref.UID == string(endpoint.UID):
		s.endpoint = endpoint
	}
	return nil
}
