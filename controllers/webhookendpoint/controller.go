// Package webhookendpoint sees to it that each WebhookEndpoint has a signing secret, greets it
// with a ping, and says in its status whether events reach it.
package webhookendpoint

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
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

// Reconciler reconciles WebhookEndpoints.
type Reconciler struct {
	client client.Client
	// live asks the API server itself. Secrets are read with it alone, so that none is kept in a
	// cache.
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

// SetupWithManager adds the controller of WebhookEndpoints to the manager.
func SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
	r := &Reconciler{
		client:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		recorder: mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		clock:    clock.RealClock{},
	}
	return ctrl.NewControllerManagedBy(mgr).
		// The status too: the sender of deliveries notes successes and failures there.
		For(&v1alpha1.WebhookEndpoint{}).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha1.WebhookEndpoint{}, handler.OnlyControllerOwner())).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope struct {
	endpoint *v1alpha1.WebhookEndpoint
	// before is the status as it was read; endpoint.Status becomes what is to be written.
	before v1alpha1.WebhookEndpointStatus
	now    time.Time
	// secretMade says that this reconcile made the Secret.
	secretMade bool
}

// Reconcile brings one endpoint's Secret, ping and status up to its spec, with at most one write each.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	endpoint := &v1alpha1.WebhookEndpoint{}
	if err := r.client.Get(ctx, req.NamespacedName, endpoint); err != nil {
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
	_, err := patch.Status(ctx, r.client, s.endpoint, patch.Stored(s.before.ObservedGeneration, s.before), s.endpoint.Status)
	if s.secretMade {
		r.recorder.Eventf(s.endpoint, nil, corev1.EventTypeNormal, "SecretMade", "MakeSecret",
			"Made Secret %s with a fresh signing secret", SecretName(s.endpoint.Name))
	}
	return err
}

// ping makes the endpoint's one webhook.ping, as soon as it could be sent.
func (r *Reconciler) ping(ctx context.Context, s *scope) error {
	if s.endpoint.Spec.Disabled || s.endpoint.Status.PingedAt != nil {
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
	s.endpoint.Status.PingedAt = ptr.To(metav1.NewTime(s.now))
	return nil
}
