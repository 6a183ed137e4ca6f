package webhookendpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/signatures"
)

const (
	secretSuffix  = "-webhook"
	maxNameLength = 253
	// hashLength in hexadecimal digits: 64 bits.
	hashLength = 16
)

// SecretName is the name of the Secret that is made for the endpoint of that name. A name too
// long for the suffix is cut and a hash of the whole put in.
func SecretName(endpoint string) string {
	if len(endpoint)+len(secretSuffix) <= maxNameLength {
		return endpoint + secretSuffix
	}
	sum := sha256.Sum256([]byte(endpoint))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	cut := endpoint[:maxNameLength-len(secretSuffix)-hashLength-1]
	// Each part of a name between dots ends in a letter or a digit.
	return strings.TrimRight(cut, "-.") + "-" + hash + secretSuffix
}

// errConflict says that the Secret of that name is not the endpoint's.
var errConflict = errors.New("the name is taken")

// found is what a look at the endpoint's Secret brought.
type found struct {
	name    string
	secrets signatures.Secrets
	// problem says why there is none to sign with: NotFound, errConflict, signatures.ErrSecret.
	problem error
	// polled says that no watch reports a change of it.
	polled bool
	// serial is the spec.rotation.serial that was carried out; 0 for none.
	serial int64
}

func (f found) usable() bool { return f.problem == nil }

// secret returns the endpoint's Secret: the one that the spec names, or else its own, which is
// made where it is missing.
func (r *Reconciler) secret(ctx context.Context, s *scope) (found, error) {
	if ref := s.endpoint.Spec.SecretRef; ref != nil {
		return r.givenSecret(ctx, s.endpoint.Namespace, string(ref.Name))
	}
	return r.ownSecret(ctx, s)
}

func (r *Reconciler) givenSecret(ctx context.Context, namespace, name string) (found, error) {
	f := found{name: name, polled: true}
	secret := &corev1.Secret{}
	switch err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); {
	case apierrors.IsNotFound(err):
		f.problem = err
	case err != nil:
		return f, fmt.Errorf("get secret %s: %w", name, err)
	default:
		f.secrets, f.problem = signatures.ParseSecrets(secret.Data)
	}
	return f, nil
}

func (r *Reconciler) ownSecret(ctx context.Context, s *scope) (found, error) {
	f := found{name: SecretName(s.endpoint.Name)}
	secret := &corev1.Secret{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: s.endpoint.Namespace, Name: f.name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return r.makeSecret(ctx, s, f)
	case err != nil:
		return f, fmt.Errorf("get secret %s: %w", f.name, err)
	case leftBehind(secret, s.endpoint):
		// The garbage collector would remove it, only later.
		if err := r.deleteSecret(ctx, secret); err != nil {
			return f, err
		}
		return r.makeSecret(ctx, s, f)
	case !metav1.IsControlledBy(secret, s.endpoint):
		f.polled, f.problem = true, errConflict
		return f, nil
	}
	if f.serial = serialOf(s, secret); f.serial < wantedSerial(s.endpoint) {
		return r.rotate(ctx, s, f, secret)
	}
	if err := r.keepWatched(ctx, secret); err != nil {
		return f, err
	}
	f.secrets, f.problem = signatures.ParseSecrets(secret.Data)
	return f, nil
}

// leftBehind reports whether the Secret is that of an earlier endpoint of the same name, which
// must be gone since this one is there.
func leftBehind(secret *corev1.Secret, endpoint *v1alpha1.WebhookEndpoint) bool {
	owner := metav1.GetControllerOf(secret)
	return owner != nil && owner.Kind == "WebhookEndpoint" && owner.Name == endpoint.Name &&
		strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") && owner.UID != endpoint.UID
}

func (r *Reconciler) deleteSecret(ctx context.Context, secret *corev1.Secret) error {
	same := client.Preconditions{UID: ptr.To(secret.UID), ResourceVersion: ptr.To(secret.ResourceVersion)}
	if err := r.client.Delete(ctx, secret, same); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete secret %s: %w", secret.Name, err)
	}
	return nil
}

// makeSecret fails with a conflict where the name was taken meanwhile, so that the next
// reconcile looks at it.
func (r *Reconciler) makeSecret(ctx context.Context, s *scope, f found) (found, error) {
	_, text := signatures.NewSecret()
	s.secretMade = true
	return r.createSecret(ctx, s, f, map[string][]byte{v1alpha1.WebhookSecretKey: []byte(text)})
}

func (r *Reconciler) createSecret(ctx context.Context, s *scope, f found, data map[string][]byte) (found, error) {
	f.serial = wantedSerial(s.endpoint)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.endpoint.Namespace, Name: f.name,
			Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	}
	mark(secret, f.serial)
	if err := controllerutil.SetControllerReference(s.endpoint, secret, r.client.Scheme()); err != nil {
		return f, fmt.Errorf("secret %s: %w", f.name, err)
	}
	err := r.client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return f, apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, f.name, err)
	}
	if err != nil {
		return f, fmt.Errorf("create secret %s: %w", f.name, err)
	}
	f.secrets, f.problem = signatures.ParseSecrets(secret.Data)
	return f, nil
}

// keepWatched puts our label back where it was taken off: the watch sees no Secret without it.
func (r *Reconciler) keepWatched(ctx context.Context, secret *corev1.Secret) error {
	if secret.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy {
		return nil
	}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, v1alpha1.ManagedByLabel, v1alpha1.ManagedBy)
	if err := r.client.Update(ctx, secret); err != nil {
		return fmt.Errorf("update secret %s: %w", secret.Name, err)
	}
	return nil
}
