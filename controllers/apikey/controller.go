// Package apikey gives each APIKey a signed token in a Secret, and reports in its status which token is valid and until
// when.
//
// The token is stored only in the Secret. The Secret is written before the status, and the status records only what was
// found in the Secret. After a crash between the two writes the next reconcile takes the token over from the Secret.
package apikey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/ownsecret"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// conflictRetry is how often a key checks whether a conflicting Secret has been deleted, since Secrets of other owners
// are not watched.
const conflictRetry = 15 * time.Second

// rotationDelay is how long a rotation waits for the cache to show the last written status.
const rotationDelay = 50 * time.Millisecond

// unpublishedRetry is how often a key checks whether the signing key is published.
const unpublishedRetry = time.Second

// Reconciler reconciles APIKeys.
type Reconciler struct {
	reconcile.Base
	secrets     ownsecret.Store
	signingKeys signingKeys
	settings    Settings
}

// Settings configure the controller.
type Settings struct {
	// Namespace is the operator's own, which holds the signing key.
	Namespace string
	// ConflictRetry overrides conflictRetry in tests.
	ConflictRetry time.Duration
	// PublicationNotice overrides publicationNotice in tests: how long a new signing key is published before it signs.
	PublicationNotice time.Duration
}

// SetupWithManager adds the controller of APIKeys to the manager.
func (s Settings) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	base := reconcile.NewBase(mgr)
	r := &Reconciler{
		Base: base, secrets: ownsecret.NewStore(mgr), settings: s,
		signingKeys: signingKeys{
			Base: base, namespace: s.Namespace, notice: cmp.Or(s.PublicationNotice, publicationNotice),
		},
	}
	storage, err := signingKeysCache(ctx, mgr, s.Namespace)
	if err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).
		// Only this controller writes the status, except lastUsedAt, which needs no reconcile.
		For(&v1alpha1.APIKey{}, builder.WithPredicates(watch.SpecChanged)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(),
			&v1alpha1.APIKey{}, handler.OnlyControllerOwner())).
		Watches(&v1alpha1.Organization{}, handler.EnqueueRequestsFromMapFunc(r.keysOf),
			builder.WithPredicates(watch.NewSinceStart, concernsKeys)).
		WithOptions(options)
	for _, source := range signingKeyChanges(storage, handler.EnqueueRequestsFromMapFunc(r.allKeys)) {
		b = b.WatchesRawSource(source)
	}
	return errors.Join(b.Complete(r), r.signingKeys.setup(mgr, options, storage))
}

// scope is what one reconcile works on.
type scope struct {
	*reconcile.Scope[*v1alpha1.APIKey, *v1alpha1.APIKeyStatus]
	// organization owns the key's namespace.
	organization *v1alpha1.Organization
	// accepted are the public signing keys whose tokens are accepted.
	accepted tokens.KeySet
}

func newScope() *scope {
	return &scope{Scope: reconcile.NewScope(&v1alpha1.APIKey{})}
}

// Reconcile updates one key's Secret and status. The Secret is deleted with the key, through its owner reference.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope,
		Phases: []reconcile.Phase[*scope]{r.findOrganization, r.ensureToken},
		Stored: r.announce,
	}.Run(ctx, req)
}

// findOrganization ends the reconcile of a key without an organization. The token stays, because the REST API does not
// accept it.
func (r *Reconciler) findOrganization(ctx context.Context, s *scope) (err error) {
	if s.organization, err = r.organizationOf(ctx, s.Object.Namespace); err == nil && s.organization == nil {
		s.conclude(organizationNotFound(s.Object.Namespace))
		s.Stop()
	}
	return err
}

// ensureToken writes the right token to the Secret, and records it in the status.
func (r *Reconciler) ensureToken(ctx context.Context, s *scope) error {
	secret, err := r.secrets.Get(ctx, s.Object, SecretName(s.Object.Name))
	if kube.IsAlreadyExists(err) {
		r.concludeConflict(s, nil)
		return nil
	}
	if err != nil {
		return err
	}
	ring, err := r.signingKeys.current(ctx)
	if err != nil {
		return concludeUnsigned(s, secret, err)
	}
	s.accepted = ring.Public()
	found := recall(s, secret)
	have, err := r.ensureSecret(ctx, s, ring.Signer, secret, found)
	if err != nil {
		return r.concludeUnwritten(s, found, err)
	}
	*s.Status = statusFor(s, have)
	s.RequeueAfter(untilNextChange(*s.Status, s.Now))
	if rotationWaits(s, have) {
		s.RequeueAfter(rotationDelay)
	}
	s.conclude(judge(s))
	return nil
}

// ensureSecret writes the right token to the Secret, and returns it. It fails with AlreadyExists if the Secret must be
// replaced but cannot be.
func (r *Reconciler) ensureSecret(ctx context.Context, s *scope, signer tokens.SigningKey, secret *corev1.Secret,
	have *issued) (*issued, error) {
	inUse := have != nil && s.Now.Before(endOfIssued(s, have))
	if order, needed := decide(s, have); needed {
		order.claims.ID, order.inUse = uuid.NewString(), inUse
		return r.issue(ctx, s, signer, secret, order)
	}
	if have != nil && have.signedBy != signer.ID() {
		// The claims stay the same. Both tokens are valid while both keys are published.
		return r.issue(ctx, s, signer, secret, order{
			claims: have.claims, serial: have.serial, replaces: have.replaces, inUse: inUse,
		})
	}
	if secret == nil {
		return have, nil
	}
	return have, r.secrets.KeepWatched(ctx, secret)
}

// concludeConflict records that the Secret with the key's name belongs to another owner, or cannot be replaced. The
// token found in it stays valid, unless another one is to replace it.
func (r *Reconciler) concludeConflict(s *scope, found *issued) {
	s.RequeueAfter(cmp.Or(r.settings.ConflictRetry, conflictRetry))
	if _, replaced := decide(s, found); found == nil || replaced {
		*s.Status = withoutToken(s.Before)
		s.conclude(secretConflict(SecretName(s.Object.Name)))
		return
	}
	*s.Status = statusFor(s, found)
	s.RequeueAfter(untilNextChange(*s.Status, s.Now))
	verdict := judge(s)
	if !verdict.Stalled {
		// This applies to a disabled key, too: a rotation of the signing key waits for all keys without this verdict.
		verdict = secretFrozen(s.Object)
	}
	s.conclude(verdict)
}

// concludeUnwritten records that the Secret could not be written, and returns the error that causes a retry. A lost
// token is no longer valid, whether or not another one can be issued.
func (r *Reconciler) concludeUnwritten(s *scope, found *issued, err error) error {
	switch {
	case kube.IsAlreadyExists(err):
		r.concludeConflict(s, found)
		return nil
	case kube.IsConflict(err), kube.IsNotFound(err):
		return err // the Secret has changed since it was read, which the next reconcile sees
	}
	*s.Status = statusFor(s, found)
	s.conclude(secretNotWritten(s, err))
	return err
}

// concludeUnsigned records that no signing key can be used, and returns the error that causes a retry. A lost token is
// no longer valid; whether one that is still in the Secret is valid cannot be verified, so the status stays.
func concludeUnsigned(s *scope, secret *corev1.Secret, err error) error {
	if secret == nil {
		*s.Status = statusFor(s, nil)
		verdict := judge(s)
		if _, needed := decide(s, nil); needed {
			verdict = tokenNotSigned(s.Object)
		}
		s.conclude(verdict)
	}
	if errors.Is(err, errUnpublished) {
		// The watch reports the publication; the retry is for a watch that lags behind.
		s.RequeueAfter(unpublishedRetry)
		return nil
	}
	return err
}

func (s *scope) conclude(verdict conditions.Verdict) {
	s.Status.ObservedGeneration = s.Object.Generation
	s.Judge(verdict)
}

// organizationOf returns the organization that owns the namespace, or nil.
func (r *Reconciler) organizationOf(ctx context.Context, namespace string) (*v1alpha1.Organization, error) {
	name, ok := strings.CutPrefix(namespace, v1alpha1.NamespacePrefix)
	if !ok {
		return nil, nil
	}
	organization := &v1alpha1.Organization{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, organization)
	if kube.IsNotFound(err) || (err == nil && organization.Status.Namespace != namespace) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get organization %s: %w", name, err)
	}
	return organization, nil
}
