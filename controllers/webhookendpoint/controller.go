// Package webhookendpoint ensures that each WebhookEndpoint has a signing secret, sends it a first
// ping, reports in its status whether events reach it, and suspends new deliveries when too many
// are pending.
package webhookendpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/ownsecret"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// secretPoll is how often the Secret of another owner is read: only our own are watched.
const secretPoll = 15 * time.Second

// quotaRetry is after how long, at the latest, a ping is tried again for which a quota leaves no room.
const quotaRetry = time.Minute

// DefaultMaxPending is the default of Settings.MaxPending.
const DefaultMaxPending = 10_000

// Settings configure the controller.
type Settings struct {
	// MaxPending is how many deliveries of one endpoint may be pending before no more are made. Default:
	// DefaultMaxPending.
	MaxPending int
	// SecretPoll overrides secretPoll in tests.
	SecretPoll time.Duration
}

// Reconciler reconciles WebhookEndpoints.
type Reconciler struct {
	reconcile.Base
	secrets  ownsecret.Store
	settings Settings
}

// SetupWithManager adds the controller of WebhookEndpoints to the manager.
func (s Settings) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	s.MaxPending = cmp.Or(s.MaxPending, DefaultMaxPending)
	r := &Reconciler{
		Base:     reconcile.NewBase(mgr),
		secrets:  ownsecret.NewStore(mgr),
		settings: s,
	}
	if err := index.Add(ctx, mgr, &v1alpha1.WebhookDelivery{}, pendingIndex, pendingFor); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.WebhookEndpoint{}, builder.WithPredicates(worthReconciling)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(),
			&v1alpha1.WebhookEndpoint{}, handler.OnlyControllerOwner())).
		Watches(&v1alpha1.WebhookDelivery{}, watch.EnqueueAfter(watch.GatherDelay, watch.Reference(index.EndpointOf)),
			builder.WithPredicates(watch.NewSinceStart, changesBacklog)).
		Watches(&v1alpha1.WebhookEndpoint{}, r.enqueueMisjudged(),
			builder.WithPredicates(watch.NewSinceStart, watch.CreatedOrDeleted)).
		WithOptions(options).
		Complete(r)
}

// worthReconciling includes status changes, because the sender of deliveries records successes and failures there. It
// ignores changes of messages alone: an error with a different text each time would be retried at once, endlessly.
var worthReconciling = watch.SpecOr(func(before, after *v1alpha1.WebhookEndpoint) bool {
	return !reflect.DeepEqual(withoutMessages(before.Status), withoutMessages(after.Status))
})

// withoutMessages returns the status without the messages of its conditions.
func withoutMessages(status v1alpha1.WebhookEndpointStatus) v1alpha1.WebhookEndpointStatus {
	status.Conditions = slices.Clone(status.Conditions)
	for i := range status.Conditions {
		status.Conditions[i].Message = ""
	}
	return status
}

// scope is what one reconcile works on.
type scope = reconcile.Scope[*v1alpha1.WebhookEndpoint, *v1alpha1.WebhookEndpointStatus]

func newScope() *scope { return reconcile.NewScope(&v1alpha1.WebhookEndpoint{}) }

// Reconcile updates one endpoint's Secret, ping and status. The Secret is deleted with the endpoint, through its owner
// reference.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope,
		Phases:   []reconcile.Phase[*scope]{r.observeSpec, r.observeBacklog, r.ensureSecret},
		Stored:   r.announce,
		Deleting: theBacklog.forget, // nothing is sent to it, whatever holds it
		Gone:     theBacklog.forget,
	}.Run(ctx, req)
}

// ensureSecret ensures that the signing secret exists, and pings the endpoint once it does.
func (r *Reconciler) ensureSecret(ctx context.Context, s *scope) error {
	found, err := r.secret(ctx, s)
	if err != nil {
		return err
	}
	served, err := r.isServed(ctx, s.Object)
	if err != nil {
		return err
	}
	if found.polled && served { // others are enqueued when they become served, see misjudged
		s.RequeueAfter(cmp.Or(r.settings.SecretPoll, secretPoll))
	}
	s.Status.SecretRef = nil
	switch {
	case found.usable():
		s.Status.SecretRef = &v1alpha1.SecretReference{Name: v1alpha1.ResourceName(found.name)}
		if s.Object.Spec.SecretRef == nil {
			s.Status.RotationSerial = found.serial
		}
		s.Status.Secrets = remember(s.Before.Secrets, found.secrets.All(), s.Now)
	case found.lost:
		// The secret may have leaked, so its signatures are no longer valid, whether or not another secret can be made.
		s.Status.Secrets = remember(s.Before.Secrets, nil, s.Now)
	}
	observeSecret(s, found.usable())
	s.Status.ObservedGeneration = s.Object.Generation
	s.Judge(judge(s.Object, served, found))
	if kube.IsRefusal(found.unwritten) {
		if served {
			s.RetryRefused(ctx, found.unwritten, "the signing secret was refused, and is tried again later")
		}
		found.unwritten = nil
	}
	err = errors.Join(found.unwritten, found.unlabelled)
	if !found.usable() || !served {
		return err
	}
	// Ping last: an error must not keep the rest of the status from being observed.
	return errors.Join(err, r.ping(ctx, s))
}

// announce sends Events about problems that need a user's attention, and about their end.
func (r *Reconciler) announce(s *scope) {
	endpoint, before, after := s.Object, s.Before.Conditions, s.Status.Conditions
	stalled := v1alpha1.FindCondition(after, v1alpha1.ConditionStalled)
	if was := v1alpha1.FindCondition(before, v1alpha1.ConditionStalled); stalled != nil &&
		(was == nil || was.Reason != stalled.Reason) {
		r.Recorder.Eventf(endpoint, nil, corev1.EventTypeWarning, stalled.Reason, "Deliver", "%s", stalled.Message)
	}
	ready := v1alpha1.FindCondition(after, v1alpha1.ConditionReady)
	if was := v1alpha1.FindCondition(before, v1alpha1.ConditionReady); ready != nil &&
		ready.Reason == v1alpha1.ReasonUnknownEvents && (was == nil || was.Message != ready.Message) {
		r.Recorder.Eventf(endpoint, nil, corev1.EventTypeWarning, ready.Reason, "Deliver", "%s", ready.Message)
	}
	if isNotRotated(endpoint) && s.Before.ObservedGeneration != s.Status.ObservedGeneration {
		r.Recorder.Eventf(endpoint, nil, corev1.EventTypeWarning, "RotationIgnored", "RotateSecret",
			"Nothing is rotated by spec.rotation.serial %d: for a new signing secret set it to %d",
			endpoint.Spec.Rotation.Serial, s.Status.RotationSerial+1)
	}
	was := v1alpha1.FindCondition(before, v1alpha1.ConditionBacklogged)
	is := v1alpha1.FindCondition(after, v1alpha1.ConditionBacklogged)
	switch {
	case is != nil && (was == nil || was.Reason != is.Reason && is.Reason == v1alpha1.ReasonDecisionsHeldBack):
		r.Recorder.Eventf(endpoint, nil, corev1.EventTypeWarning, is.Reason, "Deliver", "%s", is.Message)
	case was != nil && is == nil:
		r.Recorder.Eventf(endpoint, nil, corev1.EventTypeNormal, "BacklogCleared", "Deliver", "The backlog has cleared: changes become deliveries again")
	}
}

// ping makes the endpoint's only webhook.ping delivery, as soon as it can be sent.
func (r *Reconciler) ping(ctx context.Context, s *scope) error {
	if s.Object.IsDisabled() || s.Status.PingedAt != nil {
		return nil
	}
	// Read past the cache, which may not show PingedAt yet although the delivery was already retired.
	current := &v1alpha1.WebhookEndpoint{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.Object), current); err != nil {
		return fmt.Errorf("check whether the endpoint was pinged: %w", err)
	}
	if current.UID != s.Object.UID || current.Status.PingedAt != nil {
		return nil // the watch will report the newer object
	}
	delivery, err := webhooks.NewDelivery(webhooks.Ping(s.Object, s.Now), s.Object)
	if err != nil {
		return err
	}
	// The delivery exists already if the controller crashed before it wrote the status: its name derives from the
	// endpoint.
	err = r.Client.Create(ctx, delivery)
	switch {
	case kube.IsQuotaExceeded(err): // perhaps for days; the Organization reports only its own quota
		ctrl.LoggerFrom(ctx).Info("a quota leaves no room for the ping, which is tried again later", "error", err.Error())
		s.RequeueAfter(quotaRetry)
		return nil
	case kube.IsRefusal(err):
		s.RetryRefused(ctx, err, "the ping was refused, and is tried again later")
		return nil
	case err != nil && !kube.IsAlreadyExists(err):
		return fmt.Errorf("create the ping's delivery: %w", err)
	}
	s.Status.PingedAt = new(v1alpha1.NewTime(s.Now))
	return nil
}
