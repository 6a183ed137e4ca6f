package webhookdelivery

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
)

func TestAnEndpointConcernsItsDeliveriesWhereItsSecretsChange(t *testing.T) {
	noon := v1alpha1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	// The same instant, as another decoding may hold it.
	elsewhere := v1alpha1.NewTime(noon.In(time.FixedZone("UTC+1", 3600)))
	later := v1alpha1.NewTime(noon.Add(time.Hour))
	endpoint := func(id string, expiresAt *v1alpha1.Time) *v1alpha1.WebhookEndpoint {
		e := builder.WebhookEndpoint("e").Build()
		e.Status.Secrets = []v1alpha1.WebhookSecretStatus{{ID: id, ExpiresAt: expiresAt}}
		return e
	}
	cases := []struct {
		reason        string
		before, after *v1alpha1.WebhookEndpoint
		want          bool
	}{
		{"nothing has changed", endpoint("a", &noon), endpoint("a", &elsewhere), false},
		{"no end is known, before and after", endpoint("a", nil), endpoint("a", nil), false},
		{"an end has become known", endpoint("a", nil), endpoint("a", &noon), true},
		{"another end", endpoint("a", &noon), endpoint("a", &later), true},
		{"another secret", endpoint("a", &noon), endpoint("b", &noon), true},
	}
	for _, c := range cases {
		if got := concernsDeliveries.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.want {
			t.Errorf("%s: got %t", c.reason, got)
		}
	}
}
