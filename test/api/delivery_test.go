package api_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const payload = `{"type":"finding.created","timestamp":"2026-03-01T08:30:00Z","data":{"id":"f-1"}}`

// delivery creates a delivery with one attempt, and returns its signature.
func (o *organization) delivery(name string) (signature string) {
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
		Signatures: []v1alpha1.WebhookSignature{{Digest: signed[0].Digest(), SecretID: secret.ID()}},
	}}
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
	for i := range 3 {
		id := fmt.Sprintf("d-%d", i)
		signature := o.delivery(id)
		verdict := decoded[openapi.WebhookVerification](c.post(verifyPath(id), received(payload, signature)).wants(200, "just sent"))
		if !verdict.Valid {
			t.Fatalf("delivery %s: got %+v, want it verified", id, verdict)
		}
	}
}
