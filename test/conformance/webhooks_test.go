package conformance

import (
	"crypto/rand"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// received is a delivery as received.
type received struct {
	id, timestamp, signature, payload string
}

// verdicts are all possible results of a verification, with their validity.
var verdicts = map[string]bool{"verified": true, "signature_mismatch": false, "payload_mismatch": false, "secret_expired": false}

// delivery returns a sent delivery, and a caller of its organization.
func delivery(t *testing.T) (*caller, received) {
	t.Helper()
	enter(t)
	if f := theDeployment.fixtures.Delivery; f.ID != "" && theDeployment.cluster == nil {
		return anyKey(t), received{id: f.ID, payload: f.Payload, signature: f.Signature}
	}
	if theDeployment.cluster == nil {
		notRun(t, "needs -kubeconfig, or -fixtures with a delivery")
	}
	if theDeployment.delivery == nil {
		theDeployment.delivery = deliver(t)
	}
	d := theDeployment.delivery
	return d.in(t).caller, d.received
}

// delivered is a delivery with its organization.
type delivered struct {
	sample
	received
}

// deliver makes the deployment send a delivery to a receiver in this process.
func deliver(t *testing.T) *delivered {
	t.Helper()
	o := newOrganization(t)
	return &delivered{sample{o.name, o.namespace, o.Token}, o.sent(builder.WebhookEndpoint("conformance"))}
}

// newReceiver listens on -receiver-address, where the deployment can reach this process.
func newReceiver(t *testing.T, handler http.HandlerFunc) (url string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(*receiverAddress, "0"))
	harness.Must(t, err)
	return harness.ServeOn(t, listener, handler)
}

const sentPayload = `{"type":"webhook.ping","data":{}}`

// sent makes the deployment send a delivery to that endpoint, which points to this process.
func (o *organization) sent(endpoint *builder.WebhookEndpointBuilder) received {
	o.t.Helper()
	got := make(chan received, 16)
	receiver := newReceiver(o.t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		select {
		case got <- received{r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), r.Header.Get("webhook-signature"), string(body)}:
		default:
		}
	})
	made := endpoint.In(o.namespace).URL(receiver).Build()
	o.create(made, builder.WebhookDelivery("whd-conformance", time.Now()).In(o.namespace).Endpoint(made.Name).Payload(sentPayload).Build())
	deadline := time.After(patience / 2)
	for {
		select {
		case r := <-got:
			if r.payload != sentPayload {
				continue // the ping of a new endpoint
			}
			r.id = "whd-conformance"
			// The attempt was recorded before it was sent; the replica that is asked may observe it later.
			harness.Within(o.t, replicaDelay, func(g Gomega) {
				a := verify(o.caller, r.id, r.payload, r.signature)
				g.Expect(a.Status).To(Equal(200))
				g.Expect(a.object()["status"]).NotTo(Equal("signature_mismatch"))
			})
			// The receiver ends with the test, which must not cut off its answer: the next attempt is minutes later.
			harness.Eventually(o.t, func(g Gomega) {
				g.Expect(o.get("/v2/webhook-deliveries/" + r.id).object()["status"]).To(Equal("delivered"))
			})
			return r
		case <-deadline:
			notRun(o.t, "the deployment does not send webhooks to this machine's loopback addresses; give -fixtures with a delivery")
		}
	}
}

func verify(c *caller, id, payload, signature string) answer {
	c.t.Helper()
	return c.post("/v2/webhook-deliveries/"+id+"/verify", string(harness.JSON(c.t, map[string]string{"payload": payload, "signature": signature})))
}

// wantsVerdict fails the test unless the answer has that verdict.
func (a answer) wantsVerdict(status string) {
	a.t.Helper()
	got := a.wants(200, status).object()
	wantsShape(a.t, "the result", got, verificationShape)
	if got["status"] != status || got["valid"] != verdicts[status] || got.text("message") == "" {
		a.t.Errorf("got %v, want %s", got, status)
	}
}

func TestWebhooks_WhatWasSentIsVerified(t *testing.T) {
	c, sent := delivery(t)
	a := verify(c, sent.id, sent.payload, sent.signature)
	a.wantsVerdict("verified")
	harness.Same(t, "delivery_id", sent.id, a.object()["delivery_id"])
}

func TestWebhooks_OneOfSeveralSignaturesIsEnough(t *testing.T) {
	c, sent := delivery(t)
	first, _, _ := strings.Cut(sent.signature, " ")
	verify(c, sent.id, sent.payload, first).wantsVerdict("verified")
	verify(c, sent.id, sent.payload, "v1,"+base64.StdEncoding.EncodeToString(make([]byte, 32))+" "+first).wantsVerdict("verified")
}

func TestWebhooks_AnotherSignatureIsAMismatch(t *testing.T) {
	c, sent := delivery(t)
	for _, signature := range []string{"", "v1,", "x", "v1," + base64.StdEncoding.EncodeToString(make([]byte, 32)), strings.ToLower(sent.signature), strings.Repeat("a", 10_000)} {
		verify(c, sent.id, sent.payload, signature).wantsVerdict("signature_mismatch")
	}
}

func TestWebhooks_AnotherPayloadIsAMismatch(t *testing.T) {
	c, sent := delivery(t)
	for _, payload := range []string{"", sent.payload + " ", strings.ToUpper(sent.payload), "{}", strings.Repeat("a", 100_000)} {
		verify(c, sent.id, payload, sent.signature).wantsVerdict("payload_mismatch")
	}
}

// sentWithBoth sends a delivery that is signed with a secret and the one that it replaces, and also returns when
// the old secret expires. The old secret must still be valid when the delivery is sent, which on a busy machine
// takes longer: then it retries with a longer overlap.
func sentWithBoth(t *testing.T) (o *organization, sent received, over time.Time) {
	t.Helper()
	for lives := 10 * time.Second; lives < harness.Patience; lives *= 3 {
		o = newOrganization(t)
		over = time.Now().Add(lives)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "rotating"}, StringData: map[string]string{
			v1alpha1.WebhookSecretKey: signingSecret(), v1alpha1.WebhookPreviousSecretKey: signingSecret(),
			v1alpha1.WebhookPreviousSecretExpiresAtKey: over.UTC().Format(time.RFC3339),
		}}
		o.create(secret)
		sent = o.sent(builder.WebhookEndpoint("rotating").Secret(secret.Name))
		if len(strings.Fields(sent.signature)) == 2 {
			return o, sent, over
		}
		if time.Now().Before(over.Truncate(time.Second)) {
			t.Fatalf("sent with %q before the previous secret was over; want a signature of each", sent.signature)
		}
	}
	t.Fatalf("sent with %q; want a signature of each secret", sent.signature)
	return nil, received{}, over
}

func TestWebhooks_AnExpiredSecretGivesSecretExpired(t *testing.T) {
	t.Parallel()
	o, sent, over := sentWithBoth(t)
	both := strings.Fields(sent.signature)
	verdictsNow := func() []string {
		var got []string
		for _, signature := range both {
			a := verify(o.caller, sent.id, sent.payload, signature)
			a.wantsVerdict(a.object().text("status"))
			got = append(got, a.object().text("status"))
		}
		slices.Sort(got)
		return got
	}
	harness.Eventually(t, func(g Gomega) { g.Expect(verdictsNow()).To(Equal([]string{"secret_expired", "verified"})) })
	if time.Now().Before(over.Truncate(time.Second)) {
		t.Error("the secret is called over before its time")
	}
	verify(o.caller, sent.id, sent.payload, sent.signature).wantsVerdict("verified")
	for _, signature := range both {
		verify(o.caller, sent.id, sent.payload+" ", signature).wantsVerdict("payload_mismatch")
	}
}

// signingSecret returns a new secret, as an administrator would create it.
func signingSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

func TestWebhooks_TheMessageIsAFixedSentenceForEachVerdict(t *testing.T) {
	c, sent := delivery(t)
	for _, test := range []struct{ payload, signature string }{{sent.payload, sent.signature}, {sent.payload, "x"}, {"x", sent.signature}} {
		first := verify(c, sent.id, test.payload, test.signature).object()["message"]
		if second := verify(c, sent.id, test.payload, test.signature).object()["message"]; first != second || first == "" {
			t.Errorf("%q and %q", first, second)
		}
	}
}

func TestWebhooks_DeliveriesAreSignedByTheStandard(t *testing.T) {
	_, sent := delivery(t)
	if sent.timestamp == "" {
		notRun(t, "needs -kubeconfig, to receive a delivery")
	}
	for signature := range strings.FieldsSeq(sent.signature) {
		encoded, ok := strings.CutPrefix(signature, "v1,")
		if mac, err := base64.StdEncoding.DecodeString(encoded); !ok || err != nil || len(mac) != 32 {
			t.Errorf("%q is no v1 signature", signature)
		}
	}
	harness.Same(t, "what webhook-timestamp has but digits", "", strings.Trim(sent.timestamp, "0123456789"))
}

func TestWebhooks_VerifyNeedsABodyOfPayloadAndSignature(t *testing.T) {
	c := anyKey(t)
	for _, body := range []string{
		`{}`, `{"payload":"x"}`, `{"signature":"x"}`, `{"payload":null,"signature":"x"}`, `{"payload":"x","signature":null}`,
		`{"payload":{},"signature":"x"}`, `{"payload":"x","signature":1}`, `{"payload":"x","signature":"y","payload":"z"}`,
	} {
		c.post("/v2/webhook-deliveries/whd-none/verify", body).badRequest(body)
	}
	for _, reason := range []string{"nothing", "white space", "null", "a list", "a string", "a number", "not JSON", "cut off"} {
		c.post("/v2/webhook-deliveries/whd-none/verify", apiclient.BadBodies[reason]).badRequest(reason)
	}
}

func TestWebhooks_VerifyIgnoresUnknownMembers(t *testing.T) {
	c, _ := delivery(t)
	c.post("/v2/webhook-deliveries/whd-none/verify", `{"payload":"x","signature":"y","secret":"z"}`).notFound("unknown members are no error")
}

func TestWebhooks_VerifyTakesABodyUpTo1MiB(t *testing.T) {
	c := anyKey(t)
	fits := strings.Repeat("a", 1<<20-len(`{"payload":"","signature":"x"}`))
	verify(c, "whd-none", fits, "x").notFound("exactly 1 MiB is read")
	verify(c, "whd-none", fits+"a", "x").badRequest("a byte more")
}

func TestWebhooks_VerifyOfAnotherOrganizationsDeliveryIs404(t *testing.T) {
	_, sent := delivery(t)
	verify(sampleOrganization(t).caller, sent.id, sent.payload, sent.signature).notFound("another organization's")
}

func TestWebhooks_VerifyChangesNothing(t *testing.T) {
	c, sent := delivery(t)
	path := "/v2/webhook-deliveries/" + sent.id
	var before record
	harness.Eventually(t, func(g Gomega) {
		before = c.get(path).object()
		g.Expect(before["status"]).NotTo(Equal("pending"), "it is sent")
	})
	for range 3 {
		verify(c, sent.id, sent.payload, "x").wantsVerdict("signature_mismatch")
		verify(c, sent.id, sent.payload, sent.signature).wantsVerdict("verified")
	}
	// A replica may show the delivery later than another one.
	harness.Within(t, replicaDelay, func(g Gomega) { g.Expect(c.get(path).object()).To(Equal(before)) })
}

func TestWebhooks_PayloadHoldsNoSourceCode(t *testing.T) {
	o := newOrganization(t)
	bodies := make(chan string, 64)
	receiver := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			bodies <- string(body)
		}
	})
	var seen []string
	await := func(event string) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			select {
			case body := <-bodies:
				seen = append(seen, body)
			default:
			}
			g.Expect(seen).To(ContainElement(ContainSubstring(event)))
		})
	}
	o.create(builder.WebhookEndpoint("ping").In(o.namespace).URL(receiver).Build())
	await("webhook.ping") // a new endpoint is pinged
	event := harness.Decoded[record](t, []byte(seen[0]))
	wantsShape(t, "the event", event, members("string: type timestamp", "object: data"))

	const code = "conformance := theSourceCode()"
	o.create(builder.Finding("f-1").In(o.namespace).Mutate(func(f *v1alpha1.Finding) {
		f.Spec.Details.Code, f.Spec.Details.FixedCode = code, code
	}).Build())
	await("finding.created")
	for _, body := range seen {
		harness.Lacks(t, "a payload, which contains no source code", body, code)
	}
}
