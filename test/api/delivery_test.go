package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const payload = `{"type":"finding.created","timestamp":"2026-03-01T08:30:00Z","data":{"id":"f-1"}}`

// delivery creates a delivery with one attempt, signed with a secret that expires at expires, and
// returns the signature.
func (o *organization) delivery(name string, expires *v1alpha1.Time) (signature string) {
	o.t.Helper()
	at := time.Now().Truncate(time.Second)
	secret, _ := signatures.NewSecret()
	signed, err := signatures.Sign(name, at, payload, []signatures.Expiring{{Secret: secret}})
	harness.Must(o.t, err)
	delivery := builder.WebhookDelivery(name, at).In(o.namespace).Payload(payload).Build()
	o.create(delivery)
	delivery.Status.Phase = v1alpha1.WebhookDeliveryDelivered
	delivery.Status.Attempts = []v1alpha1.WebhookAttempt{{
		At: v1alpha1.Time{Time: at}, Outcome: v1alpha1.WebhookAttemptSucceeded, Code: 200,
		Signatures: []v1alpha1.WebhookSignature{{Digest: signed[0].Digest(), SecretID: secret.ID(), ExpiresAt: expires}},
	}}
	harness.Must(o.t, controller.Status().Update(o.t.Context(), delivery))
	return signatures.Header(signed)
}

// sends adds an attempt at that time, signed with those secrets, and returns the signature header's
// value.
func (o *organization) sends(delivery *v1alpha1.WebhookDelivery, at time.Time, secrets ...signatures.Expiring) string {
	o.t.Helper()
	signed, err := signatures.Sign(delivery.Name, at, payload, secrets)
	harness.Must(o.t, err)
	attempt := v1alpha1.WebhookAttempt{At: v1alpha1.Time{Time: at}, Outcome: v1alpha1.WebhookAttemptFailed, Code: 500}
	for _, signature := range signed {
		entry := v1alpha1.WebhookSignature{Digest: signature.Digest(), SecretID: signature.Secret().ID()}
		if end := signature.Secret().ExpiresAt; end != nil {
			entry.ExpiresAt = &v1alpha1.Time{Time: *end}
		}
		attempt.Signatures = append(attempt.Signatures, entry)
	}
	webhooks.AddAttempt(&delivery.Status, attempt)
	delivery.Status.Phase = v1alpha1.WebhookDeliveryPending
	harness.Must(o.t, controller.Status().Update(o.t.Context(), delivery))
	return signatures.Header(signed)
}

func received(payload, signature string) string {
	body, err := json.Marshal(map[string]string{"payload": payload, "signature": signature})
	if err != nil {
		panic(err)
	}
	return string(body)
}

func verifyPath(id string) string { return "/v2/webhook-deliveries/" + id + "/verify" }

// The receiver may ask before this replica's watch has delivered the attempt.
func TestADeliveryIsVerifiedAtTheMomentItIsSent(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	for i := range 20 {
		id := fmt.Sprintf("d-%d", i)
		signature := o.delivery(id, nil)
		verdict := decoded[openapi.WebhookVerification](c.post(verifyPath(id), received(payload, signature)).wants(200, "just sent"))
		if !verdict.Valid {
			t.Fatalf("delivery %s: got %+v, want it verified", id, verdict)
		}
	}
}

// A delivery has several attempts, a secret that was rotated between them, and a redelivery: every
// received signature verifies as long as its secret is valid.
func TestEachAttemptOfADeliveryIsVerified(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	now := time.Now().Truncate(time.Second)
	over, later := now.Add(-time.Minute), now.Add(time.Hour)
	first, _ := signatures.NewSecret()
	second, _ := signatures.NewSecret()
	third, _ := signatures.NewSecret()
	delivery := builder.WebhookDelivery("d-again", now).In(o.namespace).Payload(payload).Build()
	o.create(delivery)

	lost := o.sends(delivery, now.Add(-3*time.Hour), signatures.Expiring{Secret: first, ExpiresAt: &over})
	overlapping := o.sends(delivery, now.Add(-2*time.Hour),
		signatures.Expiring{Secret: second, ExpiresAt: &later}, signatures.Expiring{Secret: first, ExpiresAt: &over})
	delivery.Status.Redelivery = &v1alpha1.WebhookRedelivery{Value: "1", At: v1alpha1.Time{Time: now}}
	again := o.sends(delivery, now, signatures.Expiring{Secret: third}, signatures.Expiring{Secret: second, ExpiresAt: &later})
	newest, older, _ := strings.Cut(overlapping, " ")

	for _, test := range []struct{ reason, payload, signature, status string }{
		{"the first attempt, by a secret that has ended", payload, lost, "secret_expired"},
		{"the second, by the secret that was new then", payload, newest, "verified"},
		{"the second, by the one before it, which has ended", payload, older, "secret_expired"},
		{"the second's whole header value: one that holds is enough", payload, overlapping, "verified"},
		{"the redelivery's whole header value", payload, again, "verified"},
		{"one signature of the redelivery", payload, strings.Fields(again)[0], "verified"},
		{"signatures of two attempts", payload, strings.Fields(again)[1] + " " + lost, "verified"},
		{"the redelivery with another payload", payload + " ", again, "payload_mismatch"},
		{"the first with another payload", payload + " ", lost, "payload_mismatch"},
	} {
		verdict := decoded[openapi.WebhookVerification](c.post(verifyPath("d-again"), received(test.payload, test.signature)).wants(200, test.reason))
		if string(verdict.Status) != test.status || verdict.Valid != (test.status == "verified") {
			t.Errorf("%s: got %+v", test.reason, verdict)
		}
	}
}
