package keys

import (
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/client"
)

func TestAKeyShowsItsStateAndWhatToDo(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *time.Time { at := now.Add(d); return &at }
	const withNewEnd = " If it has a spec.expiresAt (kubectl get apikey ci --namespace org-acme -o yaml), give --expires-in: " +
		"a new token alone does not move its end."
	refused := []client.ResourceCondition{{Type: "Ready", Status: "False", Message: "A Secret of its name exists."}}
	for _, c := range []struct {
		key        client.APIKey
		word, next string
	}{
		{client.APIKey{ExpiresAt: in(soon)}, "valid", ""},
		{client.APIKey{ExpiresAt: in(soon - time.Second)}, "ends soon", "Rotate it with the command above before it ends." + withNewEnd},
		{client.APIKey{ExpiresAt: in(0)}, "ended", "It is refused. Delete it, or rotate it with the command above." + withNewEnd},
		{client.APIKey{ExpiresAt: in(time.Hour), Disabled: true}, "disabled", "It is refused until somebody enables it again."},
		{client.APIKey{ExpiresAt: in(0), Disabled: true}, "disabled", "It has also ended. Delete it, or enable it and rotate it with the command above." + withNewEnd},
		{client.APIKey{Disabled: true, Conditions: refused}, "disabled", "It also has no token. A Secret of its name exists."},
		{client.APIKey{Disabled: true}, "disabled", "It also has no token."},
		{client.APIKey{}, "not issued", "The controllers have yet to issue its token."},
		{client.APIKey{Conditions: refused}, "not issued", "A Secret of its name exists."},
		{client.APIKey{ExpiresAt: in(2 * soon), Conditions: refused}, "not ready", "A Secret of its name exists."},
	} {
		c.key.Id = "ci"
		if got := standingOf(c.key, "acme", now); got.word != c.word || got.next != c.next {
			t.Errorf("%+v: got %q, %q; want %q, %q", c.key, got.word, got.next, c.word, c.next)
		}
	}
}
