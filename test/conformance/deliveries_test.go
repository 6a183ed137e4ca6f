package conformance

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Lists of webhook deliveries, and reading one by its id, are additions to the contract.

func TestWebhookDeliveries_FiltersSelectWhatTheyName(t *testing.T) {
	o := sampleOrganization(t)
	for query, want := range map[string][]string{
		"":                                     {"whd-closed", "whd-created", "whd-failed"},
		"status=failed":                        {"whd-failed"},
		"status=pending":                       {"whd-closed", "whd-created"},
		"status=delivered":                     {},
		"event=finding.created":                {"whd-created", "whd-failed"},
		"event=webhook.ping":                   {},
		"endpoint_id=absent":                   {"whd-closed", "whd-created"},
		"endpoint_id=nobody":                   {},
		"subject_id=f-closed":                  {"whd-closed", "whd-failed"},
		"subject_id=f-closed&endpoint_id=gone": {"whd-failed"},
		"subject_id=f-closed&event=finding.closed&status=pending": {"whd-closed"},
		"endpoint_id=absent&event=finding.created":                {"whd-created"},
	} {
		o.wantsList(with("/v2/webhook-deliveries", query), "/v2/webhook-deliveries/", want)
	}
	for _, query := range []string{"status=Failed", "event=finding.create", "sort=updated_at"} {
		o.get(with("/v2/webhook-deliveries", query)).badQuery(query)
	}
	o.get("/v2/webhook-deliveries/whd-none").notFound("no delivery")
}

// The payload, the signature and the secret are only for the endpoint's owner.
func TestWebhookDeliveries_ShowAttemptsAndNeitherPayloadNorSignature(t *testing.T) {
	o := newOrganization(t)
	sent := o.sent(builder.WebhookEndpoint("watched"))
	path := "/v2/webhook-deliveries/" + sent.id
	harness.Eventually(t, func(g Gomega) { g.Expect(o.get(path).object()["status"]).To(Equal("delivered")) })
	a := o.get(path).wants(200, "a delivery")
	got := a.object()
	wantsShape(t, "a delivery", got, webhookDeliveryShape)
	attempts := got.records("attempts")
	if len(attempts) != 1 {
		t.Fatalf("attempts: %v", attempts)
	}
	attempt := attempts[0]
	wantsShape(t, "an attempt", attempt, webhookAttemptShape)
	if attempt["outcome"] != "succeeded" || attempt["status_code"] != 200.0 || got["finished_at"] == nil || got["endpoint_id"] != "watched" {
		t.Errorf("got %v", got)
	}
	for _, secret := range []string{sent.payload, sent.signature, strings.TrimPrefix(sent.signature, "v1,"), "payload", "ignature", "secret"} {
		if strings.Contains(string(a.Body), secret) {
			t.Errorf("the answer has %q: %s", secret, a.Body)
		}
	}
}
