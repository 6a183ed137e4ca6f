package webhookendpoint

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ownsecret"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/signatures"
)

// SecretName returns the name of the Secret that is made for the endpoint.
func SecretName(endpoint string) string { return kube.SuffixedName(endpoint, "-webhook") }

// found is the result of reading the endpoint's Secret.
type found struct {
	name    string
	secrets signatures.Secrets
	// problem is why no secret is usable: NotFound, AlreadyExists, signatures.ErrSecret or unwritten.
	problem error
	// unwritten is why the endpoint's own Secret could not be written. The write is retried; a secret that it still holds
	// is usable.
	unwritten error
	// unlabelled is why the Secret's label could not be restored; its content is correct.
	unlabelled error
	// lost means that this endpoint has no Secret: none of that name exists, or it has another owner.
	lost bool
	// polled means that the Secret must be polled: no watch reports its changes.
	polled bool
	// serial is the spec.rotation.serial that was carried out; 0 for none.
	serial int64
}

func (f found) usable() bool { return f.problem == nil }

// secret returns the endpoint's Secret: the one that the spec names, or else its own, which is
// created if it is missing.
func (r *Reconciler) secret(ctx context.Context, s *scope) (found, error) {
	if ref := s.Object.Spec.SecretRef; ref != nil {
		return r.givenSecret(ctx, s.Object.Namespace, string(ref.Name))
	}
	f, err := r.ownSecret(ctx, s)
	if kube.IsAlreadyExists(err) {
		f.polled, f.problem, err = true, err, nil
	}
	return f, err
}

func (r *Reconciler) givenSecret(ctx context.Context, namespace, name string) (found, error) {
	f := found{name: name, polled: true}
	secret := &corev1.Secret{}
	switch err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); {
	case kube.IsNotFound(err):
		f.lost, f.problem = true, err
	case err != nil:
		return f, fmt.Errorf("get secret %s: %w", name, err)
	default:
		f.secrets, f.problem = signatures.ParseSecrets(secret.Data)
	}
	return f, nil
}

func (r *Reconciler) ownSecret(ctx context.Context, s *scope) (found, error) {
	f := found{name: SecretName(s.Object.Name)}
	secret, err := r.secrets.Get(ctx, s.Object, f.name)
	if err != nil {
		f.lost = kube.IsAlreadyExists(err) // the Secret of that name has no owner, or another one
		return f, err
	}
	if secret != nil {
		f.serial = serialOf(s, secret)
		f.secrets, f.problem = signatures.ParseSecrets(secret.Data)
	}
	written, err := r.ensureContent(ctx, s, f, secret)
	switch {
	case err == nil:
		return written, nil
	case kube.IsAlreadyExists(err):
		return f, err
	case kube.IsConflict(err), kube.IsNotFound(err):
		return f, err // The Secret has changed since it was read: the next reconcile sees that.
	case secret == nil:
		f.lost, f.problem = true, err
	case f.serial >= s.Object.Spec.Rotation.WantedSerial():
		f.unlabelled = err
		return f, nil
	}
	f.unwritten = err
	return f, nil
}

// ensureContent writes a signing secret to the Secret, as the spec requires, given the current content.
func (r *Reconciler) ensureContent(ctx context.Context, s *scope, f found, secret *corev1.Secret) (_ found, err error) {
	switch {
	case secret == nil:
		_, text := signatures.NewSecret()
		secret = ownsecret.New(s.Object, f.name)
		if f, err = r.putSecret(ctx, s, f, secret, map[string][]byte{v1alpha1.WebhookSecretKey: []byte(text)}); err == nil {
			r.Recorder.Eventf(s.Object, nil, corev1.EventTypeNormal, "SecretMade", "MakeSecret",
				"Made Secret %s with a fresh signing secret", f.name)
		}
		return f, err
	case f.serial < s.Object.Spec.Rotation.WantedSerial():
		if f, err = r.putSecret(ctx, s, f, secret, rotated(secret.Data, s.Object.Spec.Rotation, s.Now)); err == nil {
			r.Recorder.Eventf(s.Object, nil, corev1.EventTypeNormal, "SecretRotated", "RotateSecret",
				"Put a fresh signing secret into Secret %s", f.name)
		}
		return f, err
	}
	return f, r.secrets.KeepWatched(ctx, secret)
}

func (r *Reconciler) putSecret(ctx context.Context, s *scope, f found, secret *corev1.Secret,
	data map[string][]byte) (found, error) {
	secret.Data = data
	if f.serial = s.Object.Spec.Rotation.WantedSerial(); f.serial > 0 {
		ownsecret.SetSerial(secret, f.serial)
	}
	if err := r.secrets.Put(ctx, s.Object, secret, f.usable()); err != nil {
		return f, err
	}
	f.secrets, f.problem = signatures.ParseSecrets(data)
	return f, nil
}
