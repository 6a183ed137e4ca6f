package auth

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"
)

var (
	// ErrUnauthenticated goes with every request whose key is missing or not good. Whoever
	// sends it learns no more than that; ReasonOf is for metrics.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrStale goes with every request that carries a token while what is known of keys is
	// too old to decide by, or not known yet. It is the server's fault and not the client's.
	ErrStale = errors.New("authorization data is stale")
)

// Reason says why a key was refused, in a word for a metric's label.
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
	// ReasonScope goes with a good key that may not do what is asked for: 403 and not 401.
	ReasonScope Reason = "scope"
)

// Reasons are all of them.
var Reasons = []Reason{
	ReasonMissing, ReasonMalformed, ReasonUnknownKey, ReasonSignature, ReasonNotFound,
	ReasonOrganization, ReasonRevoked, ReasonRotated, ReasonExpired, ReasonDisabled, ReasonScope,
}

// ReasonOf returns why a key was refused, or "" for any other error.
func ReasonOf(err error) Reason {
	var r *refusal
	if errors.As(err, &r) {
		return r.reason
	}
	return ""
}

type refusal struct {
	reason Reason
	// key is the one that a genuine token belongs to, or did.
	key types.UID
}

func refuse(reason Reason) error { return &refusal{reason: reason} }

func (r *refusal) Error() string        { return ErrUnauthenticated.Error() + ": " + string(r.reason) }
func (r *refusal) Is(target error) bool { return target == ErrUnauthenticated }
