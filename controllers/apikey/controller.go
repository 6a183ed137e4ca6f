// Package apikey gives each APIKey a signed token in a Secret, and says in its status which
// token is valid and until when.
//
// The token is in the Secret and nowhere else. The status never says more than what was
// found in the Secret, and the Secret is written first: after a crash between the two writes
// the next reconcile finds the token there and takes it over.
package apikey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// conflictRetry is how often a key looks whether the Secret in its way has gone: a Secret
// that is not ours is not watched.
const conflictRetry = 15 * time.Second

// rotationDelay is how long a rotation waits for the cache to show the status that was
// written before it.
const rotationDelay = 50 * time.Millisecond

// unpublishedRetry is how often a key looks whether there is a signing key to go by.
const unpublishedRetry = time.Second

// Reconciler reconciles APIKeys.
type Reconciler struct {
	client client.Client
	// live asks the API server itself. Secrets are read with it alone: no token and no
	// private key is kept in a cache.
	live        client.Reader
	signingKeys signingKeys
	recorder    events.EventRecorder
	clock       clock.PassiveClock
}

// SetupWithManager adds the controller of APIKeys to the manager. The signing key is kept in
// the operator's own namespace.
func SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options, operatorNamespace string) error {
	r := &Reconciler{
		client:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		recorder: mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		clock:    clock.RealClock{},
	}
	r.signingKeys = signingKeys{
		client:    r.client,
		live:      r.live,
		recorder:  r.recorder,
		clock:     r.clock,
		namespace: operatorNamespace,
		notice:    publicationNotice,
	}
	storage, err := signingKeysCache(mgr, operatorNamespace)
	if err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).
		// Statuses are ours alone, but for lastUsedAt, which asks for nothing.
		For(&v1alpha1.APIKey{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha1.APIKey{}, handler.OnlyControllerOwner())).
		Watches(&v1alpha1.Organization{}, handler.EnqueueRequestsFromMapFunc(r.keysOf), builder.WithPredicates(concernsKeys)).
		WithOptions(options)
	for _, source := range signingKeyChanges(storage, handler.EnqueueRequestsFromMapFunc(r.allKeys)) {
		b = b.WatchesRawSource(source)
	}
	return errors.Join(b.Complete(r), r.signingKeys.setup(mgr, options, storage))
}

// scope is what one reconcile works on.
type scope struct {
	key *v1alpha1.APIKey
	// before is the status as it was read; key.Status becomes what is to be written.
	before v1alpha1.APIKeyStatus
	// organization owns the key's namespace.
	organization *v1alpha1.Organization
	now          time.Time
}

// Reconcile brings one key's Secret and status up to its spec, with at most one write each.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	key := &v1alpha1.APIKey{}
	if err := r.client.Get(ctx, req.NamespacedName, key); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !key.DeletionTimestamp.IsZero() {
		// The Secret goes with the key, by its owner reference.
		return ctrl.Result{}, nil
	}
	s := &scope{key: key, before: *key.Status.DeepCopy(), now: r.clock.Now()}
	result, err := r.run(ctx, s)
	return patch.Outcome(result, err)
}

func (r *Reconciler) run(ctx context.Context, s *scope) (ctrl.Result, error) {
	var err error
	if s.organization, err = r.organizationOf(ctx, s.key.Namespace); err != nil {
		return ctrl.Result{}, err
	}
	if s.organization == nil {
		// The token stays as it is: without an organization nobody accepts it.
		return ctrl.Result{}, r.conclude(ctx, s, organizationNotFound(s.key.Namespace))
	}
	ring, err := r.signingKeys.current(ctx)
	if errors.Is(err, errUnpublished) {
		// The watch reports when it is published; this is for a watch that lags behind.
		return ctrl.Result{RequeueAfter: unpublishedRetry}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	secret, err := r.ownSecret(ctx, s.key)
	if apierrors.IsAlreadyExists(err) {
		s.key.Status = withoutToken(s.before)
		return ctrl.Result{RequeueAfter: conflictRetry}, r.conclude(ctx, s, secretConflict(SecretName(s.key.Name)))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	have := recall(s, secret, ring.Public())
	if have, err = r.bringAbout(ctx, s, ring.Signer, secret, have); err != nil {
		return ctrl.Result{}, err
	}
	s.key.Status = settle(s, have)
	result := ctrl.Result{RequeueAfter: untilNextChange(s.key.Status, s.now)}
	if rotationWaits(s, have) {
		result.RequeueAfter = rotationDelay
	}
	return result, r.conclude(ctx, s, judge(s))
}

// bringAbout makes the Secret hold the token that it should, and returns which that is.
func (r *Reconciler) bringAbout(ctx context.Context, s *scope, signer tokens.SigningKey, secret *corev1.Secret, have *issued) (*issued, error) {
	if order, needed := decide(s, have); needed {
		order.claims.ID = uuid.NewString()
		return r.issue(ctx, s, signer, secret, order)
	}
	if have != nil && have.signedBy != signer.ID() {
		// The same token in all that it says: both copies are good while both keys are published.
		return r.issue(ctx, s, signer, secret, order{claims: have.claims, serial: have.serial, replaces: have.replaces})
	}
	return have, r.keepWatched(ctx, secret)
}

// conclude writes the status, if anything in it differs.
func (r *Reconciler) conclude(ctx context.Context, s *scope, verdict conditions.Verdict) error {
	s.key.Status.ObservedGeneration = s.key.Generation
	conditions.Set(&s.key.Status.Conditions, verdict, s.key.Generation, s.now)
	written, err := patch.Status(ctx, r.client, s.key, s.before, s.key.Status)
	if written {
		r.announce(s)
	}
	return err
}

// organizationOf returns the organization that owns the namespace, or nil.
func (r *Reconciler) organizationOf(ctx context.Context, namespace string) (*v1alpha1.Organization, error) {
	name, ok := organizationName(namespace)
	if !ok {
		return nil, nil
	}
	organization := &v1alpha1.Organization{}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, organization)
	if apierrors.IsNotFound(err) || (err == nil && organization.Status.Namespace != namespace) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get organization %s: %w", name, err)
	}
	return organization, nil
}
