package webhookdelivery

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

func TestADeliveryIsSignedSentOnceAndRecorded(t *testing.T) {
	start(t, loopback)
	ns, g := namespace(t), NewWithT(t)
	r := newReceiver(t, answers(http.StatusNoContent))
	endpoint := quiet(t, ns, "team", r.URL+"/hook?token=in-the-url")
	d := delivery(ns, "d-1", "team")
	create(t, d)
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)

	got := r.got()
	g.Expect(got).To(HaveLen(1))
	g.Expect(got[0].body).To(Equal(d.Spec.Payload))
	g.Expect(got[0].header.Get("webhook-id")).To(Equal(d.Spec.Event.ID))
	g.Expect(got[0].header.Get("content-type")).To(Equal("application/json"))
	g.Expect(got[0].header.Get("user-agent")).To(Equal("findings-operator-webhooks"))
	g.Expect(verifies(got[0], secretOf(t, endpoint))).To(Equal(0))

	attempt := d.Status.Attempts[0]
	g.Expect(attempt.Outcome).To(Equal(v1alpha1.WebhookAttemptSucceeded))
	g.Expect(attempt.Code).To(Equal(int32(http.StatusNoContent)))
	g.Expect(got[0].header.Get("webhook-timestamp")).To(Equal(strconv.FormatInt(attempt.At.Unix(), 10)))
	g.Expect(attempt.Signatures).To(HaveLen(1))
	g.Expect(v1alpha1.IsConditionTrue(d.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
	g.Expect(readyReason(d.Status.Conditions)).To(Equal(v1alpha1.ReasonDelivered))

	signature := got[0].header.Get("webhook-signature")
	g.Expect(webhooks.Verify(d, got[0].body, signature, time.Now())).To(Equal(webhooks.Verified))
	g.Expect(webhooks.Verify(d, got[0].body+" ", signature, time.Now())).To(Equal(webhooks.PayloadMismatch))

	eventually(t, func(g Gomega) {
		status := get(t, g, endpoint).Status
		g.Expect(status.LastSuccessAt).NotTo(BeNil())
		g.Expect(status.ConsecutiveFailures).To(BeZero())
	})
	// Neither the secret nor a signature is anywhere but where it belongs.
	for _, object := range []client.Object{d, endpoint} {
		stored, err := json.Marshal(object)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(stored)).NotTo(ContainSubstring(strings.TrimPrefix(secretOf(t, endpoint), "whsec_")))
		g.Expect(string(stored)).NotTo(ContainSubstring(strings.TrimPrefix(signature, "v1,")))
	}
}

// What is in the status when the request arrives is all that a crash would leave.
func TestTheAttemptIsRecordedBeforeTheRequestLeaves(t *testing.T) {
	start(t, loopback)
	ns := namespace(t)
	d := delivery(ns, "d-1", "team")
	// The receiver runs beside this test, which goes on writing to d.
	key := client.ObjectKeyFromObject(d)
	seen := make(chan v1alpha1.WebhookDeliveryStatus, 1)
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {
		stored := &v1alpha1.WebhookDelivery{}
		if err := env.Client.Get(t.Context(), key, stored); err != nil {
			t.Errorf("read the delivery: %v", err)
		}
		seen <- stored.Status
	})
	quiet(t, ns, "team", r.URL)
	create(t, d)
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)

	g := NewWithT(t)
	status := <-seen
	g.Expect(status.Phase).To(Equal(v1alpha1.WebhookDeliveryPending))
	g.Expect(status.Attempts).To(HaveLen(1))
	g.Expect(status.Attempts[0].Outcome).To(Equal(v1alpha1.WebhookAttemptStarted))
	g.Expect(status.Attempts[0].Signatures[0].Digest).To(Equal(d.Status.Attempts[0].Signatures[0].Digest))
	g.Expect(status.Attempts[0].Signatures[0].Digest).To(HaveLen(64))
}

func TestWhatIsNotAnAnswerOf2xxHasFailed(t *testing.T) {
	start(t, Settings{Allowed: loopback.Allowed, Timeout: 2 * time.Second})
	elsewhere := newReceiver(t, answers(http.StatusOK))
	cases := []struct {
		reason  string
		answer  http.HandlerFunc
		code    int32
		message string
	}{
		{"an error of the receiver", answers(http.StatusInternalServerError), 500, "other than 200 to 299"},
		{"gone", answers(http.StatusGone), 410, "other than 200 to 299"},
		{"a redirect is not followed", func(w http.ResponseWriter, request *http.Request) {
			http.Redirect(w, request, elsewhere.URL, http.StatusTemporaryRedirect)
		}, 307, "redirect"},
		{"no answer in time", func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }, 0, "no answer within 2s"},
		{"a connection that is closed", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, "closed the connection"},
		{"a header without an end", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("x-long", strings.Repeat("x", 1<<20))
			w.WriteHeader(http.StatusOK)
		}, 0, "could not be read"},
	}
	for i, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			ns, g := namespace(t), NewWithT(t)
			r := newReceiver(t, c.answer)
			endpoint := quiet(t, ns, "team", r.URL+"/path-that-is-a-credential")
			d := delivery(ns, "d-"+strconv.Itoa(i), "team")
			create(t, d)
			waitFor(t, d, v1alpha1.WebhookDeliveryFailed, 1)

			attempt := d.Status.Attempts[0]
			g.Expect(attempt.Outcome).To(Equal(v1alpha1.WebhookAttemptFailed))
			g.Expect(attempt.Code).To(Equal(c.code))
			g.Expect(attempt.Message).To(ContainSubstring(c.message))
			g.Expect(attempt.Message).NotTo(ContainSubstring("credential"))
			g.Expect(r.got()).To(HaveLen(1))
			g.Expect(v1alpha1.IsConditionTrue(d.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
			eventually(t, func(g Gomega) {
				status := get(t, g, endpoint).Status
				g.Expect(status.ConsecutiveFailures).To(Equal(int32(1)))
				g.Expect(readyReason(status.Conditions)).To(Equal(v1alpha1.ReasonDeliveryFailing))
			})
		})
	}
	NewWithT(t).Expect(elsewhere.got()).To(BeEmpty(), "the redirect was followed")
}

func TestALongAnswerIsNotRead(t *testing.T) {
	start(t, loopback)
	ns := namespace(t)
	written := make(chan int, 1)
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk, sum := make([]byte, 1<<20), 0
		for range 100 {
			n, err := w.Write(chunk)
			if sum += n; err != nil {
				break
			}
		}
		written <- sum
	})
	quiet(t, ns, "team", r.URL)
	d := delivery(ns, "d-1", "team")
	create(t, d)
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)
	// What was written is in the sockets' buffers.
	NewWithT(t).Expect(<-written).To(BeNumerically("<", 50<<20))
}

func TestPrivateAddressesAreRefusedUnlessAllowed(t *testing.T) {
	start(t, Settings{})
	ns, g := namespace(t), NewWithT(t)
	r := newReceiver(t, answers(http.StatusOK))
	for name, url := range map[string]string{
		"address": r.URL,
		"name":    strings.Replace(r.URL, "127.0.0.1", "localhost", 1),
		"mapped":  strings.Replace(r.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1),
	} {
		quiet(t, ns, name, url)
		d := delivery(ns, name, name)
		create(t, d)
		waitFor(t, d, v1alpha1.WebhookDeliveryFailed, 1)
		g.Expect(d.Status.Attempts[0].Message).To(ContainSubstring("--webhook-allow-cidr"), url)
	}
	g.Expect(r.got()).To(BeEmpty())
}

func TestARotatedSecretSignsBesideTheNewOne(t *testing.T) {
	start(t, loopback)
	ns, g := namespace(t), NewWithT(t)
	r := newReceiver(t, answers(http.StatusOK))
	endpoint := quiet(t, ns, "team", r.URL)
	older := secretOf(t, endpoint)
	first := delivery(ns, "d-1", "team")
	create(t, first)
	waitFor(t, first, v1alpha1.WebhookDeliveryDelivered, 1)

	_, newer := signatures.NewSecret()
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team-webhook"}}
	rotate := func(data map[string]string) {
		change(t, secret, func(s *corev1.Secret) {
			s.Data, s.StringData = nil, data
		})
	}
	rotate(map[string]string{
		v1alpha1.WebhookSecretKey:                  newer,
		v1alpha1.WebhookPreviousSecretKey:          older,
		v1alpha1.WebhookPreviousSecretExpiresAtKey: end.Format(time.RFC3339),
	})
	eventually(t, func(g Gomega) { g.Expect(get(t, g, endpoint).Status.Secrets).To(HaveLen(2)) })
	// What was signed before learns of its secret's end.
	eventually(t, func(g Gomega) {
		expiry := get(t, g, first).Status.Attempts[0].Signatures[0].ExpiresAt
		g.Expect(expiry).NotTo(BeNil())
		g.Expect(expiry.UTC()).To(Equal(end))
	})

	second := delivery(ns, "d-2", "team")
	create(t, second)
	waitFor(t, second, v1alpha1.WebhookDeliveryDelivered, 1)
	got := r.got()
	g.Expect(got).To(HaveLen(2))
	g.Expect(verifies(got[1], newer)).To(Equal(0), "the newest signs first")
	g.Expect(verifies(got[1], older)).To(Equal(1))
	signed := strings.Fields(got[1].header.Get("webhook-signature"))
	g.Expect(webhooks.Verify(second, got[1].body, signed[1], time.Now())).To(Equal(webhooks.Verified))
	g.Expect(webhooks.Verify(second, got[1].body, signed[1], end)).To(Equal(webhooks.SecretExpired))
	g.Expect(webhooks.Verify(second, got[1].body, strings.Join(signed, " "), end)).To(Equal(webhooks.Verified))

	// Without an overlap the secret ends when it is replaced.
	rotate(map[string]string{v1alpha1.WebhookSecretKey: older})
	eventually(t, func(g Gomega) {
		get(t, g, second)
		g.Expect(webhooks.Verify(second, got[1].body, signed[0], time.Now())).To(Equal(webhooks.SecretExpired))
		g.Expect(webhooks.Verify(second, got[1].body, signed[1], time.Now())).To(Equal(webhooks.Verified))
	})
}

func TestADisabledEndpointIsSentNothingUntilItIsEnabled(t *testing.T) {
	start(t, loopback)
	ns, g := namespace(t), NewWithT(t)
	r := newReceiver(t, answers(http.StatusOK))
	endpoint := quiet(t, ns, "team", r.URL)
	change(t, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = true })
	eventually(t, func(g Gomega) {
		g.Expect(readyReason(get(t, g, endpoint).Status.Conditions)).To(Equal(v1alpha1.ReasonEndpointDisabled))
	})
	d := delivery(ns, "d-1", "team")
	create(t, d)
	eventually(t, func(g Gomega) {
		g.Expect(readyReason(get(t, g, d).Status.Conditions)).To(Equal(v1alpha1.ReasonEndpointDisabled))
	})
	g.Expect(d.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryPending))
	g.Expect(d.Status.Attempts).To(BeEmpty())
	g.Expect(r.got()).To(BeEmpty())

	change(t, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = false })
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)
	g.Expect(r.got()).To(HaveLen(1))
}

func TestADeliveryWhoseEndpointIsGone(t *testing.T) {
	start(t, loopback)
	ns, g := namespace(t), NewWithT(t)
	r := newReceiver(t, answers(http.StatusOK))
	endpoint := quiet(t, ns, "team", r.URL)
	change(t, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = true })
	former := endpoint.UID
	g.Expect(env.Client.Delete(t.Context(), endpoint)).To(Succeed())

	bound := delivery(ns, "bound", "team")
	bound.Spec.EndpointRef.UID = string(former)
	unbound := delivery(ns, "unbound", "team")
	create(t, bound, unbound)
	waitFor(t, bound, v1alpha1.WebhookDeliveryFailed, 0)
	g.Expect(readyReason(bound.Status.Conditions)).To(Equal(v1alpha1.ReasonEndpointNotFound))
	eventually(t, func(g Gomega) {
		g.Expect(readyReason(get(t, g, unbound).Status.Conditions)).To(Equal(v1alpha1.ReasonEndpointNotFound))
	})
	g.Expect(unbound.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryPending))

	// Another of that name gets what is for the name, and nothing that was for the first.
	quiet(t, ns, "team", r.URL)
	waitFor(t, unbound, v1alpha1.WebhookDeliveryDelivered, 1)
	waitFor(t, bound, v1alpha1.WebhookDeliveryFailed, 0)
	g.Expect(r.got()).To(HaveLen(1))
}

// started is the record that a controller leaves that dies between its two writes.
func started(t *testing.T, d *v1alpha1.WebhookDelivery, attempts int) {
	t.Helper()
	for i := range attempts {
		outcome := v1alpha1.WebhookAttemptUnknown
		if i == attempts-1 {
			outcome = v1alpha1.WebhookAttemptStarted
		}
		d.Status.Attempts = append(d.Status.Attempts, v1alpha1.WebhookAttempt{
			At: metav1.Now(), Outcome: outcome,
			Signatures: []v1alpha1.WebhookSignature{{Digest: strings.Repeat("0", 64), SecretID: "x"}},
		})
	}
	d.Status.Phase = v1alpha1.WebhookDeliveryPending
	if err := asController(t).Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func TestAnAttemptOfUnknownOutcomeIsRepeatedOnce(t *testing.T) {
	ns, g := namespace(t), NewWithT(t)
	r := newReceiver(t, answers(http.StatusOK))
	quiet(t, ns, "team", r.URL)
	once, twice := delivery(ns, "once", "team"), delivery(ns, "twice", "team")
	create(t, once, twice)
	started(t, once, 1)
	started(t, twice, 2)

	start(t, loopback)
	waitFor(t, once, v1alpha1.WebhookDeliveryDelivered, 2)
	waitFor(t, twice, v1alpha1.WebhookDeliveryFailed, 2)
	g.Expect(once.Status.Attempts[0].Outcome).To(Equal(v1alpha1.WebhookAttemptUnknown))
	g.Expect(once.Status.Attempts[0].Message).To(ContainSubstring("may have it"))
	g.Expect(twice.Status.Attempts[1].Outcome).To(Equal(v1alpha1.WebhookAttemptUnknown))
	g.Expect(r.got()).To(HaveLen(1))
	g.Expect(r.got()[0].header.Get("webhook-id")).To(Equal(once.Spec.Event.ID))
}

// A controller that is stopped waits for the answer to what it has sent, and another one that
// starts sends nothing again.
func TestAStopLosesNoAnswerAndARestartSendsNothingAgain(t *testing.T) {
	stop := start(t, loopback)
	ns, g := namespace(t), NewWithT(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	r := newReceiver(t, func(_ http.ResponseWriter, request *http.Request) {
		close(arrived)
		hold(request, release)
	})
	quiet(t, ns, "team", r.URL)
	d := delivery(ns, "d-1", "team")
	create(t, d)
	<-arrived
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	close(release)
	<-stopped
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)

	start(t, loopback)
	marker := delivery(ns, "d-2", "absent")
	create(t, marker)
	eventually(t, func(g Gomega) {
		g.Expect(get(t, g, marker).Status.Phase).To(Equal(v1alpha1.WebhookDeliveryPending))
	})
	g.Expect(r.got()).To(HaveLen(1))
}

func TestASlowEndpointDelaysNoOther(t *testing.T) {
	start(t, loopback)
	ns, g := namespace(t), NewWithT(t)
	release := make(chan struct{})
	slow := newReceiver(t, func(_ http.ResponseWriter, request *http.Request) { hold(request, release) })
	fast := newReceiver(t, answers(http.StatusOK))
	quiet(t, ns, "slow", slow.URL)
	quiet(t, ns, "fast", fast.URL)
	var waiting []*v1alpha1.WebhookDelivery
	for i := range 3 * endpointLimit {
		d := delivery(ns, "slow-"+strconv.Itoa(i), "slow")
		create(t, d)
		waiting = append(waiting, d)
	}
	eventually(t, func(g Gomega) { g.Expect(slow.got()).To(HaveLen(endpointLimit)) })
	d := delivery(ns, "fast-1", "fast")
	create(t, d)
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)
	g.Expect(slow.got()).To(HaveLen(endpointLimit), "no more at a time than the limit")
	close(release)
	for _, d := range waiting {
		waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)
	}
	g.Expect(slow.got()).To(HaveLen(3 * endpointLimit))
}

func TestADeliveryThatIsDeletedWhileItIsSentLeavesNothingBehind(t *testing.T) {
	start(t, loopback)
	ns, g := namespace(t), NewWithT(t)
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	r := newReceiver(t, func(_ http.ResponseWriter, request *http.Request) {
		arrived <- struct{}{}
		hold(request, release)
	})
	quiet(t, ns, "team", r.URL)
	d := delivery(ns, "d-1", "team")
	create(t, d)
	<-arrived
	g.Expect(env.Client.Delete(t.Context(), d)).To(Succeed())
	again := delivery(ns, "d-1", "team")
	create(t, again)
	close(release)
	waitFor(t, again, v1alpha1.WebhookDeliveryDelivered, 1)
	g.Expect(r.got()).To(HaveLen(2), "the one that was deleted, and the other of that name")
}

// A label that someone sets meanwhile must not cost the record.
func TestAnAnswerIsRecordedThoughTheDeliveryHasChanged(t *testing.T) {
	start(t, loopback)
	ns, g := namespace(t), NewWithT(t)
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	r := newReceiver(t, func(_ http.ResponseWriter, request *http.Request) {
		arrived <- struct{}{}
		hold(request, release)
	})
	quiet(t, ns, "team", r.URL)
	d := delivery(ns, "d-1", "team")
	create(t, d)
	<-arrived
	g.Expect(env.Client.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"true"}}}`)))).To(Succeed())
	close(release)
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)
	g.Expect(r.got()).To(HaveLen(1))
}
