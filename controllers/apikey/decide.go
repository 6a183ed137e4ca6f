package apikey

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ownsecret"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// defaultLifetime is a token's life where the key names no expiry.
const defaultLifetime = 90 * 24 * time.Hour

// issued is a token as the key's Secret holds it, without the token itself.
type issued struct {
	claims tokens.Claims
	// signedBy names the signing key.
	signedBy string
	// serial is the spec.rotation.serial that the token was issued for.
	serial int64
	// replaces is the identifier of the token that stays valid beside this one for the
	// rotation's overlap; "" for none.
	replaces string
}

// recall returns the token that our Secret holds, if it is one that the key may go by.
//
// What the status has settled once is not asked of the Secret again: who may write Secrets
// must not be able to bring an earlier token, or one that was rotated away, back to life.
func recall(s *scope, secret *corev1.Secret, accepted tokens.KeySet) *issued {
	if secret == nil {
		return nil
	}
	verified, err := accepted.VerifySignature(string(secret.Data[v1alpha1.APIKeyTokenKey]))
	if err != nil || verified.KeyUID != s.Object.UID || verified.Organization != s.organization.Name {
		return nil
	}
	token := &issued{claims: verified.Claims, signedBy: verified.KeyID}
	if verified.ID == s.Before.KeyID {
		token.serial = s.Before.RotationSerial
		if s.Before.Previous != nil {
			token.replaces = s.Before.Previous.KeyID
		}
		return token
	}
	// Issued by a reconcile that did not come as far as the status; anything older than the
	// token in the status was put back by someone.
	if s.Before.IssuedAt != nil && verified.IssuedAt.Before(s.Before.IssuedAt.Time) {
		return nil
	}
	token.serial = min(ownsecret.Serial(secret), wantedSerial(s.Object))
	if replaces := secret.Annotations[replacesAnnotation]; replaces == s.Before.KeyID {
		token.replaces = replaces
	}
	return token
}

// yetToBeTakenOver reports whether the status still goes by another token than the Secret's. A
// rotation waits until it does: what is valid now is what the status says, and only that can
// stay valid for an overlap.
func yetToBeTakenOver(s *scope, have *issued) bool { return have.claims.ID != s.Before.KeyID }

// rotationWaits reports whether a rotation is due as soon as the token has been taken over.
func rotationWaits(s *scope, have *issued) bool {
	return have != nil && yetToBeTakenOver(s, have) && have.serial < wantedSerial(s.Object)
}

// order is a token to be written into the Secret.
type order struct {
	claims   tokens.Claims
	serial   int64
	replaces string
}

// decide says whether a new token is needed, and which. The identifier is left to the caller.
//
// A disabled key is rotated all the same: if that waited until it is enabled, the token it
// was disabled for would be good again for a moment.
func decide(s *scope, have *issued) (order, bool) {
	wanted := wantedSerial(s.Object)
	if have != nil && (have.serial >= wanted || yetToBeTakenOver(s, have)) {
		return order{}, false
	}
	if have == nil && spent(s) {
		return order{}, false
	}
	from := s.Now.UTC().Truncate(time.Second)
	if s.Before.IssuedAt != nil && s.Before.IssuedAt.After(from) {
		// Another replica's clock runs ahead of ours; see recall.
		from = s.Before.IssuedAt.UTC()
	}
	end := endOfLife(s, from, time.Time{})
	if !end.After(from) || !end.After(s.Now) {
		return order{}, false
	}
	o := order{
		claims: tokens.Claims{
			KeyUID:       s.Object.UID,
			Organization: s.organization.Name,
			IssuedAt:     from,
			ExpiresAt:    end,
		},
		serial: wanted,
	}
	if have != nil && overlap(s.Object) > 0 {
		o.replaces = have.claims.ID
	}
	return o, true
}

// spent reports whether the life of the token in the status is over and no other is asked for.
// That its Secret is lost, or its signing key, must not give the key another life.
func spent(s *scope) bool {
	expiry := s.Before.ExpiresAt
	return s.Before.KeyID != "" && s.Before.RotationSerial >= wantedSerial(s.Object) && expiry != nil &&
		!s.Now.Before(expiry.Time)
}

// endOfLife is when a token that was issued then stops being valid: the earliest of the
// expiry it was issued with (none: zero), the key's and the organization's bound.
func endOfLife(s *scope, from, signed time.Time) time.Time {
	var ends []time.Time
	if !signed.IsZero() {
		ends = append(ends, signed)
	}
	if expiry := s.Object.Spec.ExpiresAt; expiry != nil {
		ends = append(ends, expiry.UTC())
	}
	if len(ends) == 0 {
		ends = append(ends, from.Add(defaultLifetime))
	}
	if bounds := s.organization.Spec.APIKeys; bounds != nil && bounds.MaxLifetime != nil {
		ends = append(ends, from.Add(bounds.MaxLifetime.Duration).Truncate(time.Second))
	}
	end := ends[0]
	for _, other := range ends[1:] {
		if other.Before(end) {
			end = other
		}
	}
	return end
}

// shortened reports whether it is the organization's maximum that ends the key's life.
func shortened(s *scope) bool {
	bounds, status := s.organization.Spec.APIKeys, *s.Status
	if bounds == nil || bounds.MaxLifetime == nil || status.IssuedAt == nil || status.ExpiresAt == nil {
		return false
	}
	end := status.IssuedAt.Add(bounds.MaxLifetime.Duration).Truncate(time.Second)
	expiry := s.Object.Spec.ExpiresAt
	return status.ExpiresAt.Equal(ptr.To(v1alpha1.NewTime(end))) && (expiry == nil || end.Before(expiry.Time))
}

// settle is the status that follows from the token; a key without one has no identifier, and
// so nothing that the REST API would accept.
func settle(s *scope, have *issued) v1alpha1.APIKeyStatus {
	status := withoutToken(s.Before)
	if have == nil {
		if spent(s) {
			status = *s.Before.DeepCopy()
			status.Previous = nil
		}
		return status
	}
	end := endOfLife(s, have.claims.IssuedAt, have.claims.ExpiresAt)
	status.KeyID = have.claims.ID
	status.SigningKeyID = have.signedBy
	status.SecretRef = &v1alpha1.SecretReference{Name: v1alpha1.ResourceName(SecretName(s.Object.Name))}
	status.RotationSerial = have.serial
	status.IssuedAt = ptr.To(v1alpha1.NewTime(have.claims.IssuedAt))
	status.ExpiresAt = ptr.To(v1alpha1.NewTime(end))
	status.Previous = previous(s, have, end)
	return status
}

// previous counts the overlap from the rotation, so that shortening it acts at once.
func previous(s *scope, have *issued, end time.Time) *v1alpha1.PreviousToken {
	if have.replaces == "" {
		return nil
	}
	until := have.claims.IssuedAt.Add(overlap(s.Object)).Truncate(time.Second)
	if end.Before(until) {
		until = end
	}
	if !until.After(s.Now) {
		return nil
	}
	return &v1alpha1.PreviousToken{KeyID: have.replaces, ExpiresAt: v1alpha1.NewTime(until)}
}

func withoutToken(before *v1alpha1.APIKeyStatus) v1alpha1.APIKeyStatus {
	return v1alpha1.APIKeyStatus{
		ObservedGeneration: before.ObservedGeneration,
		LastUsedAt:         before.LastUsedAt,
		Conditions:         before.DeepCopy().Conditions,
	}
}

// untilNextChange is how long the status stays true by itself; 0 for ever.
func untilNextChange(status v1alpha1.APIKeyStatus, now time.Time) time.Duration {
	var wait time.Duration
	consider := func(at time.Time) {
		if left := at.Sub(now); left > 0 && (wait == 0 || left < wait) {
			wait = left
		}
	}
	if status.ExpiresAt != nil {
		consider(status.ExpiresAt.Time)
	}
	if status.Previous != nil {
		consider(status.Previous.ExpiresAt.Time)
	}
	return wait
}

func wantedSerial(key *v1alpha1.APIKey) int64 {
	if key.Spec.Rotation == nil {
		return 0
	}
	return key.Spec.Rotation.Serial
}

func overlap(key *v1alpha1.APIKey) time.Duration {
	if key.Spec.Rotation == nil || key.Spec.Rotation.Overlap == nil {
		return 0
	}
	return key.Spec.Rotation.Overlap.Duration
}
