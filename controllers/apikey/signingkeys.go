package apikey

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// errUnpublished is met while there is no signing key, or while its public half is not
// published: nothing may be signed before that.
var errUnpublished = errors.New("the signing key is not published yet")

// owedRetry is how often a rotation looks whether every token has been signed anew.
const owedRetry = 5 * time.Second

// signingKeys keeps the keys of tokens in a Secret, and their public halves in a ConfigMap
// that follows the Secret. It reconciles these two, and is the only one that writes them.
//
// Where a rotation stands is in the Secret alone, each step is one update of it over exactly
// what was read, and whatever the Secret says is published before anything else is done. So
// a crash, or a replica that lags behind, repeats a step or is refused.
type signingKeys struct {
	client    client.Client
	live      client.Reader
	recorder  events.EventRecorder
	clock     clock.PassiveClock
	namespace string
	// notice is how long a key is published before it signs.
	notice time.Duration
}

// Reconcile does whatever is due: makes the key, publishes it, and takes a rotation a step on.
// The watch on the Secret reports each step, and so asks for the next one.
func (k signingKeys) Reconcile(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	return patch.Outcome(k.reconcile(ctx))
}

func (k signingKeys) reconcile(ctx context.Context) (ctrl.Result, error) {
	public, err := k.published(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	held, err := k.load(ctx)
	if apierrors.IsNotFound(err) {
		held, err = k.make(ctx, rotationAsked(public))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	published, err := k.publish(ctx, public, held.ring.Public())
	if err != nil {
		return ctrl.Result{}, err
	}
	return k.advance(ctx, held, public, published)
}

// current returns what tokens are signed with and which tokens may be gone by. It reads both
// objects each time: a key that was removed must not be signed with, and one that is not
// published must not either.
func (k signingKeys) current(ctx context.Context) (tokens.Ring, error) {
	held, err := k.load(ctx)
	if apierrors.IsNotFound(err) {
		return tokens.Ring{}, errUnpublished
	}
	if err != nil {
		return tokens.Ring{}, err
	}
	public, err := k.published(ctx)
	if err != nil {
		return tokens.Ring{}, err
	}
	// An entry that is no key of ours is put right elsewhere, and does not concern this one.
	set, _ := tokens.DecodeKeySet(public.Data)
	if !set.Has(held.ring.Signer.ID()) {
		return tokens.Ring{}, errUnpublished
	}
	return held.ring, nil
}

func (k signingKeys) load(ctx context.Context) (holding, error) {
	secret := &corev1.Secret{}
	if err := k.live.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: tokens.SigningKeySecret},
		secret); err != nil {
		return holding{}, fmt.Errorf("get the signing key: %w", err)
	}
	ring, err := tokens.DecodeRing(secret.Data)
	if err != nil {
		// Never written over: it may be all there is of a key that a backup knows.
		return holding{}, fmt.Errorf("secret %s/%s holds no signing key, %w; restore it, or delete it to have every token issued anew",
			k.namespace, tokens.SigningKeySecret, err)
	}
	return holding{ring: ring, secret: secret}, nil
}

// make creates the Secret. Whoever comes first among the replicas wins, and the others take
// the winner's key. A rotation that was asked for before is served by it.
func (k signingKeys) make(ctx context.Context, asked string) (holding, error) {
	key, err := tokens.GenerateSigningKey()
	if err != nil {
		return holding{}, err
	}
	made := holding{ring: tokens.Ring{Signer: key}, secret: &corev1.Secret{
		ObjectMeta: k.meta(tokens.SigningKeySecret),
		Type:       corev1.SecretTypeOpaque,
	}}
	if made.secret.Data, err = tokens.EncodeRing(made.ring); err != nil {
		return holding{}, err
	}
	made.annotate(servedAnnotation, asked)
	err = k.client.Create(ctx, made.secret)
	if apierrors.IsAlreadyExists(err) {
		return k.load(ctx)
	}
	if err != nil {
		return holding{}, fmt.Errorf("create the signing key: %w", err)
	}
	return made, nil
}

// published returns the ConfigMap, an empty one where there is none.
func (k signingKeys) published(ctx context.Context) (*corev1.ConfigMap, error) {
	public := &corev1.ConfigMap{}
	err := k.live.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: tokens.SigningKeysConfigMap}, public)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get the public signing keys: %w", err)
	}
	return public, nil
}

// publish makes the ConfigMap hold the set and nothing else: a token of a key that is gone
// must not be accepted. It reports whether it had to.
func (k signingKeys) publish(ctx context.Context, have *corev1.ConfigMap, set tokens.KeySet) (bool, error) {
	data, err := tokens.EncodeKeySet(set)
	if err != nil {
		return false, err
	}
	switch {
	case have.UID == "":
		*have = corev1.ConfigMap{ObjectMeta: k.meta(tokens.SigningKeysConfigMap), Data: data}
		err = k.client.Create(ctx, have)
		if apierrors.IsAlreadyExists(err) {
			err = apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, have.Name, err)
		}
	case maps.Equal(have.Data, data):
		return false, nil
	default:
		before := have.DeepCopy()
		have.Data = data
		err = k.client.Patch(ctx, have, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
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

// store writes the holding over exactly what was read.
func (k signingKeys) store(ctx context.Context, held holding) error {
	data, err := tokens.EncodeRing(held.ring)
	if err != nil {
		return err
	}
	held.secret.Data = data
	if err := k.client.Update(ctx, held.secret); err != nil {
		return fmt.Errorf("update the signing key: %w", err)
	}
	return nil
}

// owed reports whether an API key still goes by a token of the key before. A key that belongs
// to no organization is not served, and nobody accepts what it has.
func (k signingKeys) owed(ctx context.Context, before tokens.KeySet) (bool, error) {
	keys := &v1alpha1.APIKeyList{}
	if err := k.client.List(ctx, keys, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list the API keys: %w", err)
	}
	now := k.clock.Now()
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
	ready := v1alpha1.FindCondition(key.Status.Conditions, v1alpha1.ConditionReady)
	return ready == nil || ready.Reason != v1alpha1.ReasonOrganizationNotFound
}
