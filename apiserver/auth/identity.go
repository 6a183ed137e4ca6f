package auth

import (
	"crypto/subtle"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/ratelimit"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// Identity is the sender of a request: a key that was valid when the request was authenticated.
type Identity struct {
	// Organization is the organization's name.
	Organization string
	// Namespace is the organization's namespace, which holds the key.
	Namespace string
	// KeyName and KeyUID are the APIKey's name and UID.
	KeyName string
	KeyUID  types.UID
	// Scopes are the scopes that the key lists. If it lists none, it has the default scopes.
	Scopes []v1alpha1.Scope
	// RequestsPerMinute is how many requests the key may send in a window of 60 seconds.
	RequestsPerMinute int32
	// RequiresReason reports whether the organization requires a reason to mute.
	RequiresReason bool
	// ExpiresAt is when the token of the request expires.
	ExpiresAt time.Time
}

// Allowed returns the scopes that the key has.
func (i Identity) Allowed() []v1alpha1.Scope {
	if len(i.Scopes) == 0 {
		return v1alpha1.DefaultScopes()
	}
	return i.Scopes
}

// Allows reports whether the key has the scope.
func (i Identity) Allows(scope v1alpha1.Scope) bool {
	return slices.Contains(i.Allowed(), scope)
}

// Author returns how an object records that the key decided or imported something.
func (i Identity) Author() string { return v1alpha1.APIKeyAuthorPrefix + i.KeyName }

// admit decides about a token with a valid signature: whether it is a current token of its key, and whether the key may
// still be used. Key and organization are nil if they do not exist.
func admit(claims tokens.Claims, key *v1alpha1.APIKey, organization *v1alpha1.Organization,
	now time.Time) (Identity, error) {
	refuse := func(reason Reason) error { return &refusal{reason: reason, key: claims.KeyUID} }
	switch {
	case key == nil:
		return Identity{}, refuse(ReasonNotFound)
	case !owns(organization, key.Namespace) || organization.Name != claims.Organization:
		return Identity{}, refuse(ReasonOrganization)
	case key.DeletionTimestamp != nil:
		// Deleted, but a finalizer still holds it.
		return Identity{}, refuse(ReasonRevoked)
	case !current(key, claims.ID, now):
		return Identity{}, refuse(ReasonRotated)
	case claims.ExpiredAt(now), hasExpired(key, now):
		return Identity{}, refuse(ReasonExpired)
	case key.Spec.Disabled:
		return Identity{}, refuse(ReasonDisabled)
	}
	return Identity{
		Organization:      organization.Name,
		Namespace:         key.Namespace,
		KeyName:           key.Name,
		KeyUID:            key.UID,
		Scopes:            key.Spec.Scopes,
		RequestsPerMinute: requestsPerMinute(key, organization),
		RequiresReason:    organization.Spec.Triage != nil && organization.Spec.Triage.RequireReason,
		ExpiresAt:         end(claims, key),
	}, nil
}

// owns reports whether the organization has adopted the namespace. The controllers write the namespace to the
// organization's status once it carries the organization's UID, and remove it when it no longer does.
func owns(organization *v1alpha1.Organization, namespace string) bool {
	return organization != nil && namespace != "" && organization.Status.Namespace == namespace
}

// current reports whether id identifies a token that the key accepts: its current one, or the previous one
// during the overlap of a rotation.
func current(key *v1alpha1.APIKey, id string, now time.Time) bool {
	if same(key.Status.KeyID, id) {
		return true
	}
	previous := key.Status.Previous
	return previous != nil && same(previous.KeyID, id) && now.Before(previous.ExpiresAt.Time)
}

// end returns when a valid token expires, if the key is not changed before that.
func end(claims tokens.Claims, key *v1alpha1.APIKey) time.Time {
	first := claims.ExpiresAt
	earlier := func(at time.Time) {
		if at.Before(first) {
			first = at
		}
	}
	earlier(key.Status.ExpiresAt.Time)
	if key.Spec.ExpiresAt != nil {
		earlier(key.Spec.ExpiresAt.Time)
	}
	if previous := key.Status.Previous; previous != nil && same(previous.KeyID, claims.ID) {
		earlier(previous.ExpiresAt.Time)
	}
	return first.UTC()
}

func same(a, b string) bool {
	return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// hasExpired reports whether the key has expired. A key without an expiry in its status never got a token.
func hasExpired(key *v1alpha1.APIKey, now time.Time) bool {
	if expiry := key.Spec.ExpiresAt; expiry != nil && !now.Before(expiry.Time) {
		return true
	}
	return key.Status.ExpiresAt == nil || !now.Before(key.Status.ExpiresAt.Time)
}

// requestsPerMinute returns the key's limit, else the organization's, else the default, and at most the organization's
// maximum.
func requestsPerMinute(key *v1alpha1.APIKey, organization *v1alpha1.Organization) int32 {
	limit := int32(ratelimit.DefaultRequestsPerMinute)
	for _, of := range []*v1alpha1.RateLimit{organization.Spec.RateLimit, key.Spec.RateLimit} {
		if of != nil && of.RequestsPerMinute != nil {
			limit = *of.RequestsPerMinute
		}
	}
	if bounds := organization.Spec.APIKeys; bounds != nil && bounds.MaxRequestsPerMinute != nil {
		limit = min(limit, *bounds.MaxRequestsPerMinute)
	}
	return limit
}

// keysDecideAlike reports whether admit decides the same for two states of a key: they differ only in the record of its
// use and in its conditions.
func keysDecideAlike(before, after *v1alpha1.APIKey) bool {
	a, b := *before, *after
	for _, key := range []*v1alpha1.APIKey{&a, &b} {
		key.ResourceVersion, key.Status.LastUsedAt, key.Status.Conditions = "", nil, nil
	}
	return reflect.DeepEqual(a, b)
}

// organizationsDecideAlike reports the same for two states of an organization, whose counts change with each import.
func organizationsDecideAlike(before, after *v1alpha1.Organization) bool {
	a, b := *before, *after
	for _, organization := range []*v1alpha1.Organization{&a, &b} {
		organization.ResourceVersion, organization.Status.Conditions = "", nil
		organization.Status.Counts = v1alpha1.OrganizationCounts{}
	}
	return reflect.DeepEqual(a, b)
}
