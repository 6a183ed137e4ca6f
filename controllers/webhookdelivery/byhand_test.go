package webhookdelivery

import (
	"context"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// byHand is a controller whose steps and clock are controlled by the test, on a real API server.
type byHand struct {
	*Reconciler
	t     *testing.T
	clock *clocktesting.FakeClock
}

func newByHand(t *testing.T, settings Settings) *byHand {
	t.Helper()
	if settings.Timeout == 0 {
		settings.Timeout = DefaultTimeout
	}
	c, clock := env.AsController(t), clocktesting.NewFakeClock(time.Now())
	return &byHand{t: t, clock: clock, Reconciler: &Reconciler{
		Base:       reconcile.Base{Client: c, Live: c, Recorder: events.NewFakeRecorder(1000), Clock: clock},
		sender:     newSender(settings),
		dispatcher: newDispatcher(standardLimits, clock),
	}}
}

// reconcile reconciles the delivery and makes the attempt that this submits, if any.
func (h *byHand) reconcile(d *v1alpha1.WebhookDelivery) ctrl.Result {
	h.t.Helper()
	key := client.ObjectKeyFromObject(d)
	result, err := h.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: key})
	if err == nil && h.dispatcher.isBusy(key) {
		h.dispatcher = newDispatcher(standardLimits, h.clock)
		if _, err = h.attempt(h.t.Context(), key); err == nil {
			result, err = h.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: key})
		}
	}
	harness.Must(h.t, err)
	testenv.Get(h.t, NewWithT(h.t), env, d)
	return result
}

// ready creates an endpoint in the state in which its controller leaves it.
func (h *byHand) ready(namespace, name, url string) *v1alpha1.WebhookEndpoint {
	h.t.Helper()
	signing, text := signatures.NewSecret()
	endpoint := builder.WebhookEndpoint(name).In(namespace).URL(url).Build()
	env.Create(h.t, endpoint, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		StringData: map[string]string{v1alpha1.WebhookSecretKey: text},
	})
	testenv.ChangeStatus(h.t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) {
		e.Status.ObservedGeneration = endpoint.Generation
		e.Status.SecretRef = &v1alpha1.SecretReference{Name: v1alpha1.ResourceName(name)}
		e.Status.Secrets = []v1alpha1.WebhookSecretStatus{{ID: signing.ID()}}
	})
	return endpoint
}

func (h *byHand) delivery(namespace, name, endpoint string) *v1alpha1.WebhookDelivery {
	h.t.Helper()
	return testenv.Create(h.t, env, delivery(namespace, name, endpoint))
}

// Nobody is to conclude that no attempt is planned.
func TestWhatWaitsForItsTurnShowsWhenItWasDue(t *testing.T) {
	s := newScope()
	s.Now, s.Object.CreationTimestamp = noon.Add(time.Hour), metav1.NewTime(noon)
	s.endpoint = builder.WebhookEndpoint("team").Build()
	s.endpoint.Status.SecretRef = &v1alpha1.SecretReference{Name: "team"}
	if got := decide(s); got.outlook != outlookDue || got.next != nil {
		t.Errorf("before the first attempt: %+v", got)
	}
	s.Status.Attempts = []v1alpha1.WebhookAttempt{{At: *at(0), Outcome: v1alpha1.WebhookAttemptFailed}}
	due, _ := webhooks.NextAttempt(s.Object)
	if got := decide(s); got.outlook != outlookDue || got.next == nil || !got.next.Equal(&v1alpha1.Time{Time: due}) {
		t.Errorf("got %+v, want it due at %s", got, due)
	}
}

// The schedule from the first attempt to the last, one step of the clock per attempt.
func TestADeliveryIsRetriedByTheSchedule(t *testing.T) {
	h, ns, g := newByHand(t, loopback), namespace(t), NewWithT(t)
	r := newReceiver(t, answers(http.StatusInternalServerError))
	h.ready(ns, "team", r.URL)
	d := h.delivery(ns, "d-1", "team")
	waits := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour}
	for i, wait := range waits {
		result := h.reconcile(d)
		g.Expect(d.Status.Attempts).To(HaveLen(i + 1))
		g.Expect(d.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryPending))
		g.Expect(d.Status.FinishedAt).To(BeNil())
		left := d.Status.NextAttemptAt.Sub(h.clock.Now())
		g.Expect(left).To(And(BeNumerically(">=", wait), BeNumerically("<=", wait+wait/5+time.Second)), "after attempt %d", i+1)
		g.Expect(result.RequeueAfter).To(BeNumerically("~", min(left, reconcile.MaxWait), time.Second),
			"it reads the clock again, in case that was put forward")

		h.clock.Step(left - time.Second)
		h.reconcile(d)
		g.Expect(r.got()).To(HaveLen(i+1), "a second early")
		h.clock.Step(time.Second)
	}
	h.reconcile(d)
	g.Expect(d.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryFailed))
	g.Expect(d.Status.Attempts).To(HaveLen(webhooks.AttemptsPerRound))
	g.Expect(d.Status.NextAttemptAt).To(BeNil())
	g.Expect(d.Status.FinishedAt.Time).To(BeTemporally("~", h.clock.Now(), time.Second))
	g.Expect(v1alpha1.IsConditionTrue(d.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
	h.clock.Step(30 * 24 * time.Hour)
	h.reconcile(d)
	g.Expect(r.got()).To(HaveLen(webhooks.AttemptsPerRound), "there is an end")
	for _, m := range r.got() {
		g.Expect(m.header.Get("webhook-id")).To(Equal(d.Spec.Event.ID))
		g.Expect(webhooks.Verify(d, m.body, m.header.Get("webhook-signature"), h.clock.Now())).To(Equal(webhooks.Verified))
	}
}

// With a receiver that hangs, a delivery may wait for its next turn for hours.
func TestASignatureExpiresWhileItsDeliveryWaitsForItsTurn(t *testing.T) {
	rotate := func(t *testing.T, endpoint *v1alpha1.WebhookEndpoint, at time.Time) {
		testenv.ChangeStatus(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) {
			e.Status.Secrets[0].ExpiresAt = new(v1alpha1.NewTime(at))
		})
	}
	for _, c := range []struct {
		reason string
		end    func(*testing.T, *v1alpha1.WebhookEndpoint, *v1alpha1.WebhookDelivery, time.Time)
	}{
		{"the secret was rotated", func(t *testing.T, e *v1alpha1.WebhookEndpoint, _ *v1alpha1.WebhookDelivery, now time.Time) {
			rotate(t, e, now)
		}},
		{"the endpoint was deleted", func(t *testing.T, e *v1alpha1.WebhookEndpoint, _ *v1alpha1.WebhookDelivery, _ time.Time) {
			harness.Must(t, env.Client.Delete(t.Context(), e))
		}},
		{"a redelivery was requested, which waits for the endpoint", func(t *testing.T, e *v1alpha1.WebhookEndpoint, d *v1alpha1.WebhookDelivery, now time.Time) {
			testenv.Change(t, env, e, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = true })
			rotate(t, e, now)
			testenv.Change(t, env, d, func(d *v1alpha1.WebhookDelivery) {
				metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.RedeliverAnnotation, "1")
			})
		}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			h, ns, g := newByHand(t, loopback), namespace(t), NewWithT(t)
			r := newReceiver(t, answers(http.StatusInternalServerError))
			endpoint := h.ready(ns, "team", r.URL)
			d := delivery(ns, "d-1", "team")
			d.Spec.EndpointRef.UID = string(endpoint.UID)
			env.Create(t, d)
			h.reconcile(d)
			sent, key := r.got()[0], client.ObjectKeyFromObject(d)
			verify := func() webhooks.VerificationStatus {
				return webhooks.Verify(d, sent.body, sent.header.Get("webhook-signature"), h.clock.Now())
			}
			g.Expect(verify()).To(Equal(webhooks.Verified))

			h.dispatcher.submit(key, client.ObjectKeyFromObject(endpoint), healthFailing, false)
			c.end(t, endpoint, d, h.clock.Now())
			_, err := h.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			g.Expect(err).NotTo(HaveOccurred())
			testenv.Get(t, g, env, d)
			g.Expect(verify()).To(Equal(webhooks.SecretExpired))
			g.Expect(d.Status.Attempts).To(HaveLen(1))
			g.Expect(d.Status.Redelivery).To(BeNil(), "its turn takes it up")
		})
	}
}

// Whatever a receiver does, the attempt ends with a message, is followed by another, and is cheap.
func TestEveryFailureIsRetried(t *testing.T) {
	elsewhere := newReceiver(t, answers(http.StatusOK))
	// A response of 100 MB, which is never read to its end.
	long := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			chunk := make([]byte, 1<<20)
			for range 100 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	cases := []struct {
		reason  string
		answer  http.HandlerFunc
		code    int32
		message string
		timeout time.Duration // 0 for the default
	}{
		{"an error of the receiver", answers(http.StatusInternalServerError), 500, "other than 200 to 299", 0},
		{"too many requests", answers(http.StatusTooManyRequests), 429, "other than 200 to 299", 0},
		{"a redirect is not followed", func(w http.ResponseWriter, request *http.Request) {
			http.Redirect(w, request, elsewhere.URL, http.StatusTemporaryRedirect)
		}, 307, "redirect", 0},
		{"no answer in time", func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }, 0, "no answer within 1s", time.Second},
		{"a connection that is closed", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, "closed the connection", 0},
		{"100 MB", long(http.StatusBadGateway), 502, "other than 200 to 299", 0},
		{"a header without an end", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("x-long", strings.Repeat("x", 1<<20))
			w.WriteHeader(http.StatusOK)
		}, 0, "could not be read", 0},
	}
	for i, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			h := newByHand(t, Settings{Allowed: loopback.Allowed, Timeout: c.timeout})
			ns, g := namespace(t), NewWithT(t)
			r := newReceiver(t, c.answer)
			endpoint := h.ready(ns, "team", r.URL+"/path-that-is-a-credential")
			d := h.delivery(ns, "d-"+strconv.Itoa(i), "team")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			h.reconcile(d)
			runtime.ReadMemStats(&after)
			g.Expect(after.TotalAlloc-before.TotalAlloc).To(BeNumerically("<", 50<<20), "bytes for one attempt, the receiver's included")

			g.Expect(d.Status.Attempts).To(HaveLen(1))
			attempt := d.Status.Attempts[0]
			g.Expect(attempt.Outcome).To(Equal(v1alpha1.WebhookAttemptFailed))
			g.Expect(attempt.Code).To(Equal(c.code))
			g.Expect(attempt.Message).To(ContainSubstring(c.message))
			g.Expect(attempt.Message).NotTo(ContainSubstring("credential"))
			g.Expect(attempt.EndedAt).NotTo(BeNil())
			status := testenv.Get(t, g, env, endpoint).Status
			g.Expect(status.ConsecutiveFailures).To(Equal(int32(1)))
			g.Expect(status.FailingSince.Time).To(BeTemporally("==", attempt.At.Time))

			h.clock.SetTime(d.Status.NextAttemptAt.Time)
			h.reconcile(d)
			g.Expect(d.Status.Attempts).To(HaveLen(2))
			g.Expect(r.got()).To(HaveLen(2))
		})
	}
	NewWithT(t).Expect(elsewhere.got()).To(BeEmpty(), "the redirect was followed")
}

func TestALongAnswerIsNotRead(t *testing.T) {
	h, ns, g := newByHand(t, loopback), namespace(t), NewWithT(t)
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
	h.ready(ns, "team", r.URL)
	d := h.delivery(ns, "d-1", "team")
	h.reconcile(d)
	g.Expect(d.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryDelivered))
	// Only what fits into the sockets' buffers was written.
	g.Expect(<-written).To(BeNumerically("<", 50<<20))
}

// retry-after postpones the next attempt, and is still effective after a restart because it is
// stored.
func TestAReceiverMayPutTheNextAttemptOff(t *testing.T) {
	h, ns, g := newByHand(t, loopback), namespace(t), NewWithT(t)
	asked := "3600"
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("retry-after", asked)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	h.ready(ns, "team", r.URL)
	d := h.delivery(ns, "d-1", "team")
	h.reconcile(d)
	g.Expect(d.Status.NextAttemptAt.Time).To(BeTemporally("~", h.clock.Now().Add(time.Hour), 2*time.Second))
	g.Expect(d.Status.Attempts[0].RetryAt.Time).To(Equal(d.Status.NextAttemptAt.Time))

	again := newByHand(t, loopback)
	again.clock.SetTime(h.clock.Now().Add(59 * time.Minute))
	again.reconcile(d)
	g.Expect(r.got()).To(HaveLen(1), "another controller keeps to it")
	again.clock.Step(2 * time.Minute)
	asked = "1"
	again.reconcile(d)
	g.Expect(r.got()).To(HaveLen(2))
	g.Expect(d.Status.NextAttemptAt.Sub(again.clock.Now())).To(BeNumerically(">=", 5*time.Minute), "never sooner than the schedule")
}

// After five days without a success, once a delivery has used up its attempts, nothing more is sent, neither waiting
// nor new deliveries.
func TestAnEndpointThatFailsForFiveDaysIsSentNothingMore(t *testing.T) {
	h, ns, g := newByHand(t, loopback), namespace(t), NewWithT(t)
	status := http.StatusInternalServerError
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	endpoint := h.ready(ns, "team", r.URL)
	since := h.clock.Now()
	// attempts makes attempts until the delivery has had n.
	attempts := func(d *v1alpha1.WebhookDelivery, n int) {
		for h.reconcile(d); len(d.Status.Attempts) < n; h.reconcile(d) {
			g.Expect(d.Status.NextAttemptAt).NotTo(BeNil(), "after attempt %d", len(d.Status.Attempts))
			h.clock.SetTime(d.Status.NextAttemptAt.Time)
		}
	}
	first := h.delivery(ns, "first", "team")
	attempts(first, webhooks.AttemptsPerRound-1)
	h.clock.SetTime(since.Add(5*24*time.Hour - 2*time.Second))
	attempts(first, webhooks.AttemptsPerRound)
	g.Expect(testenv.Get(t, g, env, endpoint).IsDisabled()).To(BeFalse(), "a moment early")
	h.clock.SetTime(since.Add(5 * 24 * time.Hour))
	second := h.delivery(ns, "second", "team")
	attempts(second, webhooks.AttemptsPerRound-1)
	g.Expect(testenv.Get(t, g, env, endpoint).IsDisabled()).To(BeFalse(), "it may succeed yet")
	attempts(second, webhooks.AttemptsPerRound)
	g.Expect(testenv.Get(t, g, env, endpoint).Status.Disabled.Reason).To(Equal(v1alpha1.WebhookDisabledFailingTooLong))
	last := h.delivery(ns, "third", "team")
	h.reconcile(last)
	g.Expect(conditions.ReadyReason(last.Status.Conditions)).To(Equal(v1alpha1.ReasonEndpointDisabled))

	// Any change of the spec enables it again, for five more days.
	status = http.StatusOK
	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Batch = v1alpha1.WebhookBatchPerScan })
	h.clock.Step(time.Minute)
	h.reconcile(last)
	g.Expect(last.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryDelivered))
	g.Expect(testenv.Get(t, g, env, endpoint).Status.FailingSince).To(BeNil())
}

// Else its deliveries would stay for good, and a year later the receiver would get thousands of old events.
func TestADeliveryWaitsThirtyDaysForAnEndpointThatIsGone(t *testing.T) {
	h, ns, g := newByHand(t, loopback), namespace(t), NewWithT(t)
	status := http.StatusGone
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	endpoint := h.ready(ns, "team", r.URL)
	tried, waits := h.delivery(ns, "tried", "team"), h.delivery(ns, "waits", "team")
	h.reconcile(tried)
	disabled := testenv.Get(t, g, env, endpoint).Status.Disabled
	for _, d := range []*v1alpha1.WebhookDelivery{tried, waits} {
		h.clock.SetTime(disabled.At.Add(30*24*time.Hour - time.Minute))
		g.Expect(h.reconcile(d).RequeueAfter).To(BeNumerically("~", time.Minute, 2*time.Second))
		g.Expect(d.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryPending))
		h.clock.Step(time.Minute)
		h.reconcile(d)
		g.Expect(d.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryFailed))
		g.Expect(d.Status.FinishedAt).NotTo(BeNil())
		g.Expect(conditions.ReadyReason(d.Status.Conditions)).To(Equal(v1alpha1.ReasonEndpointDisabled))
	}

	again := func(value string) {
		testenv.Change(t, env, waits, func(d *v1alpha1.WebhookDelivery) {
			d.Annotations = map[string]string{v1alpha1.RedeliverAnnotation: value}
		})
		h.reconcile(waits)
	}
	again("while it is disabled")
	g.Expect(waits.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryPending), "a redelivery waits as long")
	h.clock.Step(30 * 24 * time.Hour)
	h.reconcile(waits)
	g.Expect(waits.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryFailed))
	status = http.StatusOK
	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Batch = v1alpha1.WebhookBatchPerScan })
	h.reconcile(waits)
	g.Expect(waits.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryFailed), "what has failed is not sent by itself")
	g.Expect(r.got()).To(HaveLen(1))
	again("now")
	g.Expect(waits.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryDelivered))
}

// What has failed is not sent by itself once the cache shows that the endpoint was enabled.
func TestADeliveryIsNotGivenUpBecauseTheCacheLags(t *testing.T) {
	h, ns, g := newByHand(t, loopback), namespace(t), NewWithT(t)
	endpoint := h.ready(ns, "team", newReceiver(t, answers(http.StatusOK)).URL)
	testenv.ChangeStatus(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) {
		e.Status.Disabled = &v1alpha1.WebhookDisabled{
			At: v1alpha1.NewTime(h.clock.Now()), Reason: v1alpha1.WebhookDisabledGone, Message: "why", Generation: e.Generation,
		}
	})
	cached := testenv.Get(t, g, env, endpoint).DeepCopy()
	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Batch = v1alpha1.WebhookBatchPerScan })
	h.Client = interceptor.NewClient(env.AsController(t), interceptor.Funcs{Get: func(ctx context.Context,
		c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
		if e, isEndpoint := into.(*v1alpha1.WebhookEndpoint); isEndpoint {
			cached.DeepCopyInto(e)
			return nil
		}
		return c.Get(ctx, key, into, options...)
	}})
	d := h.delivery(ns, "d-1", "team")
	h.clock.Step(30 * 24 * time.Hour)
	h.reconcile(d)
	g.Expect(d.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryDelivered))
}

// An attempt that began later may have failed sooner.
func TestASuccessIsCountedIfAFailureWasCountedMeanwhile(t *testing.T) {
	h, ns, g := newByHand(t, loopback), namespace(t), NewWithT(t)
	endpoint := h.ready(ns, "team", "http://127.0.0.1:9")
	recordSuccess(t, endpoint)
	sent := endpoint.DeepCopy()
	recordFailure(t, endpoint)
	made := attempted{result: result{outcome: v1alpha1.WebhookAttemptSucceeded}, at: h.clock.Now(), generation: sent.Generation}
	g.Expect(h.recordAtEndpoint(t.Context(), sent, made)).To(Succeed())
	g.Expect(testenv.Get(t, g, env, endpoint).Status.ConsecutiveFailures).To(BeZero())
}

// A crash between the two records of an attempt's outcome loses neither a success, which would send
// the event again, nor the failure of an endpoint or its 410 Gone.
func TestACrashBetweenTheRecordsOfAnAttemptLosesTheLesserOne(t *testing.T) {
	counted := func() float64 {
		return testutil.ToFloat64(attemptsMade.WithLabelValues("succeeded")) +
			testutil.ToFloat64(attemptsMade.WithLabelValues("failed"))
	}
	for _, c := range []struct {
		reason  string
		status  int
		outcome v1alpha1.WebhookAttemptOutcome
		counted float64
	}{
		{"a success", http.StatusOK, v1alpha1.WebhookAttemptSucceeded, 1},
		{"a failure", http.StatusInternalServerError, v1alpha1.WebhookAttemptStarted, 0},
		{"gone", http.StatusGone, v1alpha1.WebhookAttemptStarted, 0},
	} {
		t.Run(c.reason, func(t *testing.T) {
			h, ns, g := newByHand(t, loopback), namespace(t), NewWithT(t)
			endpoint := h.ready(ns, "team", newReceiver(t, answers(c.status)).URL)
			d := h.delivery(ns, "d-1", "team")
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			before := counted()
			// The first write records the start of the attempt, the second its outcome; the third is
			// lost.
			writes := 0
			h.Client = interceptor.NewClient(env.AsController(t), interceptor.Funcs{SubResourcePatch: func(
				ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch,
				options ...client.SubResourcePatchOption) error {
				if writes++; writes > 2 {
					kill()
					return ctx.Err()
				}
				return c.SubResource(name).Patch(ctx, object, patch, options...)
			}})
			_, err := h.attempt(ctx, client.ObjectKeyFromObject(d))
			g.Expect(err).To(HaveOccurred())

			g.Expect(testenv.Get(t, g, env, d).Status.Attempts[0].Outcome).To(Equal(c.outcome))
			g.Expect(counted()-before).To(Equal(c.counted), "the next controller counts what is not recorded")
			status := testenv.Get(t, g, env, endpoint).Status
			if c.outcome == v1alpha1.WebhookAttemptSucceeded {
				g.Expect(status.LastSuccessAt).To(BeNil())
				return
			}
			g.Expect(status.ConsecutiveFailures).To(Equal(int32(1)))
			g.Expect(status.FailingSince).NotTo(BeNil())
			g.Expect(endpoint.IsDisabled()).To(Equal(c.status == http.StatusGone))
		})
	}
}
