package apikey

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/ownsecret"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// defaultLifetime is a token's lifetime if the key sets no expiry.
const defaultLifetime = 90 * 24 * time.Hour

// issued describes the token in the key's Secret, without the token itself.
type issued struct {
	claims tokens.Claims
	// signedBy names the signing key.
	signedBy string
	// serial is the spec.rotation.serial that the token was issued for.
	serial int64
	// replaces is the identifier of the previous token, which stays valid for the rotation's overlap; "" if there is none.
	replaces string
}

// recall returns the token in the key's Secret if the key may use it, else nil.
//
// For a token that the status already records, the status takes precedence over the Secret's annotations: a user who
// can write Secrets must not be able to revive an earlier or rotated token.
func recall(s *scope, secret *corev1.Secret) *issued {
	if secret == nil {
		return nil
	}
	verified, err := s.accepted.VerifySignature(string(secret.Data[v1alpha1.APIKeyTokenKey]))
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
	// A reconcile that failed before it wrote the status issued this token. A token older than the last one in the status
	// was put back by a user.
	if last := s.Before.IssuedAt; last != nil && (verified.IssuedAt.Before(last.Time) ||
		s.Before.KeyID == "" && verified.IssuedAt.Equal(last.Time)) { // the last one was withdrawn
		return nil
	}
	token.serial = min(ownsecret.Serial(secret), s.Object.Spec.Rotation.WantedSerial())
	if replaces := secret.Annotations[replacesAnnotation]; replaces == s.Before.KeyID {
		token.replaces = replaces
	}
	return token
}

// isUnrecorded reports whether the Secret holds another token than the status names. A rotation waits until both agree,
// because only the token in the status is valid now and can stay valid for an overlap.
func isUnrecorded(s *scope, have *issued) bool { return have.claims.ID != s.Before.KeyID }

// rotationWaits reports whether a rotation is due once the status records the token.
func rotationWaits(s *scope, have *issued) bool {
	return have != nil && isUnrecorded(s, have) && have.serial < s.Object.Spec.Rotation.WantedSerial()
}

// order is a token to write to the Secret.
type order struct {
	claims   tokens.Claims
	serial   int64
	replaces string
	// inUse means that the Secret holds a valid token.
	inUse bool
}

// decide reports whether a new token is needed, and returns its order. The caller sets the identifier.
//
// A disabled key is rotated, too. Otherwise, the old token, perhaps the reason why the key was disabled, would be valid
// again for a moment when the key is enabled.
func decide(s *scope, have *issued) (order, bool) {
	wanted := s.Object.Spec.Rotation.WantedSerial()
	if have != nil && (have.serial >= wanted || isUnrecorded(s, have)) {
		return order{}, false
	}
	if have == nil && lastTokenExpired(s) {
		return order{}, false
	}
	from := s.Now.UTC().Truncate(time.Second)
	if s.Before.IssuedAt != nil && s.Before.IssuedAt.After(from) {
		// Another replica's clock is ahead of ours; see recall.
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

// lastTokenExpired reports whether the last token in the status has expired and no rotation is requested. The loss
// of its Secret or signing key must not give the key a new lifetime.
func lastTokenExpired(s *scope) bool {
	return s.Before.RotationSerial >= s.Object.Spec.Rotation.WantedSerial() && wasExpired(s, s.Before.KeyID)
}

// endOfIssued returns when the token expires. An expired token stays expired: raising or removing a limit later extends
// only tokens that are still valid.
func endOfIssued(s *scope, have *issued) time.Time {
	end := endOfLife(s, have.claims.IssuedAt, have.claims.ExpiresAt)
	if !wasExpired(s, have.claims.ID) {
		return end
	}
	return slices.MinFunc([]time.Time{end, recorded(s.Before, have.claims.ID).ExpiresAt.Time}, time.Time.Compare)
}

// wasExpired reports whether the expiry in the status has passed for the token, or had passed by the clock of an
// earlier leader, which may be ahead of this one's: then Ready has the reason Expired. A later reason, such as
// SecretNotWritten, hides that: such a token becomes valid again if its limit is also lifted within those minutes.
func wasExpired(s *scope, token string) bool {
	end := recorded(s.Before, token).ExpiresAt.Time
	if end.IsZero() || end.After(s.Now.Add(apitime.MaxAhead)) {
		return false
	}
	return !s.Now.Before(end) || conditions.ReadyReason(s.Before.Conditions) == v1alpha1.ReasonExpired
}

// endOfLife returns when a token issued at from expires: the earliest of the signed expiry (zero if not signed yet),
// the key's expiry and the organization's maximum lifetime.
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
	return slices.MinFunc(ends, time.Time.Compare)
}

// shortened reports whether the organization's maximum lifetime shortens the life of the key.
func shortened(s *scope) bool {
	bounds, status := s.organization.Spec.APIKeys, *s.Status
	if bounds == nil || bounds.MaxLifetime == nil || status.IssuedAt == nil || status.ExpiresAt == nil {
		return false
	}
	end := status.IssuedAt.Add(bounds.MaxLifetime.Duration).Truncate(time.Second)
	expiry := s.Object.Spec.ExpiresAt
	return status.ExpiresAt.Equal(new(v1alpha1.NewTime(end))) && (expiry == nil || end.Before(expiry.Time))
}

// statusFor returns the status for the token. Without a token it has no identifier, so the REST API accepts no token.
func statusFor(s *scope, have *issued) v1alpha1.APIKeyStatus {
	status := withoutToken(s.Before)
	if have == nil {
		if lastTokenExpired(s) {
			status = *s.Before.DeepCopy()
			status.Previous = nil
		}
		return status
	}
	end := endOfIssued(s, have)
	status.KeyID = have.claims.ID
	status.SigningKeyID = have.signedBy
	status.SecretRef = &v1alpha1.SecretReference{Name: v1alpha1.ResourceName(SecretName(s.Object.Name))}
	status.RotationSerial = have.serial
	status.IssuedAt = new(v1alpha1.NewTime(have.claims.IssuedAt))
	status.ExpiresAt = new(v1alpha1.NewTime(end))
	status.Previous = previous(s, have, end)
	return status
}

// previous returns the previous token, whose overlap counts from the rotation, so that a shorter overlap takes effect
// at once. It never moves the recorded end to a later time: an overlap neither extends nor revives a token. The token
// ends with its signing key, because it cannot be signed again.
func previous(s *scope, have *issued, end time.Time) *v1alpha1.PreviousToken {
	if have.replaces == "" {
		return nil
	}
	replaced := recorded(s.Before, have.replaces)
	if replaced.SigningKeyID != "" && !s.accepted.Has(replaced.SigningKeyID) {
		return nil
	}
	ends := []time.Time{
		have.claims.IssuedAt.Add(overlap(s.Object)).Truncate(time.Second), end, replaced.ExpiresAt.Time,
	}
	if replaced.IssuedAt != nil {
		ends = append(ends, endOfLife(s, replaced.IssuedAt.Time, replaced.ExpiresAt.Time))
	}
	until := slices.MinFunc(ends, time.Time.Compare)
	if !until.After(s.Now) {
		return nil
	}
	replaced.ExpiresAt = v1alpha1.NewTime(until)
	return &replaced
}

// recorded returns what the status records of the token; with a zero expiry if it records nothing.
func recorded(before *v1alpha1.APIKeyStatus, token string) v1alpha1.PreviousToken {
	switch {
	case before.KeyID == token && before.ExpiresAt != nil:
		return v1alpha1.PreviousToken{
			KeyID: token, ExpiresAt: *before.ExpiresAt, SigningKeyID: before.SigningKeyID, IssuedAt: before.IssuedAt,
		}
	case before.Previous != nil && before.Previous.KeyID == token:
		return *before.Previous
	}
	return v1alpha1.PreviousToken{}
}

// withoutToken returns the status without a valid token. It keeps when the last token was issued and expires, and for
// which serial, which recall and lastTokenExpired need.
func withoutToken(before *v1alpha1.APIKeyStatus) v1alpha1.APIKeyStatus {
	return v1alpha1.APIKeyStatus{
		ObservedGeneration: before.ObservedGeneration,
		RotationSerial:     before.RotationSerial,
		IssuedAt:           before.IssuedAt,
		ExpiresAt:          before.ExpiresAt,
		LastUsedAt:         before.LastUsedAt,
		Conditions:         before.DeepCopy().Conditions,
	}
}

// recheck bounds the wait for the end of a token. It is longer than MaxWait, because each reconcile reads three objects
// past the cache, and all keys that were created together come back together. After the clock was set forward, only the
// status is late: the REST API refuses expired tokens by its own clock.
const recheck = 24 * time.Hour

// untilNextChange returns how long until the status may change just because time passes, at most recheck; 0 if it never
// does. A token that has expired becomes valid again if a clock that was ahead is corrected.
func untilNextChange(status v1alpha1.APIKeyStatus, now time.Time) time.Duration {
	var wait time.Duration
	if status.ExpiresAt != nil {
		wait = reconcile.Sooner(recheck, status.ExpiresAt.Sub(now))
	}
	if status.Previous != nil {
		wait = reconcile.Sooner(wait, status.Previous.ExpiresAt.Sub(now))
	}
	return wait
}

func overlap(key *v1alpha1.APIKey) time.Duration {
	if key.Spec.Rotation == nil || key.Spec.Rotation.Overlap == nil {
		return 0
	}
	return key.Spec.Rotation.Overlap.Duration
}
