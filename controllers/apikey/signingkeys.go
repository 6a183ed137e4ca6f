package apikey

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// errUnpublished is returned while there is no signing key, or while its public key is not
// published: nothing may be signed before that.
var errUnpublished = errors.New("the signing key is not published yet")

// owedRetry is how often a rotation checks whether every token was signed again.
const owedRetry = 5 * time.Second

// signingKeys keeps the token signing keys in a Secret, and their public keys in a ConfigMap that follows the Secret.
// It reconciles these two objects and is their only writer.
//
// Only the Secret holds the state of a rotation, each step is one update with optimistic locking, and the keys in the
// Secret are published before anything else is done. So a step is repeated after a crash, and the update of a replica
// that lags behind is refused.
type signingKeys struct {
	reconcile.Base
	namespace string
	// notice is how long a key must be published before it signs.
	notice time.Duration
}

// Reconcile creates the key, publishes it, and carries out the next step of a rotation. Each step changes the Secret,
// whose watch enqueues the next one.
func (k signingKeys) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	return patch.Outcome(k.reconcile(ctx))
}

func (k signingKeys) reconcile(ctx context.Context) (ctrl.Result, error) {
	public, err := k.published(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	held, err := k.load(ctx)
	if kube.IsNotFound(err) {
		held, err = k.make(ctx, rotationAsked(public))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	published, err := k.publish(ctx, public, held.ring.Public())
	if err != nil {
		if ptr.Deref(public.Immutable, false) {
			k.announce(public, corev1.EventTypeWarning, "RotationRefused",
				"ConfigMap %s is immutable, so no key can be published in it or removed from it, and tokens of "+
					"earlier keys are accepted. Delete the ConfigMap; it is created again at once", public.Name)
		}
		return ctrl.Result{}, err
	}
	return k.advance(ctx, held, public, published)
}

// current returns the signing key and the keys whose tokens are accepted. It reads both objects
// each time: a key that was removed or is not published must not sign.
func (k signingKeys) current(ctx context.Context) (tokens.Ring, error) {
	held, err := k.load(ctx)
	if kube.IsNotFound(err) {
		return tokens.Ring{}, errUnpublished
	}
	if err != nil {
		return tokens.Ring{}, err
	}
	public, err := k.published(ctx)
	if err != nil {
		return tokens.Ring{}, err
	}
	// An invalid entry does no harm here: publish repairs it.
	set, _ := tokens.DecodeKeySet(public.Data)
	if !set.Has(held.ring.Signer.ID()) {
		return tokens.Ring{}, errUnpublished
	}
	return held.ring, nil
}

func (k signingKeys) load(ctx context.Context) (holding, error) {
	secret := &corev1.Secret{}
	if err := k.Live.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: tokens.SigningKeySecret},
		secret); err != nil {
		return holding{}, fmt.Errorf("get the signing key: %w", err)
	}
	ring, err := tokens.DecodeRing(secret.Data)
	if err != nil {
		// Never overwrite the Secret: it may be the only trace of a key that a backup holds.
		return holding{}, fmt.Errorf("secret %s/%s holds no signing key, %w; restore it, or delete it to reissue every token",
			k.namespace, tokens.SigningKeySecret, err)
	}
	return holding{ring: ring, secret: secret}, nil
}

// make creates the Secret. The first replica wins, and the others load its key. The new key also serves a rotation that
// was requested before.
func (k signingKeys) make(ctx context.Context, asked string) (holding, error) {
	made := holding{ring: tokens.Ring{Signer: tokens.GenerateSigningKey()}, secret: &corev1.Secret{
		ObjectMeta: k.meta(tokens.SigningKeySecret),
		Type:       corev1.SecretTypeOpaque,
	}}
	var err error
	if made.secret.Data, err = tokens.EncodeRing(made.ring); err != nil {
		return holding{}, err
	}
	made.annotate(servedAnnotation, asked)
	err = k.Client.Create(ctx, made.secret)
	if kube.IsAlreadyExists(err) {
		return k.load(ctx)
	}
	if err != nil {
		return holding{}, fmt.Errorf("create the signing key: %w", err)
	}
	return made, nil
}

// published returns the ConfigMap, or an empty one if it does not exist.
func (k signingKeys) published(ctx context.Context) (*corev1.ConfigMap, error) {
	public := &corev1.ConfigMap{}
	err := k.Live.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: tokens.SigningKeysConfigMap}, public)
	if kube.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get the public signing keys: %w", err)
	}
	return public, nil
}

// publish updates the ConfigMap to hold exactly the set, because tokens of a removed key must not be accepted. It
// reports whether a write was needed.
func (k signingKeys) publish(ctx context.Context, have *corev1.ConfigMap, set tokens.KeySet) (bool, error) {
	data, err := tokens.EncodeKeySet(set)
	if err != nil {
		return false, err
	}
	switch {
	case have.UID == "":
		*have = corev1.ConfigMap{ObjectMeta: k.meta(tokens.SigningKeysConfigMap), Data: data}
		err = k.Client.Create(ctx, have)
		if kube.IsAlreadyExists(err) {
			err = apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, have.Name, err)
		}
	case maps.Equal(have.Data, data):
		return false, nil
	default:
		before := have.DeepCopy()
		have.Data = data
		err = k.Client.Patch(ctx, have, patch.Locked(before))
	}
	if err != nil {
		return false, fmt.Errorf("publish the signing keys: %w", err)
	}
	return true, nil
}

func (k signingKeys) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: k.namespace,
		Name:      name,
		Labels:    map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
	}
}

// store updates the Secret. It fails with a conflict if the Secret has changed since it was read.
func (k signingKeys) store(ctx context.Context, held holding) error {
	data, err := tokens.EncodeRing(held.ring)
	if err != nil {
		return err
	}
	held.secret.Data = data
	if err := k.Client.Update(ctx, held.secret); err != nil {
		return fmt.Errorf("update the signing key: %w", err)
	}
	return nil
}

// owed reports whether an API key still uses a token signed by the previous key. Two kinds of keys do not count. Keys
// without an organization get no new token, and their tokens are not accepted. Keys whose Secret cannot be written or
// replaced must not hold up all others: their token ends with the previous key.
func (k signingKeys) owed(ctx context.Context, before tokens.KeySet) (bool, error) {
	keys := &v1alpha1.APIKeyList{}
	if err := k.Client.List(ctx, keys, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list the API keys: %w", err)
	}
	now := k.Clock.Now()
	for i := range keys.Items {
		key := &keys.Items[i]
		if before.Has(key.Status.SigningKeyID) && key.DeletionTimestamp.IsZero() && served(key) &&
			key.Status.ExpiresAt != nil && now.Before(key.Status.ExpiresAt.Time) {
			return true, nil
		}
	}
	return false, nil
}

func served(key *v1alpha1.APIKey) bool {
	return !slices.Contains([]string{v1alpha1.ReasonOrganizationNotFound, v1alpha1.ReasonSecretNotWritten,
		v1alpha1.ReasonSecretConflict}, conditions.ReadyReason(key.Status.Conditions))
}
