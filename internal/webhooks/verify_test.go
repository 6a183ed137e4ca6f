package webhooks

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// sent adds an attempt to the delivery, and returns the tokens that it carried.
func sent(t testing.TB, d *v1alpha1.WebhookDelivery, at time.Time, outcome v1alpha1.WebhookAttemptOutcome, secrets ...signatures.Expiring) []string {
	t.Helper()
	signed, err := signatures.Sign(d.Spec.Event.ID, at, d.Spec.Payload, secrets)
	harness.Must(t, err)
	attempt := v1alpha1.WebhookAttempt{At: v1alpha1.NewTime(at), Outcome: outcome}
	for _, s := range signed {
		attempt.Signatures = append(attempt.Signatures, v1alpha1.WebhookSignature{
			Digest: s.Digest(), SecretID: s.Secret().ID(), ExpiresAt: s.Secret().ExpiresAt,
		})
	}
	d.Status.Attempts = append(d.Status.Attempts, attempt)
	return strings.Fields(signatures.Header(signed))
}

func newDelivery(payload string) *v1alpha1.WebhookDelivery {
	return &v1alpha1.WebhookDelivery{Spec: v1alpha1.WebhookDeliverySpec{
		Event: v1alpha1.WebhookEvent{ID: "d-1"}, Payload: payload,
	}}
}

func secret(end *v1alpha1.Time) signatures.Expiring {
	s, _ := signatures.NewSecret()
	return signatures.Expiring{Secret: s, ExpiresAt: end}
}

func TestADeliveryIsVerifiedByItsPayloadAndASignatureInForce(t *testing.T) {
	end := noon.Add(time.Hour)
	newer, older := secret(nil), secret(new(v1alpha1.NewTime(end)))
	d := newDelivery(`{"a":1}`)
	first := sent(t, d, noon, v1alpha1.WebhookAttemptFailed, older)
	second := sent(t, d, noon.Add(time.Minute), v1alpha1.WebhookAttemptSucceeded, newer, older)
	// Signed with the known secret, but never sent by us.
	forged := sent(t, newDelivery(`{"a":1}`), noon.Add(2*time.Minute), v1alpha1.WebhookAttemptSucceeded, newer)[0]
	header := strings.Join(second, " ")
	bare := strings.TrimPrefix(second[0], "v1,")
	recorded := d.Status.Attempts[1].Signatures[0].Digest

	cases := []struct {
		reason, payload, signature string
		now                        time.Time
		want                       VerificationStatus
	}{
		{"the newest secret's", `{"a":1}`, second[0], noon, Verified},
		{"the older secret's, in its overlap", `{"a":1}`, second[1], noon, Verified},
		{"a whole header value", `{"a":1}`, header, noon, Verified},
		{"that of an attempt that failed: it may have arrived", `{"a":1}`, first[0], noon, Verified},
		{"one good signature among others", `{"a":1}`, "v1,AAAA v1a,BBBB " + second[0], noon, Verified},
		{"the older secret's at its end", `{"a":1}`, second[1], end, SecretExpired},
		{"the older secret's a moment before", `{"a":1}`, second[1], end.Add(-time.Nanosecond), Verified},
		{"a header with one expired and one valid", `{"a":1}`, header, end, Verified},
		{"another payload", `{"a":2}`, second[0], noon, PayloadMismatch},
		{"the payload and more", `{"a":1}` + "\n", second[0], noon, PayloadMismatch},
		{"no payload", "", second[0], noon, PayloadMismatch},
		{"another payload and an expired secret", `{"a":2}`, first[0], end, PayloadMismatch},
		{"a genuine signature that was never sent", `{"a":1}`, forged, noon, SignatureMismatch},
		{"no signature", `{"a":1}`, "", noon, SignatureMismatch},
		{"a signature without its version", `{"a":1}`, bare, noon, SignatureMismatch},
		{"another version", `{"a":1}`, "v2," + bare, noon, SignatureMismatch},
		{"the digest that is recorded", `{"a":1}`, recorded, noon, SignatureMismatch},
		{"another signature and another payload", `{"a":2}`, forged, noon, SignatureMismatch},
		{"a good one among more than are read", `{"a":1}`, strings.Repeat("v1,A ", 16) + second[0], noon, SignatureMismatch},
	}
	for _, c := range cases {
		got := Verify(d, c.payload, c.signature, c.now)
		harness.Same(t, c.reason, c.want, got)
		harness.Same(t, c.reason+": valid", got == Verified, got.Valid())
	}
	harness.Same(t, "of a delivery that was never sent", SignatureMismatch, Verify(newDelivery("x"), "x", second[0], noon))
}

func TestEachStatusHasItsOwnMessage(t *testing.T) {
	seen := map[string]VerificationStatus{}
	for _, status := range []VerificationStatus{Verified, SignatureMismatch, PayloadMismatch, SecretExpired} {
		if other, twice := seen[status.Message()]; twice || status.Message() == "" {
			t.Errorf("%s and %s say the same: %q", status, other, status.Message())
		}
		seen[status.Message()] = status
	}
}

// A redelivery has another timestamp and another secret. Its signatures verify as well as the
// earlier ones, until their attempt is dropped.
func TestVerifyHoldsOverARedelivery(t *testing.T) {
	end := noon.Add(time.Hour)
	before, after := secret(new(v1alpha1.NewTime(end))), secret(nil)
	d := newDelivery(`{"a":1}`)
	first := sent(t, d, noon, v1alpha1.WebhookAttemptSucceeded, before)[0]
	d.Annotations = map[string]string{v1alpha1.RedeliverAnnotation: "1"}
	TakeUpRedelivery(d, end)
	again := sent(t, d, end, v1alpha1.WebhookAttemptSucceeded, after)[0]
	if first == again {
		t.Fatal("another time and secret made the same signature")
	}
	verify := func(signature string, now time.Time, want VerificationStatus) {
		t.Helper()
		harness.Same(t, "the answer", want, Verify(d, `{"a":1}`, signature, now))
	}
	verify(first, noon, Verified)
	verify(again, noon, Verified)
	verify(first, end, SecretExpired)
	verify(again, end, Verified)
	verify(first+" "+again, end, Verified)
	for len(d.Status.Attempts) < v1alpha1.MaxWebhookAttempts {
		AddAttempt(&d.Status, v1alpha1.WebhookAttempt{At: v1alpha1.NewTime(end), Outcome: v1alpha1.WebhookAttemptFailed})
	}
	verify(first, noon, Verified)
	AddAttempt(&d.Status, v1alpha1.WebhookAttempt{At: v1alpha1.NewTime(end), Outcome: v1alpha1.WebhookAttemptFailed})
	verify(first, noon, SignatureMismatch)
	verify(again, noon, Verified)
}

// Every sent token verifies, alone and among others; with any byte changed it does not.
func TestVerifyHoldsForWhateverWasSent(t *testing.T) {
	secrets := []signatures.Expiring{secret(nil), secret(nil)}
	rapid.Check(t, func(rt *rapid.T) {
		payload := rapid.StringN(1, 200, -1).Draw(rt, "payload")
		d := newDelivery(payload)
		var tokens []string
		for i := range rapid.IntRange(1, 6).Draw(rt, "attempts") {
			tokens = append(tokens, sent(t, d, noon.Add(time.Duration(i)*time.Minute), v1alpha1.WebhookAttemptFailed,
				secrets[:rapid.IntRange(1, 2).Draw(rt, "secrets")]...)...)
		}
		token := rapid.SampledFrom(tokens).Draw(rt, "token")
		company := rapid.SliceOfN(rapid.StringMatching(`v1,[A-Za-z0-9+/]{43}=`), 0, 10).Draw(rt, "company")
		at := rapid.IntRange(0, len(company)).Draw(rt, "position")
		header := strings.Join(append(append(append([]string{}, company[:at]...), token), company[at:]...), " ")
		if got := Verify(d, payload, header, noon); got != Verified {
			rt.Fatalf("got %s", got)
		}
		i := rapid.IntRange(0, len(token)-1).Draw(rt, "byte")
		if got := Verify(d, payload, token[:i]+"!"+token[i+1:], noon); got != SignatureMismatch {
			rt.Fatalf("a changed signature: got %s", got)
		}
		j := rapid.IntRange(0, len(payload)-1).Draw(rt, "payload byte")
		if changed := payload[:j] + "\x00" + payload[j+1:]; changed != payload && Verify(d, changed, token, noon) != PayloadMismatch {
			rt.Fatalf("a changed payload: got %s", Verify(d, changed, token, noon))
		}
	})
}

// Only exact tokens that were sent verify, and nothing panics.
func FuzzVerify(f *testing.F) {
	d := newDelivery(`{"a":1}`)
	key, err := signatures.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	harness.Must(f, err)
	token := sent(f, d, noon, v1alpha1.WebhookAttemptSucceeded, signatures.Expiring{Secret: key})[0]
	f.Add(`{"a":1}`, token)
	f.Add(`{"a":1}`, token+" "+token)
	f.Add(`{"a":1} `, "v1,"+strings.Repeat("A", 43)+"=")
	f.Add("", strings.Repeat(" ", 5000))
	f.Add("\xff", "\xff,\x00")
	f.Fuzz(func(t *testing.T, payload, signature string) {
		got := Verify(d, payload, signature, noon)
		carries := false
		for _, given := range strings.Fields(signature) {
			carries = carries || given == token
		}
		if got == Verified && (payload != d.Spec.Payload || !carries) {
			t.Errorf("%q with %q is verified", payload, signature)
		}
		harness.Same(t, string(got)+": valid", got == Verified, got.Valid())
	})
}
