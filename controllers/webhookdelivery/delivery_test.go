package webhookdelivery

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/webhookendpoint"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestADeliveryIsSignedSentOnceAndRecorded(t *testing.T) {
	shared.Start(t, env)
	ns, g := namespace(t), NewWithT(t)
	r := newReceiver(t, answers(http.StatusNoContent))
	endpoint := endpointWithoutPing(t, ns, "team", r.URL+"/hook?token=in-the-url")
	d := testenv.Create(t, env, delivery(ns, "d-1", "team"))
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
	g.Expect(conditions.ReadyReason(d.Status.Conditions)).To(Equal(v1alpha1.ReasonDelivered))

	signature := got[0].header.Get("webhook-signature")
	g.Expect(webhooks.Verify(d, got[0].body, signature, time.Now())).To(Equal(webhooks.Verified))
	g.Expect(webhooks.Verify(d, got[0].body+" ", signature, time.Now())).To(Equal(webhooks.PayloadMismatch))

	harness.Eventually(t, func(g Gomega) {
		status := testenv.Get(t, g, env, endpoint).Status
		g.Expect(status.LastSuccessAt).NotTo(BeNil())
		g.Expect(status.ConsecutiveFailures).To(BeZero())
	})
	// No stored object contains the secret or a signature.
	for _, object := range []client.Object{d, endpoint} {
		stored := string(harness.JSON(t, object))
		g.Expect(stored).NotTo(ContainSubstring(strings.TrimPrefix(secretOf(t, endpoint), "whsec_")))
		g.Expect(stored).NotTo(ContainSubstring(strings.TrimPrefix(signature, "v1,")))
	}
}

// After a crash only the status at the time of the request would be left.
func TestTheAttemptIsRecordedBeforeTheRequestLeaves(t *testing.T) {
	shared.Start(t, env)
	ns := namespace(t)
	d := delivery(ns, "d-1", "team")
	// The receiver runs concurrently with this test, which writes to d.
	key := client.ObjectKeyFromObject(d)
	seen := make(chan v1alpha1.WebhookDeliveryStatus, 1)
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {
		stored := &v1alpha1.WebhookDelivery{}
		harness.NoError(t, "read the delivery", env.Client.Get(t.Context(), key, stored))
		seen <- stored.Status
	})
	endpointWithoutPing(t, ns, "team", r.URL)
	env.Create(t, d)
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)

	g := NewWithT(t)
	status := <-seen
	g.Expect(status.Phase).To(Equal(v1alpha1.WebhookDeliveryPending))
	g.Expect(status.Attempts).To(HaveLen(1))
	g.Expect(status.Attempts[0].Outcome).To(Equal(v1alpha1.WebhookAttemptStarted))
	g.Expect(status.Attempts[0].Signatures[0].Digest).To(Equal(d.Status.Attempts[0].Signatures[0].Digest))
	g.Expect(status.Attempts[0].Signatures[0].Digest).To(HaveLen(64))
}

func TestARotatedSecretSignsBesideTheNewOne(t *testing.T) {
	shared.Start(t, env)
	ns, g := namespace(t), NewWithT(t)
	r := newReceiver(t, answers(http.StatusOK))
	endpoint := endpointWithoutPing(t, ns, "team", r.URL)
	older := secretOf(t, endpoint)
	first := testenv.Create(t, env, delivery(ns, "d-1", "team"))
	waitFor(t, first, v1alpha1.WebhookDeliveryDelivered, 1)

	_, newer := signatures.NewSecret()
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team-webhook"}}
	rotate := func(data map[string]string) {
		testenv.Change(t, env, secret, func(s *corev1.Secret) {
			s.Data, s.StringData = nil, data
		})
	}
	rotate(map[string]string{
		v1alpha1.WebhookSecretKey:                  newer,
		v1alpha1.WebhookPreviousSecretKey:          older,
		v1alpha1.WebhookPreviousSecretExpiresAtKey: end.Format(time.RFC3339),
	})
	harness.Eventually(t, func(g Gomega) { g.Expect(testenv.Get(t, g, env, endpoint).Status.Secrets).To(HaveLen(2)) })
	// Earlier signatures get the expiry of their secret.
	harness.Eventually(t, func(g Gomega) {
		expiry := testenv.Get(t, g, env, first).Status.Attempts[0].Signatures[0].ExpiresAt
		g.Expect(expiry).NotTo(BeNil())
		g.Expect(expiry.UTC()).To(Equal(end))
	})

	second := testenv.Create(t, env, delivery(ns, "d-2", "team"))
	waitFor(t, second, v1alpha1.WebhookDeliveryDelivered, 1)
	got := r.got()
	g.Expect(got).To(HaveLen(2))
	g.Expect(verifies(got[1], newer)).To(Equal(0), "the newest signs first")
	g.Expect(verifies(got[1], older)).To(Equal(1))
	signed := strings.Fields(got[1].header.Get("webhook-signature"))
	g.Expect(webhooks.Verify(second, got[1].body, signed[1], time.Now())).To(Equal(webhooks.Verified))
	g.Expect(webhooks.Verify(second, got[1].body, signed[1], end)).To(Equal(webhooks.SecretExpired))
	g.Expect(webhooks.Verify(second, got[1].body, strings.Join(signed, " "), end)).To(Equal(webhooks.Verified))

	// Without an overlap the secret expires when it is replaced.
	rotate(map[string]string{v1alpha1.WebhookSecretKey: older})
	harness.Eventually(t, func(g Gomega) {
		testenv.Get(t, g, env, second)
		g.Expect(webhooks.Verify(second, got[1].body, signed[0], time.Now())).To(Equal(webhooks.SecretExpired))
		g.Expect(webhooks.Verify(second, got[1].body, signed[1], time.Now())).To(Equal(webhooks.Verified))
	})
}

func TestADisabledEndpointIsSentNothingUntilItIsEnabled(t *testing.T) {
	shared.Start(t, env)
	ns, g := namespace(t), NewWithT(t)
	r := newReceiver(t, answers(http.StatusOK))
	endpoint := endpointWithoutPing(t, ns, "team", r.URL)
	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = true })
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonEndpointDisabled)
	d := testenv.Create(t, env, delivery(ns, "d-1", "team"))
	testenv.AwaitReason(t, env, d, v1alpha1.ReasonEndpointDisabled)
	g.Expect(d.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryPending))
	g.Expect(d.Status.Attempts).To(BeEmpty())
	g.Expect(r.got()).To(BeEmpty())

	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = false })
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)
	g.Expect(r.got()).To(HaveLen(1))
}

func TestADeliveryWhoseEndpointIsGone(t *testing.T) {
	shared.Start(t, env)
	ns, g := namespace(t), NewWithT(t)
	r := newReceiver(t, answers(http.StatusOK))
	endpoint := endpointWithoutPing(t, ns, "team", r.URL)
	sent := deliveredTo(t, endpoint, "sent")
	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = true })
	former := endpoint.UID
	g.Expect(env.Client.Delete(t.Context(), endpoint)).To(Succeed())
	awaitExpiry(t, sent, r.got()[0])

	bound := delivery(ns, "bound", "team")
	bound.Spec.EndpointRef.UID = string(former)
	unbound := delivery(ns, "unbound", "team")
	env.Create(t, bound, unbound)
	waitFor(t, bound, v1alpha1.WebhookDeliveryFailed, 0)
	g.Expect(conditions.ReadyReason(bound.Status.Conditions)).To(Equal(v1alpha1.ReasonEndpointNotFound))
	testenv.AwaitReason(t, env, unbound, v1alpha1.ReasonEndpointNotFound)
	g.Expect(unbound.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryPending))

	// A new endpoint of that name gets deliveries without a UID, and none that were for the first
	// endpoint.
	endpoint = endpointWithoutPing(t, ns, "team", r.URL)
	waitFor(t, unbound, v1alpha1.WebhookDeliveryDelivered, 1)
	waitFor(t, bound, v1alpha1.WebhookDeliveryFailed, 0)
	g.Expect(r.got()).To(HaveLen(2))

	again := deliveredTo(t, endpoint, "again")
	g.Expect(env.Client.Delete(t.Context(), endpoint)).To(Succeed())
	endpointWithoutPing(t, ns, "team", r.URL)
	awaitExpiry(t, again, r.got()[2])
	waitFor(t, again, v1alpha1.WebhookDeliveryDelivered, 1)
}

// deliveredTo returns a delivery that this endpoint, and no other of its name, has received.
func deliveredTo(t *testing.T, endpoint *v1alpha1.WebhookEndpoint, name string) *v1alpha1.WebhookDelivery {
	t.Helper()
	d := delivery(endpoint.Namespace, name, endpoint.Name)
	d.Spec.EndpointRef.UID = string(endpoint.UID)
	env.Create(t, d)
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)
	return d
}

// awaitExpiry waits until what was received is no longer verified.
func awaitExpiry(t *testing.T, d *v1alpha1.WebhookDelivery, got message) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		testenv.Get(t, g, env, d)
		g.Expect(webhooks.Verify(d, got.body, got.header.Get("webhook-signature"), time.Now())).To(Equal(webhooks.SecretExpired))
	})
}

// started records an attempt like a controller that dies between its two writes.
func started(t *testing.T, d *v1alpha1.WebhookDelivery, attempts int, at time.Time) {
	t.Helper()
	for i := range attempts {
		outcome := v1alpha1.WebhookAttemptUnknown
		if i == attempts-1 {
			outcome = v1alpha1.WebhookAttemptStarted
		}
		d.Status.Attempts = append(d.Status.Attempts, v1alpha1.WebhookAttempt{
			At: v1alpha1.NewTime(at), Outcome: outcome,
			Signatures: []v1alpha1.WebhookSignature{{Digest: strings.Repeat("0", 64), SecretID: "x"}},
		})
	}
	d.Status.Phase = v1alpha1.WebhookDeliveryPending
	harness.Must(t, env.AsController(t).Status().Update(t.Context(), d))
}

func TestAnAttemptOfUnknownOutcomeIsRepeatedSoon(t *testing.T) {
	ns, g := namespace(t), NewWithT(t)
	r := newReceiver(t, answers(http.StatusOK))
	endpointWithoutPing(t, ns, "team", r.URL)
	once, twice := delivery(ns, "once", "team"), delivery(ns, "twice", "team")
	env.Create(t, once, twice)
	started(t, once, 1, time.Now().Add(-time.Minute))
	started(t, twice, 2, time.Now().Add(-time.Minute))

	shared.Alone(t, env)
	waitFor(t, once, v1alpha1.WebhookDeliveryDelivered, 2)
	waitFor(t, twice, v1alpha1.WebhookDeliveryPending, 2)
	// The attempt may be closed before the endpoint's secret is known: the next one is planned after both.
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, twice).Status.NextAttemptAt).NotTo(BeNil())
	})
	g.Expect(twice.Status.NextAttemptAt.Time).To(BeTemporally(">", time.Now()), "a payload that kills the controller must not do so all the time")
	g.Expect(once.Status.Attempts[0].Outcome).To(Equal(v1alpha1.WebhookAttemptUnknown))
	g.Expect(once.Status.Attempts[0].Message).To(ContainSubstring("may have got the event"))
	g.Expect(twice.Status.Attempts[1].Outcome).To(Equal(v1alpha1.WebhookAttemptUnknown))
	g.Expect(r.got()).To(HaveLen(1))
	g.Expect(r.got()[0].header.Get("webhook-id")).To(Equal(once.Spec.Event.ID))
}

// A controller that is stopped waits for the responses to its requests, and the next one does not
// repeat them.
func TestAStopLosesNoAnswerAndARestartSendsNothingAgain(t *testing.T) {
	stop := shared.Alone(t, env)
	ns, g := namespace(t), NewWithT(t)
	r, d, release := deliveryInFlight(t, ns)
	// The answer comes after the stop has begun.
	time.AfterFunc(200*time.Millisecond, func() { close(release) })
	stop()
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)

	shared.Alone(t, env)
	marker := testenv.Create(t, env, delivery(ns, "d-2", "absent"))
	testenv.AwaitReason(t, env, marker, v1alpha1.ReasonEndpointNotFound)
	g.Expect(r.got()).To(HaveLen(1))
}

func TestADeliveryThatIsDeletedWhileItIsSentLeavesNothingBehind(t *testing.T) {
	shared.Start(t, env)
	ns, g := namespace(t), NewWithT(t)
	r, d, release := deliveryInFlight(t, ns)
	g.Expect(env.Client.Delete(t.Context(), d)).To(Succeed())
	again := testenv.Create(t, env, delivery(ns, "d-1", "team"))
	close(release)
	waitFor(t, again, v1alpha1.WebhookDeliveryDelivered, 1)
	g.Expect(r.got()).To(HaveLen(2), "the one that was deleted, and the other of that name")
}

// A user requests a redelivery with the annotation. Each value requests one, and the receiver
// recognises it by its webhook-id.
func TestARedeliveryByAnnotation(t *testing.T) {
	shared.Start(t, env)
	ns, g := namespace(t), NewWithT(t)
	r := newReceiver(t, answers(http.StatusOK))
	endpoint := endpointWithoutPing(t, ns, "team", r.URL)
	d := testenv.Create(t, env, delivery(ns, "d-1", "team"))
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)
	first := d.Status.FinishedAt
	g.Expect(first).NotTo(BeNil())

	redeliver := func(value string) {
		testenv.Change(t, env, d, func(d *v1alpha1.WebhookDelivery) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.RedeliverAnnotation, value)
		})
	}
	redeliver("2026-03-01")
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 2)
	g.Expect(d.Status.Redelivery.Value).To(Equal("2026-03-01"))
	g.Expect(d.Status.FinishedAt.Time).NotTo(BeTemporally("<", first.Time))

	// The same value, another annotation and a label request nothing.
	redeliver("2026-03-01")
	testenv.Change(t, env, d, func(d *v1alpha1.WebhookDelivery) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, "note", "seen")
		metav1.SetMetaDataLabel(&d.ObjectMeta, "seen", "true")
	})
	redeliver("2026-03-02")
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 3)

	got := r.got()
	g.Expect(got).To(HaveLen(3))
	for _, m := range got {
		g.Expect(m.header.Get("webhook-id")).To(Equal(d.Spec.Event.ID))
		g.Expect(m.body).To(Equal(d.Spec.Payload))
		g.Expect(verifies(m, secretOf(t, endpoint))).To(Equal(0))
		g.Expect(webhooks.Verify(d, m.body, m.header.Get("webhook-signature"), time.Now())).To(Equal(webhooks.Verified))
	}
}

// A redelivery that is requested during an attempt begins after it, once.
func TestARedeliveryThatIsAskedForWhileAnAttemptIsOnItsWay(t *testing.T) {
	shared.Start(t, env)
	ns, g := namespace(t), NewWithT(t)
	r, d, release := deliveryInFlight(t, ns)
	for _, value := range []string{"1", "2"} {
		testenv.Change(t, env, d, func(d *v1alpha1.WebhookDelivery) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.RedeliverAnnotation, value)
		})
	}
	harness.Eventually(t, func(g Gomega) { g.Expect(testenv.Get(t, g, env, d).Status.Redelivery).NotTo(BeNil()) })
	g.Expect(d.Status.Attempts).To(HaveLen(1), "it is confirmed before its turn")
	close(release)
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 2)
	g.Expect(d.Status.Redelivery.Value).To(Equal("2"))
	g.Expect(d.Status.Redelivery.Attempts).To(Equal(int32(1)))
	g.Expect(r.got()).To(HaveLen(2))
}

func TestAReceiverThatIsGoneIsSentNothingUntilTheSpecChanges(t *testing.T) {
	shared.Start(t, env)
	ns, g := namespace(t), NewWithT(t)
	var back atomic.Bool
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		if !back.Load() {
			w.WriteHeader(http.StatusGone)
		}
	})
	endpoint := endpointWithoutPing(t, ns, "team", r.URL)
	d := testenv.Create(t, env, delivery(ns, "d-1", "team"))
	harness.Eventually(t, func(g Gomega) {
		status := testenv.Get(t, g, env, endpoint).Status
		g.Expect(conditions.ReadyReason(status.Conditions)).To(Equal(v1alpha1.ReasonGone))
		g.Expect(v1alpha1.IsConditionTrue(status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
		g.Expect(status.Disabled.Generation).To(Equal(endpoint.Generation))
	})
	later := testenv.Create(t, env, delivery(ns, "d-2", "team"))
	for _, waits := range []*v1alpha1.WebhookDelivery{d, later} {
		testenv.AwaitReason(t, env, waits, v1alpha1.ReasonEndpointDisabled)
		g.Expect(waits.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryPending))
		g.Expect(waits.Status.NextAttemptAt).To(BeNil())
	}
	g.Expect(r.got()).To(HaveLen(1), "what it has said once need not be asked again")

	back.Store(true)
	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Events = []v1alpha1.WebhookEventPattern{"*"} })
	waitFor(t, later, v1alpha1.WebhookDeliveryDelivered, 1)
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 2)
	harness.Eventually(t, func(g Gomega) {
		status := testenv.Get(t, g, env, endpoint).Status
		g.Expect(conditions.ReadyReason(status.Conditions)).To(Equal(v1alpha1.ReasonReconciled))
		g.Expect(status.Disabled).To(BeNil())
	})
}

// Any number of endpoints that hang do not delay those that answer.
func TestDeadEndpointsDelayNoOther(t *testing.T) {
	few := loopback
	few.limits = limits{overall: 16, failing: 8, slow: 16, perEndpoint: endpointLimit, slowAfter: time.Hour, grace: stopGrace}
	few.Timeout = time.Hour // none of them ends meanwhile
	controllertest.Start(t, env, few.SetupWithManager, webhookendpoint.Settings{}.SetupWithManager)
	ns, g := namespace(t), NewWithT(t)
	release := make(chan struct{})
	defer close(release)
	dead := newReceiver(t, func(_ http.ResponseWriter, request *http.Request) { hold(request, release) })
	alive := newReceiver(t, answers(http.StatusOK))
	endpointWithoutPing(t, ns, "alive", alive.URL)
	for i := range few.limits.overall + 2 {
		name := "dead-" + strconv.Itoa(i)
		endpoint := endpointWithoutPing(t, ns, name, dead.URL)
		testenv.AwaitObserved(t, env, endpoint) // first: being enabled again resets the failures
		recordFailure(t, endpoint)
		env.Create(t, delivery(ns, name, name), delivery(ns, name+"-b", name))
	}
	harness.Eventually(t, func(g Gomega) { g.Expect(len(dead.got())).To(BeNumerically(">=", few.limits.failing/2)) }) // the half of one organization
	d := testenv.Create(t, env, delivery(ns, "alive-1", "alive"))
	waitFor(t, d, v1alpha1.WebhookDeliveryDelivered, 1)
	g.Expect(alive.got()).To(HaveLen(1))
}
