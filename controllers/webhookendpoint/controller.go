// Package webhookendpoint sees to it that each WebhookEndpoint has a signing secret, greets it
// with a ping, says in its status whether events reach it, and stops the making of deliveries
// when too many wait.
package webhookendpoint

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// secretPoll is how often a Secret that is not ours is looked at: only ours are watched.
const secretPoll = 15 * time.Second

// DefaultMaxPending is how many deliveries to one endpoint may wait.
const DefaultMaxPending = 10_000

// Settings are what the operator decides on.
type Settings struct {
	// MaxPending is above how many waiting deliveries no more are made for an endpoint. Default:
	// DefaultMaxPending.
	MaxPending int
}

// Reconciler reconciles WebhookEndpoints.
type Reconciler struct {
	client client.Client
	// live asks the API server itself. Secrets are read with it alone, so that none is kept in a
	// cache.
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	settings Settings
}

// SetupWithManager adds the controller of WebhookEndpoints to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options, settings Settings) error {
	if settings.MaxPending == 0 {
		settings.MaxPending = DefaultMaxPending
	}
	r := &Reconciler{
		client:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		recorder: mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		clock:    clock.RealClock{},
		settings: settings,
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.WebhookDelivery{}, pendingIndex, pendingFor); err != nil {
		return fmt.Errorf("index webhook deliveries that wait by endpoint: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		// The status too: the sender of deliveries notes successes and failures there.
		For(&v1alpha1.WebhookEndpoint{}).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha1.WebhookEndpoint{}, handler.OnlyControllerOwner())).
		Watches(&v1alpha1.WebhookDelivery{}, endpointsOf, builder.WithPredicates(changesBacklog)).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope struct {
	endpoint *v1alpha1.WebhookEndpoint
	// before is the status as it was read; endpoint.Status becomes what is to be written.
	before v1alpha1.WebhookEndpointStatus
	now    time.Time
	// secretMade says that this reconcile made the Secret, secretRotated that it put a new signing
	// secret there.
	secretMade, secretRotated bool
}

// Reconcile brings one endpoint's Secret, ping and status up to its spec, with at most one write each.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	endpoint := &v1alpha1.WebhookEndpoint{}
	if err := r.client.Get(ctx, req.NamespacedName, endpoint); err != nil {
		if apierrors.IsNotFound(err) {
			theBacklog.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !endpoint.DeletionTimestamp.IsZero() {
		// The Secret goes with the endpoint, by its owner reference.
		return ctrl.Result{}, nil
	}
	s := &scope{endpoint: endpoint, before: *endpoint.Status.DeepCopy(), now: r.clock.Now()}
	return patch.Outcome(r.run(ctx, s))
}

func (r *Reconciler) run(ctx context.Context, s *scope) (ctrl.Result, error) {
	beginAnew(s.endpoint)
	if err := r.lookAtBacklog(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	found, err := r.secret(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	var result ctrl.Result
	if found.polled {
		result.RequeueAfter = secretPoll
	}
	s.endpoint.Status.SecretRef = nil
	if found.usable() {
		s.endpoint.Status.SecretRef = &v1alpha1.SecretReference{Name: v1alpha1.ResourceName(found.name)}
		if s.endpoint.Spec.SecretRef == nil {
			s.endpoint.Status.RotationSerial = found.serial
		}
		s.endpoint.Status.Secrets = remember(s.before.Secrets, found.secrets.All(), s.now)
		if err := r.ping(ctx, s); err != nil {
			return ctrl.Result{}, err
		}
	}
	return result, r.conclude(ctx, s, judge(s.endpoint, found))
}

// conclude writes the status, if anything in it differs.
func (r *Reconciler) conclude(ctx context.Context, s *scope, verdict conditions.Verdict) error {
	s.endpoint.Status.ObservedGeneration = s.endpoint.Generation
	conditions.Set(&s.endpoint.Status.Conditions, verdict, s.endpoint.Generation, s.now)
	after := s.endpoint.Status
	written, err := patch.Status(ctx, r.client, s.endpoint, patch.Stored(s.before.ObservedGeneration, s.before), after)
	if s.secretMade {
		r.recorder.Eventf(s.endpoint, nil, corev1.EventTypeNormal, "SecretMade", "MakeSecret",
			"Made Secret %s with a fresh signing secret", SecretName(s.endpoint.Name))
	}
	if s.secretRotated {
		r.recorder.Eventf(s.endpoint, nil, corev1.EventTypeNormal, "SecretRotated", "RotateSecret",
			"Put a fresh signing secret into Secret %s", SecretName(s.endpoint.Name))
	}
	if written {
		r.announce(s.endpoint, s.before.Conditions, after.Conditions)
	}
	return err
}

// announce records what a person should hear of without asking.
func (r *Reconciler) announce(endpoint *v1alpha1.WebhookEndpoint, before, after []v1alpha1.Condition) {
	stalled := v1alpha1.FindCondition(after, v1alpha1.ConditionStalled)
	if was := v1alpha1.FindCondition(before, v1alpha1.ConditionStalled); stalled != nil && (was == nil || was.Reason != stalled.Reason) {
		r.recorder.Eventf(endpoint, nil, corev1.EventTypeWarning, stalled.Reason, "Deliver", "%s", stalled.Message)
	}
	was, is := v1alpha1.IsConditionTrue(before, v1alpha1.ConditionBacklogged), v1alpha1.FindCondition(after, v1alpha1.ConditionBacklogged)
	switch {
	case !was && is != nil:
		r.recorder.Eventf(endpoint, nil, corev1.EventTypeWarning, is.Reason, "Deliver", "%s", is.Message)
	case was && is == nil:
		r.recorder.Eventf(endpoint, nil, corev1.EventTypeNormal, "BacklogCleared", "Deliver", "Deliveries are made again")
	}
}

// ping makes the endpoint's one webhook.ping, as soon as it could be sent.
func (r *Reconciler) ping(ctx context.Context, s *scope) error {
	if s.endpoint.IsDisabled() || s.endpoint.Status.PingedAt != nil {
		return nil
	}
	// The cache may be behind a status that says so, and the delivery retired since.
	current := &v1alpha1.WebhookEndpoint{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(s.endpoint), current); err != nil {
		return fmt.Errorf("look whether the endpoint was pinged: %w", err)
	}
	if current.UID != s.endpoint.UID || current.Status.PingedAt != nil {
		return nil // the watch brings what the cache is behind of
	}
	delivery, err := webhooks.NewDelivery(webhooks.Ping(s.endpoint, s.now), s.endpoint)
	if err != nil {
		return err
	}
	// Its name follows from the endpoint: after a crash before the status was written it is there.
	if err := r.client.Create(ctx, delivery); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the ping's delivery: %w", err)
	}
	s.endpoint.Status.PingedAt = ptr.To(v1alpha1.NewTime(s.now))
	return nil
}
