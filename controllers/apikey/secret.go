package apikey

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// What a token's Secret says of it, for a reconcile that finds a token the status does not
// know of.
const (
	serialAnnotation   = v1alpha1.GroupName + "/rotation-serial"
	replacesAnnotation = v1alpha1.GroupName + "/replaces-key-id"
)

const (
	secretSuffix  = "-token"
	maxNameLength = 253
	// hashLength in hexadecimal digits: 64 bits.
	hashLength = 16
)

// SecretName is the name of the Secret that holds the token of the key of that name. A name
// too long for the suffix is cut and a hash of the whole put in.
func SecretName(key string) string {
	if len(key)+len(secretSuffix) <= maxNameLength {
		return key + secretSuffix
	}
	sum := sha256.Sum256([]byte(key))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	cut := key[:maxNameLength-len(secretSuffix)-hashLength-1]
	// Each part of a name between dots ends in a letter or a digit.
	return strings.TrimRight(cut, "-.") + "-" + hash + secretSuffix
}

// ownSecret returns the key's Secret, or nil where there is none. It fails with AlreadyExists
// where the name is taken by one that is not ours.
func (r *Reconciler) ownSecret(ctx context.Context, key *v1alpha1.APIKey) (*corev1.Secret, error) {
	name := SecretName(key.Name)
	secret := &corev1.Secret{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get secret %s: %w", name, err)
	case metav1.IsControlledBy(secret, key):
		return secret, nil
	case leftBehind(secret, key):
		// The garbage collector would remove it, only later.
		return nil, r.deleteSecret(ctx, secret)
	}
	return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, name)
}

// leftBehind reports whether the Secret is that of an earlier key of the same name, which
// must be gone since this one is there.
func leftBehind(secret *corev1.Secret, key *v1alpha1.APIKey) bool {
	owner := metav1.GetControllerOf(secret)
	return owner != nil && owner.Kind == "APIKey" && owner.Name == key.Name &&
		strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") && owner.UID != key.UID
}

func (r *Reconciler) deleteSecret(ctx context.Context, secret *corev1.Secret) error {
	same := client.Preconditions{UID: ptr.To(secret.UID), ResourceVersion: ptr.To(secret.ResourceVersion)}
	if err := r.client.Delete(ctx, secret, same); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete secret %s: %w", secret.Name, err)
	}
	return nil
}

// issue signs the token and writes it into the key's Secret, over exactly what was read.
func (r *Reconciler) issue(ctx context.Context, s *scope, signer tokens.SigningKey, secret *corev1.Secret, o order) (*issued, error) {
	token, err := signer.Sign(o.claims)
	if err != nil {
		return nil, err
	}
	if secret != nil && frozen(secret) {
		// Someone froze it; a token must be replaceable.
		if err := r.deleteSecret(ctx, secret); err != nil {
			return nil, err
		}
		secret = nil
	}
	write := r.updateSecret
	if secret == nil {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: SecretName(s.key.Name)}, Type: corev1.SecretTypeOpaque}
		write = r.createSecret
	}
	if err := r.dress(s.key, secret, o, token); err != nil {
		return nil, err
	}
	if err := write(ctx, secret); err != nil {
		return nil, err
	}
	return &issued{claims: o.claims, signedBy: signer.ID(), serial: o.serial, replaces: o.replaces}, nil
}

// dress puts the token and what is to be known of it into the Secret.
func (r *Reconciler) dress(key *v1alpha1.APIKey, secret *corev1.Secret, o order, token string) error {
	metav1.SetMetaDataLabel(&secret.ObjectMeta, v1alpha1.ManagedByLabel, v1alpha1.ManagedBy)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, serialAnnotation, strconv.FormatInt(o.serial, 10))
	delete(secret.Annotations, replacesAnnotation)
	if o.replaces != "" {
		secret.Annotations[replacesAnnotation] = o.replaces
	}
	secret.Data = map[string][]byte{v1alpha1.APIKeyTokenKey: []byte(token)}
	if err := controllerutil.SetControllerReference(key, secret, r.client.Scheme()); err != nil {
		return fmt.Errorf("secret %s: %w", secret.Name, err)
	}
	return nil
}

// createSecret fails with a conflict where the name was taken meanwhile, so that the next
// reconcile looks at it.
func (r *Reconciler) createSecret(ctx context.Context, secret *corev1.Secret) error {
	err := r.client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, secret.Name, err)
	}
	if err != nil {
		return fmt.Errorf("create secret %s: %w", secret.Name, err)
	}
	return nil
}

func (r *Reconciler) updateSecret(ctx context.Context, secret *corev1.Secret) error {
	if err := r.client.Update(ctx, secret); err != nil {
		return fmt.Errorf("update secret %s: %w", secret.Name, err)
	}
	return nil
}

// keepWatched puts our label back where it was taken off: the watch sees no Secret without it.
func (r *Reconciler) keepWatched(ctx context.Context, secret *corev1.Secret) error {
	if secret == nil || secret.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy {
		return nil
	}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, v1alpha1.ManagedByLabel, v1alpha1.ManagedBy)
	return r.updateSecret(ctx, secret)
}

// serialOf is 0 where the annotation is missing or no number.
func serialOf(secret *corev1.Secret) int64 {
	serial, err := strconv.ParseInt(secret.Annotations[serialAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return serial
}
