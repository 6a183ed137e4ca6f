package webhookdelivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/signatures"
)

// errSecretMoved says that the endpoint's controller has not yet seen what is in the Secret.
var errSecretMoved = errors.New("the endpoint's status does not yet name the signing secrets in its Secret")

// attempt makes one attempt, if one is still due: records that it begins, sends, records how it
// ended. It runs in the dispatcher, once at a time for a delivery.
func (r *Reconciler) attempt(ctx context.Context, key types.NamespacedName) error {
	// Not from the cache: what is decided here leaves the house.
	s, err := r.load(ctx, r.live, key)
	if err != nil || s == nil {
		return err
	}
	if unfinished(s.delivery.Status.Attempts) {
		return nil // the cache is behind; once it is not, the attempt is closed
	}
	followSecrets(s)
	next := decide(s)
	if next.outlook != outlookDue {
		return nil // the reconcile that follows sees to it
	}
	at := s.now.UTC().Truncate(time.Second)
	signed, err := r.sign(ctx, s, at)
	if err != nil {
		return err
	}
	s.delivery.Status.Attempts = append(s.delivery.Status.Attempts, begin(at, signed))
	if err := r.conclude(ctx, s, next); err != nil {
		return ignoreMoved(err)
	}
	got := r.sender.send(ctx, s.endpoint.Spec.URL, s.delivery.Spec.Event, s.delivery.Spec.Payload, at, signed)
	return r.record(ctx, s, got)
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
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: s.delivery.Namespace, Name: name}, secret); err != nil {
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
	valid := secrets.Valid(s.now)
	for _, v := range valid {
		if !known[v.ID()] {
			return nil, errSecretMoved
		}
	}
	return signatures.Sign(s.delivery.Spec.Event.ID, at, s.delivery.Spec.Payload, valid)
}

// begin is the record of an attempt before its request leaves.
func begin(at time.Time, signed []signatures.Signature) v1alpha1.WebhookAttempt {
	attempt := v1alpha1.WebhookAttempt{At: metav1.NewTime(at), Outcome: v1alpha1.WebhookAttemptStarted}
	for _, signature := range signed {
		secret := signature.Secret()
		entry := v1alpha1.WebhookSignature{Digest: signature.Digest(), SecretID: secret.ID()}
		if secret.ExpiresAt != nil {
			entry.ExpiresAt = ptr.To(metav1.NewTime(*secret.ExpiresAt))
		}
		attempt.Signatures = append(attempt.Signatures, entry)
	}
	return attempt
}

// record writes how the attempt ended, again and again until it is written: what is not recorded
// is sent again.
func (r *Reconciler) record(ctx context.Context, s *scope, got result) error {
	index, at := len(s.delivery.Status.Attempts)-1, s.now
	var last error
	err := wait.PollUntilContextTimeout(ctx, recordInterval, recordTimeout, true, func(ctx context.Context) (bool, error) {
		if last = r.recordOnce(ctx, s, index, got); last == nil || apierrors.IsNotFound(last) {
			return true, nil
		}
		fresh, err := r.load(ctx, r.live, client.ObjectKeyFromObject(s.delivery))
		if err != nil {
			return false, nil //nolint:nilerr // tried again, until the time is over
		}
		if fresh == nil || fresh.delivery.UID != s.delivery.UID {
			return true, nil // deleted meanwhile
		}
		s = fresh
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("record how an attempt ended: %w", errors.Join(err, last))
	}
	if s.endpoint == nil {
		return nil
	}
	return r.tellEndpoint(ctx, client.ObjectKeyFromObject(s.endpoint), s.endpoint.UID, got, at)
}

func (r *Reconciler) recordOnce(ctx context.Context, s *scope, index int, got result) error {
	status := &s.delivery.Status
	if index >= len(status.Attempts) || status.Attempts[index].Outcome != v1alpha1.WebhookAttemptStarted {
		return nil // another controller has given this one up, and closed the attempt
	}
	s.before, s.now = *status.DeepCopy(), r.clock.Now()
	attempt := &status.Attempts[index]
	attempt.Outcome, attempt.Code, attempt.Message = got.outcome, got.code, got.message
	return r.conclude(ctx, s, decide(s))
}

// successNote is how often a success is noted at an endpoint where all is well.
const successNote = time.Minute

// tellEndpoint counts the attempt in the endpoint's status. A crash just before loses a count
// and nothing else.
func (r *Reconciler) tellEndpoint(ctx context.Context, key client.ObjectKey, uid types.UID, got result, at time.Time) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, recordInterval, recordTimeout, true, func(ctx context.Context) (bool, error) {
		endpoint := &v1alpha1.WebhookEndpoint{}
		if last = r.live.Get(ctx, key, endpoint); last != nil {
			return apierrors.IsNotFound(last), nil
		}
		if endpoint.UID != uid {
			return true, nil
		}
		before := *endpoint.Status.DeepCopy()
		count(&endpoint.Status, got, at)
		_, last = patch.Status(ctx, r.client, endpoint, before, endpoint.Status)
		return last == nil || apierrors.IsNotFound(last), nil
	})
	if err != nil {
		return fmt.Errorf("count an attempt at webhook endpoint %s: %w", key.Name, errors.Join(err, last))
	}
	return nil
}

// count adds an attempt that began at that time.
func count(status *v1alpha1.WebhookEndpointStatus, got result, at time.Time) {
	if got.outcome != v1alpha1.WebhookAttemptSucceeded {
		if status.LastSuccessAt == nil || !at.Before(status.LastSuccessAt.Time) {
			status.ConsecutiveFailures++
		}
		return
	}
	fresh := status.LastSuccessAt != nil && at.Sub(status.LastSuccessAt.Time) < successNote
	if fresh && status.ConsecutiveFailures == 0 {
		return
	}
	status.ConsecutiveFailures = 0
	if status.LastSuccessAt == nil || at.After(status.LastSuccessAt.Time) {
		status.LastSuccessAt = ptr.To(metav1.NewTime(at.UTC().Truncate(time.Second)))
	}
}
