package apikey

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// signingKeys keeps the key that signs tokens in a Secret, and its public half in a ConfigMap
// that follows the Secret.
type signingKeys struct {
	client    client.Client
	live      client.Reader
	namespace string
}

// ensure returns the signing key, made now if there is none, once its public half is
// published. It reads the Secret each time: a key that was removed must not be signed with.
func (k signingKeys) ensure(ctx context.Context) (tokens.SigningKey, error) {
	key, err := k.load(ctx)
	if apierrors.IsNotFound(err) {
		key, err = k.make(ctx)
	}
	if err != nil {
		return tokens.SigningKey{}, err
	}
	return key, k.publish(ctx, key)
}

func (k signingKeys) load(ctx context.Context) (tokens.SigningKey, error) {
	secret := &corev1.Secret{}
	if err := k.live.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: tokens.SigningKeySecret}, secret); err != nil {
		return tokens.SigningKey{}, fmt.Errorf("get the signing key: %w", err)
	}
	key, err := tokens.DecodeSigningKey(secret.Data)
	if err != nil {
		// Never written over: it may be all there is of a key that a backup knows.
		return tokens.SigningKey{}, fmt.Errorf("secret %s/%s holds no signing key, %w; restore it, or delete it to have every token issued anew",
			k.namespace, tokens.SigningKeySecret, err)
	}
	return key, nil
}

// make creates the Secret. Whoever comes first among the replicas wins, and the others take
// the winner's key.
func (k signingKeys) make(ctx context.Context) (tokens.SigningKey, error) {
	key, err := tokens.GenerateSigningKey()
	if err != nil {
		return tokens.SigningKey{}, err
	}
	data, err := tokens.EncodeSigningKey(key)
	if err != nil {
		return tokens.SigningKey{}, err
	}
	secret := &corev1.Secret{
		ObjectMeta: k.meta(tokens.SigningKeySecret),
		Type:       corev1.SecretTypeOpaque,
		Immutable:  ptr.To(true),
		Data:       data,
	}
	err = k.client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return k.load(ctx)
	}
	if err != nil {
		return tokens.SigningKey{}, fmt.Errorf("create the signing key: %w", err)
	}
	return key, nil
}

// publish makes the ConfigMap hold the key's public half and nothing else: a token of a key
// that is gone must not be accepted.
func (k signingKeys) publish(ctx context.Context, key tokens.SigningKey) error {
	data, err := tokens.EncodeKeySet(key.Public())
	if err != nil {
		return err
	}
	have := &corev1.ConfigMap{}
	err = k.live.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: tokens.SigningKeysConfigMap}, have)
	if apierrors.IsNotFound(err) {
		err = k.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: k.meta(tokens.SigningKeysConfigMap), Data: data})
		if apierrors.IsAlreadyExists(err) {
			// Another replica, with the same key: it has read the same Secret.
			return nil
		}
	} else if err == nil && !maps.Equal(have.Data, data) {
		want := have.DeepCopy()
		want.Data = data
		err = k.client.Patch(ctx, want, client.MergeFromWithOptions(have, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		return fmt.Errorf("publish the signing key: %w", err)
	}
	return nil
}

func (k signingKeys) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: k.namespace,
		Name:      name,
		Labels:    map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
	}
}
