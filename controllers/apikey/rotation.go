package apikey

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ownsecret"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// Annotations that users set on the ConfigMap of public keys. It holds no secret, so rotating the
// signing key does not require the right to read it.
const (
	// RotateAnnotation requests a new signing key each time its value changes.
	RotateAnnotation = v1alpha1.GroupName + "/rotate-signing-key"
	// OverlapAnnotation sets how long tokens signed by the previous key stay valid after the last token was signed again.
	OverlapAnnotation = v1alpha1.GroupName + "/signing-key-overlap"
)

// The state of a rotation, in annotations of the Secret.
const (
	// servedAnnotation is the last value of RotateAnnotation that was acted upon.
	servedAnnotation = v1alpha1.GroupName + "/rotation-served"
	// publishedAnnotation is when the next key was published.
	publishedAnnotation = v1alpha1.GroupName + "/next-published-at"
	// overlapAnnotation is since when only clients' copies of tokens are still signed by the previous key.
	overlapAnnotation = v1alpha1.GroupName + "/overlap-from"
)

const (
	defaultSigningOverlap = 24 * time.Hour
	maxSigningOverlap     = 720 * time.Hour
	// publicationNotice is how long a key is published before it signs. A replica of the REST API that has not read the
	// ConfigMap for longer refuses all requests. The extra seconds are for clocks that differ, and for the fraction that
	// publishedAnnotation lacks.
	publicationNotice = tokens.DefaultKeyStaleness + 5*time.Second
	// reminder is how often a blocked rotation is announced again, because an Event is kept for an hour.
	reminder = time.Hour
)

// holding is the Secret as read.
type holding struct {
	ring   tokens.Ring
	secret *corev1.Secret
}

func (h holding) annotation(name string) string { return h.secret.Annotations[name] }

// annotate sets the annotation, or removes it if the value is empty.
func (h holding) annotate(name, value string) {
	if value == "" {
		delete(h.secret.Annotations, name)
		return
	}
	metav1.SetMetaDataAnnotation(&h.secret.ObjectMeta, name, value)
}

// time returns the annotation's time; zero if it is missing or not a time.
func (h holding) time(name string) time.Time {
	at, err := time.Parse(time.RFC3339, h.annotation(name))
	if err != nil {
		return time.Time{}
	}
	return at
}

func rotationAsked(public *corev1.ConfigMap) string { return public.Annotations[RotateAnnotation] }

// signingOverlap returns the requested overlap, or the default without a request. For an unusable request it returns
// the maximum, because a shorter overlap could end copies of tokens too early.
func signingOverlap(public *corev1.ConfigMap) (overlap time.Duration, usable bool) {
	text := public.Annotations[OverlapAnnotation]
	if text == "" {
		return defaultSigningOverlap, true
	}
	overlap, err := time.ParseDuration(text)
	if err != nil || overlap < 0 || overlap > maxSigningOverlap {
		return maxSigningOverlap, false
	}
	return overlap, true
}

// step is the next step of a rotation.
type step int

const (
	// stay does nothing yet.
	stay step = iota
	// prepare creates the next key.
	prepare
	// countNotice starts the time for which the next key must have been published.
	countNotice
	// promote makes the next key the signing key.
	promote
	// countOverlap starts the overlap, once every token was signed again.
	countOverlap
	// withdraw removes the previous key.
	withdraw
)

// nextStep returns a rotation's next step, or how long to wait for it, at most MaxWait. published means that this
// reconcile has just published the keys.
func nextStep(held holding, asked string, overlap, notice time.Duration, published bool,
	now time.Time) (step, time.Duration) {
	switch {
	case held.ring.HasNext():
		from := held.time(publishedAnnotation)
		if from.IsZero() || published {
			return countNotice, 0
		}
		return after(promote, from.Add(notice), now)
	case held.ring.HasPrevious():
		// A further rotation waits until this one ends, so that there are never more than two keys.
		from := held.time(overlapAnnotation)
		if from.IsZero() {
			return countOverlap, 0
		}
		return after(withdraw, from.Add(overlap), now)
	case asked != "" && asked != held.annotation(servedAnnotation):
		return prepare, 0
	}
	return stay, 0
}

func after(next step, at, now time.Time) (step, time.Duration) {
	if left := at.Sub(now); left > 0 {
		return stay, min(left, reconcile.MaxWait)
	}
	return next, 0
}

// advance carries out the next step of a rotation.
func (k signingKeys) advance(ctx context.Context, held holding, public *corev1.ConfigMap,
	published bool) (ctrl.Result, error) {
	now := k.Clock.Now()
	overlap, usable := signingOverlap(public)
	next, wait := nextStep(held, rotationAsked(public), overlap, k.notice, published, now)
	if !usable && (next == prepare || next == promote || next == stay && held.ring.HasPrevious()) {
		// The watch on the ConfigMap reports the correction.
		k.announce(public, corev1.EventTypeWarning, "InvalidOverlap",
			"Annotation %s is no duration from 0s to %s, such as 24h. Until it is corrected or removed, "+
				"no new key is added or used, and an overlap that has begun lasts the longest time",
			OverlapAnnotation, maxSigningOverlap)
		ctrl.LoggerFrom(ctx).Error(nil, "The overlap of the signing keys cannot be used; correct or remove the annotation",
			"annotation", OverlapAnnotation, "configMap", public.Name)
		return ctrl.Result{RequeueAfter: reconcile.Sooner(reminder, wait)}, nil
	}
	switch next {
	case stay:
		return ctrl.Result{RequeueAfter: wait}, nil
	case countOverlap, withdraw:
		owed, err := k.owed(ctx, held.ring.Previous)
		if err != nil || owed {
			return ctrl.Result{RequeueAfter: owedRetry}, err
		}
	}
	if ownsecret.Frozen(held.secret) {
		k.announce(public, corev1.EventTypeWarning, "RotationRefused",
			"Secret %s is immutable, so no key can be added to it or removed from it. "+
				"To replace the key, delete the Secret; this invalidates every token at once", held.secret.Name)
		ctrl.LoggerFrom(ctx).Error(nil, "The Secret of the signing key is immutable, so the rotation is blocked",
			"secret", held.secret.Name)
		return ctrl.Result{RequeueAfter: reminder}, nil
	}
	before := held.ring
	held.apply(next, rotationAsked(public), now)
	if err := k.store(ctx, held); err != nil {
		return ctrl.Result{}, err
	}
	k.announceStep(next, before, public, overlap)
	return ctrl.Result{}, nil
}

// apply applies the step to the holding.
func (h *holding) apply(next step, asked string, now time.Time) {
	stamp := now.UTC().Format(time.RFC3339)
	switch next {
	case prepare:
		h.ring.Next = tokens.GenerateSigningKey()
		h.annotate(servedAnnotation, asked)
	case countNotice:
		h.annotate(publishedAnnotation, stamp)
	case promote:
		h.ring = tokens.Ring{Signer: h.ring.Next, Previous: h.ring.Signer.Public()}
		h.annotate(publishedAnnotation, "")
	case countOverlap:
		h.annotate(overlapAnnotation, stamp)
	case withdraw:
		h.ring = tokens.Ring{Signer: h.ring.Signer}
		h.annotate(overlapAnnotation, "")
	case stay:
	}
}

// announceStep sends Events for the steps that users who request a rotation wait for.
func (k signingKeys) announceStep(done step, before tokens.Ring, public *corev1.ConfigMap, overlap time.Duration) {
	switch done {
	case prepare:
		k.announce(public, corev1.EventTypeNormal, "SigningKeyAdded",
			"Created a new signing key; it is published before it is used")
	case promote:
		k.announce(public, corev1.EventTypeNormal, "SigningKeyRotated",
			"Tokens are signed by key %s; tokens signed by key %s stay valid until every token has been reissued and %s have passed",
			before.Next.ID(), before.Signer.ID(), overlap)
	case withdraw:
		k.announce(public, corev1.EventTypeNormal, "SigningKeyWithdrawn",
			"Tokens signed by key %s are no longer accepted", fmt.Sprint(before.Previous.IDs()))
	case stay, countNotice, countOverlap:
	}
}

func (k signingKeys) announce(public *corev1.ConfigMap, eventType, reason, note string, args ...any) {
	k.Recorder.Eventf(public, nil, eventType, reason, "RotateSigningKey", note, args...)
}
