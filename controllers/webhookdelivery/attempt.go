package webhookdelivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// errSecretChanged means that the endpoint's controller has not observed the current Secret yet.
var errSecretChanged = errors.New("the endpoint's status does not yet name the signing secrets in its Secret")

// errBehind means that no attempt can begin, which the cache does not show yet.
var errBehind = errors.New("the cache is behind")

// attempt makes one attempt, if one is still due: it records the start, sends the request, and records the outcome. It
// runs in the dispatcher, once at a time per delivery, and returns the endpoint's resulting health. The
// error is errBehind if no attempt is due.
func (r *Reconciler) attempt(ctx context.Context, key types.NamespacedName) (health, error) {
	prepared, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	// Read past the cache, because a sent request cannot be taken back.
	s, err := r.load(prepared, key)
	if err != nil {
		return healthUnknown, err
	}
	if s == nil || unfinished(s.Status.Attempts) {
		return healthUnknown, errBehind // a later reconcile closes the attempt
	}
	webhooks.TakeUpRedelivery(s.Object, s.Now)
	followSecrets(s)
	next := decide(s)
	if next.outlook != outlookDue {
		return healthUnknown, errBehind // a later reconcile handles it
	}
	at := s.Now.UTC().Truncate(time.Second)
	signed, err := r.sign(prepared, s, at)
	if err != nil {
		return healthUnsendable, err
	}
	webhooks.AddAttempt(s.Status, begin(at, signed))
	next.next = nil // this attempt is the one that was due
	if err := r.conclude(prepared, s, next); err != nil {
		return healthUnknown, ignoreConflict(err)
	}
	got := r.sender.send(ctx, s.endpoint.Spec.URL, s.Object.Spec.Event, s.Object.Spec.Payload, at, signed)
	return got.health(), r.record(ctx, s, got)
}

// ignoreConflict drops Conflict and NotFound errors of a write, because the delivery is reconciled again.
func ignoreConflict(err error) error {
	if kube.IsConflict(err) || kube.IsNotFound(err) {
		return nil
	}
	return err
}

// sign signs with the endpoint's secrets. The endpoint's status must list them, or else the recorded signatures would
// not be updated when a secret expires.
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
			return nil, errSecretChanged
		}
	}
	return signatures.Sign(s.Object.Spec.Event.ID, at, s.Object.Spec.Payload, valid)
}

// begin returns the record of an attempt whose request is about to be sent.
func begin(at time.Time, signed []signatures.Signature) v1alpha1.WebhookAttempt {
	attempt := v1alpha1.WebhookAttempt{At: v1alpha1.NewTime(at), Outcome: v1alpha1.WebhookAttemptStarted}
	for _, signature := range signed {
		secret := signature.Secret()
		attempt.Signatures = append(attempt.Signatures, v1alpha1.WebhookSignature{
			Digest: signature.Digest(), SecretID: secret.ID(), ExpiresAt: secret.ExpiresAt,
		})
	}
	return attempt
}

// record writes the outcome of the attempt to the delivery and to the endpoint's status.
//
// A success is recorded in the delivery first, because an unrecorded delivery is sent again. A failure is counted at
// the endpoint first: the delivery is retried anyway, and a crash in between loses neither the failure nor a 410 Gone.
// If it cannot be counted within recordTimeout, the delivery goes on without: the next attempt makes up for it.
func (r *Reconciler) record(ctx context.Context, s *scope, got result) error {
	made := attempted{
		result: got, at: s.Now, ended: r.Clock.Now(), generation: s.endpoint.Generation,
		last: len(webhooks.Round(s.Status)) >= webhooks.AttemptsPerRound,
	}
	if got.outcome == v1alpha1.WebhookAttemptSucceeded {
		return errors.Join(r.recordEnd(ctx, s, made), r.recordAtEndpoint(ctx, s.endpoint, made))
	}
	return errors.Join(r.recordAtEndpoint(ctx, s.endpoint, made), r.recordEnd(ctx, s, made))
}

// recordInterval is the backoff between tries to record an outcome, as hundreds may wait for the API server.
var recordInterval = wait.Backoff{
	Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6, Cap: 5 * time.Second,
}

// untilRecorded retries until it succeeds, the object is deleted, or recordTimeout has passed. The time of an outage
// does not count, but limit bounds the total.
func untilRecorded(ctx context.Context, limit time.Duration, try func(context.Context) error) error {
	var last error
	until := time.Now().Add(recordTimeout)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := recordInterval.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, recordTimeout)
		defer cancel()
		last = try(ctx)
		switch {
		case last == nil || kube.IsNotFound(last):
			return true, nil
		case !kube.IsRefusal(last) && !kube.IsConflict(last): // no answer, or that of an outage
			until = time.Now().Add(recordTimeout)
		case time.Now().After(until):
			return false, context.DeadlineExceeded
		}
		return false, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// recordEnd writes the outcome of the attempt to the delivery. It waits for the end of an outage, because the receiver
// may have the event and would get it again.
func (r *Reconciler) recordEnd(ctx context.Context, s *scope, made attempted) error {
	index := len(s.Status.Attempts) - 1
	err := untilRecorded(ctx, outageTimeout, func(ctx context.Context) error {
		refused := r.recordOnce(ctx, s, index, made)
		if refused == nil || kube.IsNotFound(refused) {
			return refused
		}
		fresh, err := r.load(ctx, client.ObjectKeyFromObject(s.Object))
		if err != nil {
			return errors.Join(err, refused)
		}
		if fresh == nil || fresh.Object.UID != s.Object.UID {
			return nil // deleted meanwhile
		}
		s = fresh
		return refused
	})
	if err != nil {
		return fmt.Errorf("record how an attempt ended: %w", err)
	}
	// Count last: an attempt whose outcome could not be recorded is closed, and counted, as Unknown, perhaps by another
	// controller already.
	if all := s.Status.Attempts; made.isAt(index, all) && all[index].Outcome != v1alpha1.WebhookAttemptUnknown {
		attemptsMade.count(made.outcome)
	}
	return nil
}

func (r *Reconciler) recordOnce(ctx context.Context, s *scope, index int, made attempted) error {
	status := s.Status
	if !made.isAt(index, status.Attempts) || status.Attempts[index].Outcome != v1alpha1.WebhookAttemptStarted {
		return nil // another controller took over, and closed the attempt
	}
	s.Begin(r.Clock.Now())
	attempt := &status.Attempts[index]
	attempt.Outcome, attempt.Code, attempt.Message = made.outcome, made.code, made.message
	attempt.EndedAt = new(v1alpha1.NewTime(made.ended))
	if made.outcome == v1alpha1.WebhookAttemptFailed {
		attempt.RetryAt = webhooks.RetryAt(made.retryAfter, made.ended)
	}
	err := r.conclude(ctx, s, decide(s))
	if err != nil {
		s.Before.DeepCopyInto(s.Status) // else the next try would see a closed attempt
	}
	return err
}
