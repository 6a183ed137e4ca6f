package auth

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

func TestAdmission(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *v1alpha1.Time { return new(v1alpha1.NewTime(now.Add(d))) }
	type subject struct {
		claims       tokens.Claims
		key          *v1alpha1.APIKey
		organization *v1alpha1.Organization
	}
	cases := map[string]struct {
		reason string
		change func(*subject)
		want   Reason // "" for admitted
	}{
		"good":                  {"a key in order", func(*subject) {}, ""},
		"no key":                {"a key that is not there decides nothing", func(s *subject) { s.key = nil }, ReasonNotFound},
		"no organization":       {"a key needs an organization", func(s *subject) { s.organization = nil }, ReasonOrganization},
		"namespace not adopted": {"an empty status.namespace is nobody's", func(s *subject) { s.organization.Status.Namespace = "" }, ReasonOrganization},
		"no namespace at all":   {"two absent namespaces are not the same", func(s *subject) { s.key.Namespace, s.organization.Status.Namespace = "", "" }, ReasonOrganization},
		"other namespace":       {"the key must be in it", func(s *subject) { s.key.Namespace = "org-other" }, ReasonOrganization},
		"other org claim":       {"and the token be issued for it", func(s *subject) { s.claims.Organization = "other" }, ReasonOrganization},
		"being deleted":         {"a deletion is a revocation", func(s *subject) { s.key.DeletionTimestamp = &metav1.Time{Time: at(-time.Second).Time} }, ReasonRevoked},
		"other jti":             {"the status names the token in force", func(s *subject) { s.claims.ID = "old" }, ReasonRotated},
		"no jti in force":       {"no token is in force", func(s *subject) { s.key.Status.KeyID = "" }, ReasonRotated},
		"empty jti":             {"two absent identifiers are not the same", func(s *subject) { s.claims.ID, s.key.Status.KeyID = "", "" }, ReasonRotated},
		"previous": {"the one before holds during the overlap", func(s *subject) {
			s.claims.ID = "old"
			s.key.Status.Previous = &v1alpha1.PreviousToken{KeyID: "old", ExpiresAt: *at(time.Second)}
		}, ""},
		"previous over": {"and no longer", func(s *subject) {
			s.claims.ID = "old"
			s.key.Status.Previous = &v1alpha1.PreviousToken{KeyID: "old", ExpiresAt: *at(0)}
		}, ReasonRotated},
		"rotated and expired": {"the key itself has not expired", func(s *subject) {
			s.claims.ID, s.claims.ExpiresAt = "old", now
		}, ReasonRotated},
		"token expired":  {"a token ends by itself", func(s *subject) { s.claims.ExpiresAt = now }, ReasonExpired},
		"status expired": {"the controllers' bound holds", func(s *subject) { s.key.Status.ExpiresAt = at(0) }, ReasonExpired},
		"no status":      {"no expiry is no licence", func(s *subject) { s.key.Status.ExpiresAt = nil }, ReasonExpired},
		"spec expired":   {"the spec holds before the controllers have seen it", func(s *subject) { s.key.Spec.ExpiresAt = at(0) }, ReasonExpired},
		"spec not yet":   {"an expiry to come is none", func(s *subject) { s.key.Spec.ExpiresAt = at(time.Second) }, ""},
		"disabled":       {"a disabled key is refused", func(s *subject) { s.key.Spec.Disabled = true }, ReasonDisabled},
		"previous of off": {"with every token it has", func(s *subject) {
			s.key.Spec.Disabled = true
			s.claims.ID = "old"
			s.key.Status.Previous = &v1alpha1.PreviousToken{KeyID: "old", ExpiresAt: *at(time.Second)}
		}, ReasonDisabled},
	}
	for name, tc := range cases {
		s := subject{
			claims: tokens.Claims{KeyUID: "uid", Organization: "acme", ID: "current", IssuedAt: now.Add(-time.Hour), ExpiresAt: now.Add(time.Hour)},
			key: &v1alpha1.APIKey{
				ObjectMeta: metav1.ObjectMeta{Name: "ci", Namespace: "org-acme", UID: "uid"},
				Status:     v1alpha1.APIKeyStatus{KeyID: "current", ExpiresAt: at(time.Hour)},
			},
			organization: &v1alpha1.Organization{
				ObjectMeta: metav1.ObjectMeta{Name: "acme"},
				Status:     v1alpha1.OrganizationStatus{Namespace: "org-acme"},
			},
		}
		tc.change(&s)
		identity, err := admit(s.claims, s.key, s.organization, now)
		if ReasonOf(err) != tc.want {
			t.Errorf("%s: %s: got %v, want reason %q", name, tc.reason, err, tc.want)
		}
		if (err == nil) != (identity.KeyName == "ci") {
			t.Errorf("%s: an identity goes with an admission and with nothing else", name)
		}
	}
}

func TestRequestsPerMinuteIsTheNearestFigureUpToTheMaximum(t *testing.T) {
	limit := func(n int32) *v1alpha1.RateLimit { return &v1alpha1.RateLimit{RequestsPerMinute: &n} }
	cases := []struct {
		key, organization *v1alpha1.RateLimit
		most              *int32
		want              int32
	}{
		{nil, nil, nil, 600},
		{nil, limit(100), nil, 100},
		{limit(5), limit(100), nil, 5},
		{limit(5), nil, nil, 5},
		{&v1alpha1.RateLimit{}, limit(100), nil, 100},
		{&v1alpha1.RateLimit{}, &v1alpha1.RateLimit{}, nil, 600},
		{limit(1_000_000), limit(50), nil, 1_000_000},
		{limit(1_000_000), limit(50), new(int32(100)), 100},
		{limit(5), nil, new(int32(100)), 5},
		{nil, limit(1_000), new(int32(100)), 100},
		{nil, nil, new(int32(100)), 100},
	}
	for _, tc := range cases {
		key, organization := &v1alpha1.APIKey{}, &v1alpha1.Organization{}
		key.Spec.RateLimit, organization.Spec.RateLimit = tc.key, tc.organization
		organization.Spec.APIKeys = &v1alpha1.OrganizationAPIKeys{MaxRequestsPerMinute: tc.most}
		if got := requestsPerMinute(key, organization); got != tc.want {
			t.Errorf("%+v: %d per minute", tc, got)
		}
	}
}
