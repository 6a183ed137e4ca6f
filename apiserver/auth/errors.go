package auth

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"
)

var (
	// ErrUnauthenticated means that the key is missing or not valid. The sender learns no more than that;
	// ReasonOf is for metrics.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrStale means that the request carries a token but the key data is too old to decide, or not loaded yet.
	// It is the server's fault and not the client's.
	ErrStale = errors.New("authorization data is stale")
)

// Reason is why a key was refused, as the value of a metric's label.
type Reason string

// The reasons.
const (
	ReasonMissing      Reason = "missing"
	ReasonMalformed    Reason = "malformed"
	ReasonUnknownKey   Reason = "unknown_signing_key"
	ReasonSignature    Reason = "signature"
	ReasonNotFound     Reason = "not_found"
	ReasonOrganization Reason = "organization"
	ReasonRevoked      Reason = "revoked"
	ReasonRotated      Reason = "rotated"
	ReasonExpired      Reason = "expired"
	ReasonDisabled     Reason = "disabled"
	// ReasonScope is for a valid key that lacks the scope: 403 and not 401.
	ReasonScope Reason = "scope"
)

// Reasons lists every Reason.
var Reasons = []Reason{
	ReasonMissing, ReasonMalformed, ReasonUnknownKey, ReasonSignature, ReasonNotFound,
	ReasonOrganization, ReasonRevoked, ReasonRotated, ReasonExpired, ReasonDisabled, ReasonScope,
}

// ReasonOf returns why a key was refused, or "" for any other error.
func ReasonOf(err error) Reason {
	if r, is := errors.AsType[*refusal](err); is {
		return r.reason
	}
	return ""
}

type refusal struct {
	reason Reason
	// key is the APIKey that a token with a valid signature was issued for. It may no longer exist.
	key types.UID
}

func refuse(reason Reason) error { return &refusal{reason: reason} }

func (r *refusal) Error() string        { return ErrUnauthenticated.Error() + ": " + string(r.reason) }
func (r *refusal) Is(target error) bool { return target == ErrUnauthenticated }
