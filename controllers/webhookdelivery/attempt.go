package webhookdelivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// errSecretMoved says that the endpoint's controller has not yet seen what is in the Secret.
var errSecretMoved = errors.New("the endpoint's status does not yet name the signing secrets in its Secret")

// attempt makes one attempt, if one is still due: records that it begins, sends, records how it
// ended. It runs in the dispatcher, once at a time for a delivery, and says how the endpoint
// stands after it.
func (r *Reconciler) attempt(ctx context.Context, key types.NamespacedName) (standing, error) {
	// Not from the cache: what is decided here leaves the house.
	s, err := r.load(ctx, key)
	if err != nil || s == nil {
		return standingUnknown, err
	}
	if unfinished(s.Status.Attempts) {
		return standingUnknown, nil // the cache is behind; once it is not, the attempt is closed
	}
	webhooks.TakeUpRedelivery(s.Object, s.Now)
	followSecrets(s)
	next := decide(s)
	if next.outlook != outlookDue {
		return standingUnknown, nil // the reconcile that follows sees to it
	}
	at := s.Now.UTC().Truncate(time.Second)
	signed, err := r.sign(ctx, s, at)
	if err != nil {
		return standingUnknown, err
	}
	webhooks.AddAttempt(s.Status, begin(at, signed))
	if err := r.conclude(ctx, s, next); err != nil {
		return standingUnknown, ignoreMoved(err)
	}
	got := r.sender.send(ctx, s.endpoint.Spec.URL, s.Object.Spec.Event, s.Object.Spec.Payload, at, signed)
	return got.standing(), r.record(ctx, s, got)
}

// ignoreMoved drops the errors of a write that came too late: the delivery is looked at again.
func ignoreMoved(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// sign signs with the endpoint's secrets, which its status must know of: only so do the records
// of what a secret has signed learn of its end.
func (r *Reconciler) sign(ctx context.Context, s *scope, at time.Time) ([]signatures.Signature, error) {
	name := string(s.endpoint.Status.SecretRef.Name)
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("get secret %s: %w", name, err)
	}
	secrets, err := signatures.ParseSecrets(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", name, err)
	}
	known := map[string]bool{}
	for _, entry := range s.endpoint.Status.Secrets {
		known[entry.ID] = true
	}
	valid := secrets.Valid(s.Now)
	for _, v := range valid {
		if !known[v.ID()] {
			return nil, errSecretMoved
		}
	}
	return signatures.Sign(s.Object.Spec.Event.ID, at, s.Object.Spec.Payload, valid)
}

// begin is the record of an attempt before its request leaves.
func begin(at time.Time, signed []signatures.Signature) v1alpha1.WebhookAttempt {
	attempt := v1alpha1.WebhookAttempt{At: v1alpha1.NewTime(at), Outcome: v1alpha1.WebhookAttemptStarted}
	for _, signature := range signed {
		secret := signature.Secret()
		entry := v1alpha1.WebhookSignature{Digest: signature.Digest(), SecretID: secret.ID()}
		if secret.ExpiresAt != nil {
			entry.ExpiresAt = ptr.To(v1alpha1.NewTime(*secret.ExpiresAt))
		}
		attempt.Signatures = append(attempt.Signatures, entry)
	}
	return attempt
}

// record writes how the attempt ended, in the delivery and in what is known of the endpoint.
//
// A success is recorded in the delivery first: what is not recorded is sent again. A failure is
// counted first: it is tried again anyhow, and a crash in between loses no failure, nor that the
// receiver is gone.
func (r *Reconciler) record(ctx context.Context, s *scope, got result) error {
	made := attempted{result: got, at: s.Now, ended: r.Clock.Now(), generation: s.endpoint.Generation}
	if got.outcome == v1alpha1.WebhookAttemptSucceeded {
		return errors.Join(r.recordEnd(ctx, s, made), r.tellEndpoint(ctx, s.endpoint, made))
	}
	return errors.Join(r.tellEndpoint(ctx, s.endpoint, made), r.recordEnd(ctx, s, made))
}

// recordEnd writes how the attempt ended into the delivery, again and again until it is written.
func (r *Reconciler) recordEnd(ctx context.Context, s *scope, made attempted) error {
	attemptsMade.count(made.outcome)
	index := len(s.Status.Attempts) - 1
	var last error
	err := wait.PollUntilContextTimeout(ctx, recordInterval, recordTimeout, true, func(ctx context.Context) (bool, error) {
		if last = r.recordOnce(ctx, s, index, made); last == nil || apierrors.IsNotFound(last) {
			return true, nil
		}
		fresh, err := r.load(ctx, client.ObjectKeyFromObject(s.Object))
		if err != nil {
			return false, nil //nolint:nilerr // tried again, until the time is over
		}
		if fresh == nil || fresh.Object.UID != s.Object.UID {
			return true, nil // deleted meanwhile
		}
		s = fresh
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("record how an attempt ended: %w", errors.Join(err, last))
	}
	return nil
}

func (r *Reconciler) recordOnce(ctx context.Context, s *scope, index int, made attempted) error {
	status := s.Status
	if index >= len(status.Attempts) || status.Attempts[index].Outcome != v1alpha1.WebhookAttemptStarted {
		return nil // another controller has given this one up, and closed the attempt
	}
	s.Begin(r.Clock.Now())
	attempt := &status.Attempts[index]
	attempt.Outcome, attempt.Code, attempt.Message = made.outcome, made.code, made.message
	attempt.EndedAt = ptr.To(v1alpha1.NewTime(made.ended.UTC().Truncate(time.Second)))
	if made.outcome == v1alpha1.WebhookAttemptFailed {
		attempt.RetryAt = webhooks.RetryAt(made.retryAfter, made.ended)
	}
	return r.conclude(ctx, s, decide(s))
}
