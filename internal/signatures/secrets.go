package signatures

import (
	"fmt"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Secrets are the signing secrets of one endpoint: the newest, and the previous one until it expires.
type Secrets struct {
	current  Secret
	previous *Expiring
}

// Expiring is a secret and when it expires; nil if no end is known.
type Expiring struct {
	Secret

	ExpiresAt *v1alpha1.Time
}

// ParseSecrets reads the data of an endpoint's Secret. The error names the invalid key, but
// holds no value.
func ParseSecrets(data map[string][]byte) (Secrets, error) {
	text, found := data[v1alpha1.WebhookSecretKey]
	if !found {
		return Secrets{}, fmt.Errorf("key %q: %w: it is missing", v1alpha1.WebhookSecretKey, ErrSecret)
	}
	current, err := ParseSecret(string(text))
	if err != nil {
		return Secrets{}, fmt.Errorf("key %q: %w", v1alpha1.WebhookSecretKey, err)
	}
	previous, err := parsePrevious(data)
	if err != nil {
		return Secrets{}, err
	}
	if previous != nil && previous.ID() == current.ID() {
		previous = nil
	}
	return Secrets{current: current, previous: previous}, nil
}

func parsePrevious(data map[string][]byte) (*Expiring, error) {
	text, found := data[v1alpha1.WebhookPreviousSecretKey]
	if !found {
		return nil, nil
	}
	secret, err := ParseSecret(string(text))
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", v1alpha1.WebhookPreviousSecretKey, err)
	}
	// An expiry is required, or a leaked secret would stay valid until somebody remembers to remove its key.
	end, err := time.Parse(time.RFC3339, strings.TrimSpace(string(data[v1alpha1.WebhookPreviousSecretExpiresAtKey])))
	if err != nil {
		return nil, fmt.Errorf("key %q: not a time like 2026-01-31T12:00:00Z", v1alpha1.WebhookPreviousSecretExpiresAtKey)
	}
	return &Expiring{Secret: secret, ExpiresAt: new(v1alpha1.NewTime(end))}, nil
}

// All returns the newest secret and the previous one, expired or not.
func (s Secrets) All() []Expiring {
	all := []Expiring{{Secret: s.current}}
	if s.previous != nil {
		all = append(all, *s.previous)
	}
	return all
}

// Valid returns the secrets that sign at that time, the newest first.
func (s Secrets) Valid(now time.Time) []Expiring {
	all := s.All()
	if end := all[len(all)-1].ExpiresAt; end != nil && !now.Before(end.Time) {
		all = all[:len(all)-1]
	}
	return all
}
