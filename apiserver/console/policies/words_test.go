package policies

import (
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/client"
)

func TestAPolicyThatWasStoppedIsToldFromAPreview(t *testing.T) {
	made := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		reason, want      string
		inForce, compiled client.ResourceCondition
	}{
		{"never in force", "preview", client.ResourceCondition{Reason: "Preview", ChangedAt: made},
			client.ResourceCondition{Status: "True", ChangedAt: made}},
		{"in force before", "stopped", client.ResourceCondition{Reason: "Preview", ChangedAt: made.Add(time.Second)},
			client.ResourceCondition{Status: "True", ChangedAt: made}},
		{"mended since", "preview", client.ResourceCondition{Reason: "Preview", ChangedAt: made},
			client.ResourceCondition{Status: "True", ChangedAt: made.Add(time.Second)}},
		{"nobody says since when it compiles", "preview", client.ResourceCondition{Reason: "Preview", ChangedAt: made},
			client.ResourceCondition{}},
		{"ended, and not stopped", "expired", client.ResourceCondition{Reason: "Expired", ChangedAt: made.Add(time.Second)},
			client.ResourceCondition{Status: "True", ChangedAt: made}},
	} {
		c.inForce.Type, c.compiled.Type = "InForce", "Compiled"
		policy := client.TriagePolicy{Observed: true, Conditions: []client.ResourceCondition{c.inForce, c.compiled}}
		if got := standingOf(policy).word; got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}
