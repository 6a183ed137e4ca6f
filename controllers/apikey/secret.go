package apikey

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ownsecret"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// replacesAnnotation holds the id of the previous token, for a reconcile that finds a token not yet recorded in the
// status.
const replacesAnnotation = v1alpha1.GroupName + "/replaces-key-id"

// SecretName returns the name of the Secret that holds the key's token.
func SecretName(key string) string { return kube.SuffixedName(key, "-token") }

// issue signs the token and writes it to the key's Secret. It fails with a conflict if the Secret has changed since it
// was read.
func (r *Reconciler) issue(ctx context.Context, s *scope, signer tokens.SigningKey, secret *corev1.Secret,
	o order) (*issued, error) {
	token, err := signer.Sign(o.claims)
	if err != nil {
		return nil, err
	}
	if secret == nil {
		secret = ownsecret.New(s.Object, SecretName(s.Object.Name))
	}
	ownsecret.SetSerial(secret, o.serial)
	delete(secret.Annotations, replacesAnnotation)
	if o.replaces != "" {
		secret.Annotations[replacesAnnotation] = o.replaces
	}
	secret.Data = map[string][]byte{v1alpha1.APIKeyTokenKey: []byte(token)}
	if err := r.secrets.Put(ctx, s.Object, secret, o.inUse); err != nil {
		return nil, err
	}
	return &issued{claims: o.claims, signedBy: signer.ID(), serial: o.serial, replaces: o.replaces}, nil
}
