package webhookendpoint

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/ownsecret"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAnEndpointGetsASecretOfItsOwn(t *testing.T) {
	ns, g := shared.Namespace(t, env), NewWithT(t)
	endpoint := newEndpoint(t, ns)

	secret := testenv.Get(t, g, env, secretNamed(ns, "team-webhook", nil))
	g.Expect(metav1.IsControlledBy(secret, endpoint)).To(BeTrue())
	parsed, err := signatures.ParseSecret(string(secret.Data[v1alpha1.WebhookSecretKey]))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(endpoint.Status.SecretRef.Name).To(BeEquivalentTo("team-webhook"))
	g.Expect(endpoint.Status.Secrets).To(HaveLen(1))
	g.Expect(endpoint.Status.Secrets[0].ID).To(Equal(parsed.ID()))
	g.Expect(endpoint.Status.Secrets[0].ExpiresAt).To(BeNil())
}

func TestADeletedSecretIsReplacedByAFreshOne(t *testing.T) {
	ns, g := shared.Namespace(t, env), NewWithT(t)
	endpoint := newEndpoint(t, ns)
	former := endpoint.Status.Secrets[0].ID

	g.Expect(env.Client.Delete(t.Context(), secretNamed(ns, "team-webhook", nil))).To(Succeed())
	harness.Eventually(t, func(g Gomega) {
		secrets := testenv.Get(t, g, env, endpoint).Status.Secrets
		g.Expect(secrets).To(HaveLen(2))
		g.Expect(secrets[0].ID).NotTo(Equal(former))
		g.Expect(secrets[0].ExpiresAt).To(BeNil())
		g.Expect(secrets[1].ID).To(Equal(former))
		g.Expect(secrets[1].ExpiresAt).NotTo(BeNil(), "what is no longer in use has ended")
	})
}

func TestASecretThatIsNotTheEndpointsIsNotTouched(t *testing.T) {
	ns, g := shared.Namespace(t, env), NewWithT(t)
	_, text := signatures.NewSecret()
	foreign := testenv.Create(t, env, secretNamed(ns, "team-webhook", map[string]string{v1alpha1.WebhookSecretKey: text}))
	version := foreign.ResourceVersion
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint("team").In(ns).Build())
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonSecretConflict)
	g.Expect(v1alpha1.IsConditionTrue(endpoint.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
	g.Expect(endpoint.Status.SecretRef).To(BeNil())
	g.Expect(testenv.Get(t, g, env, foreign).ResourceVersion).To(Equal(version))
	g.Expect(deliveries(t, g, ns)).To(BeEmpty(), "nothing can be signed, so there is no ping yet")

	// Naming the Secret in the spec allows using it.
	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) {
		e.Spec.SecretRef = &v1alpha1.SecretReference{Name: "team-webhook"}
	})
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonReconciled)
}

func TestTheSecretOfAnEarlierEndpointOfTheNameIsNotTakenOver(t *testing.T) {
	ns, g := env.Namespace(t), NewWithT(t)
	_, text := signatures.NewSecret()
	left := secretNamed(ns, "team-webhook", map[string]string{v1alpha1.WebhookSecretKey: text})
	controls := true
	left.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "WebhookEndpoint", Name: "team", UID: "earlier", Controller: &controls,
	}}
	env.Create(t, left)
	shared.Start(t, env)
	newEndpoint(t, ns)
	g.Expect(string(testenv.Get(t, g, env, secretNamed(ns, "team-webhook", nil)).Data[v1alpha1.WebhookSecretKey])).NotTo(Equal(text))
}

// An immutable Secret with a finalizer can neither be written nor replaced.
func TestASecretThatCannotBeReplacedIsAConflict(t *testing.T) {
	ns, g := shared.Namespace(t, env), NewWithT(t)
	endpoint := newEndpoint(t, ns)
	secret := testenv.Get(t, g, env, secretNamed(ns, "team-webhook", nil))
	testenv.Change(t, env, secret, func(s *corev1.Secret) {
		s.Immutable, s.Finalizers = new(true), []string{"example.com/hold"}
	})
	testenv.Change(t, env, endpoint, rotate(1, time.Hour))
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonSecretConflict)
	testenv.Change(t, env, secret, func(s *corev1.Secret) { s.Finalizers = nil })
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonReconciled)
	previous := secret.Data[v1alpha1.WebhookSecretKey]
	g.Expect(rotatedTo(t, endpoint, 1).Data).To(HaveKeyWithValue(v1alpha1.WebhookPreviousSecretKey, previous))
}

func TestAGivenSecretIsCheckedAndFollowed(t *testing.T) {
	ns, g := shared.Namespace(t, env), NewWithT(t)
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint("team").In(ns).Secret("given").Build())
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonSecretNotFound)

	const wrong = "whsec_c2hvcnQ="
	given := testenv.Create(t, env, secretNamed(ns, "given", map[string]string{v1alpha1.WebhookSecretKey: wrong}))
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonSecretInvalid)
	for _, condition := range endpoint.Status.Conditions {
		g.Expect(condition.Message).To(ContainSubstring(`key "secret"`))
		g.Expect(condition.Message).NotTo(ContainSubstring(strings.TrimPrefix(wrong, "whsec_")))
	}
	fresh, text := signatures.NewSecret()
	testenv.Change(t, env, given, func(s *corev1.Secret) { s.Data, s.StringData = nil, map[string]string{v1alpha1.WebhookSecretKey: text} })
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonReconciled)
	g.Expect(endpoint.Status.Secrets[0].ID).To(Equal(fresh.ID()))
	g.Expect(testenv.Get(t, g, env, given).OwnerReferences).To(BeEmpty(), "it is not the endpoint's")

	g.Expect(env.Client.Delete(t.Context(), given)).To(Succeed())
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonSecretNotFound)
	g.Expect(endpoint.Status.Secrets[0].ExpiresAt).NotTo(BeNil(), "it may have leaked, and is no longer in use")
}

func TestAnEndpointWithoutAUsableSecretIsGivenUpAfterFiveDays(t *testing.T) {
	ns, g := shared.Namespace(t, env), NewWithT(t)
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint("team").In(ns).Secret("given").Build())
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonSecretNotFound)
	g.Expect(endpoint.Status.FailingSince).NotTo(BeNil())
	g.Expect(endpoint.IsDisabled()).To(BeFalse())

	since := time.Now().UTC().Add(-webhooks.MaxFailing).Format(time.RFC3339)
	g.Expect(env.AsController(t).Status().Patch(t.Context(), endpoint,
		testenv.MergePatch(fmt.Sprintf(`{"status":{"failingSince":%q}}`, since)))).To(Succeed())
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonNoUsableSecret)
	g.Expect(endpoint.IsDisabled()).To(BeTrue())
	stalled := v1alpha1.FindCondition(endpoint.Status.Conditions, v1alpha1.ConditionStalled)
	g.Expect(stalled.Message).To(And(ContainSubstring("for five days"), ContainSubstring("create it")))

	_, text := signatures.NewSecret()
	env.Create(t, secretNamed(ns, "given", map[string]string{v1alpha1.WebhookSecretKey: text}))
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonReconciled)
	g.Expect(endpoint.IsDisabled()).To(BeFalse())
	g.Expect(endpoint.Status.FailingSince).To(BeNil())
}

func TestAnEndpointWorksWhileItsPingIsRefused(t *testing.T) {
	var r *Reconciler
	controllertest.Start(t, env, func(ctx context.Context, mgr ctrl.Manager, _ controller.Options) error {
		r = &Reconciler{Base: reconcile.NewBase(mgr), secrets: ownsecret.NewStore(mgr)}
		return index.Add(ctx, mgr, &v1alpha1.WebhookDelivery{}, pendingIndex, pendingFor)
	})
	ns := env.Namespace(t)
	quota := env.UseUp(t, "count/webhookdeliveries.appsec.dev", builder.WebhookDelivery("probe", time.Now()).In(ns).Build())
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint("team").In(ns).Build())
	var logged strings.Builder
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, line string) { logged.WriteString(line) }, funcr.Options{}))
	reconciled := func(g Gomega) ctrl.Result {
		result, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(endpoint)})
		g.Expect(err).NotTo(HaveOccurred())
		return result
	}
	waits := func(retry time.Duration) {
		harness.Eventually(t, func(g Gomega) { g.Expect(reconciled(g).RequeueAfter).To(Equal(retry)) })
	}
	waits(quotaRetry) // once the cache has it
	NewWithT(t).Expect(logged.String()).To(And(ContainSubstring(`"level"=0`), ContainSubstring("used-up")),
		"no Organization reports the quota of somebody else")
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonReconciled)
	NewWithT(t).Expect(endpoint.Status.PingedAt).To(BeNil())

	// A policy or webhook of the cluster chooses the code.
	admitted := r.Client
	r.Client = interceptor.NewClient(admitted.(client.WithWatch), refuseNew[*v1alpha1.WebhookDelivery](func() error {
		return apierrors.NewBadRequest("denied")
	}))
	waits(reconcile.RefusedRetry) // once the cache has its status
	r.Client = admitted

	NewWithT(t).Expect(env.Client.Delete(t.Context(), quota)).To(Succeed())
	harness.Eventually(t, func(g Gomega) {
		reconciled(g)
		g.Expect(testenv.Get(t, g, env, endpoint).Status.PingedAt).NotTo(BeNil())
		g.Expect(deliveries(t, g, ns)).To(HaveLen(1))
	})
}

// People delete the Secret of a signing secret that has leaked.
func TestALostSecretEndsThoughNoNewOneCanBeWritten(t *testing.T) {
	ns, g := shared.Namespace(t, env), NewWithT(t)
	endpoint := newEndpoint(t, ns)
	quota := env.UseUp(t, "count/secrets", secretNamed(ns, "probe", nil))
	g.Expect(env.Client.Delete(t.Context(), secretNamed(ns, "team-webhook", nil))).To(Succeed())
	ready := testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonSecretNotWritten)
	g.Expect(ready.Message).To(And(ContainSubstring("exceeded quota"), ContainSubstring("nothing can be signed")))
	g.Expect(endpoint.Status.SecretRef).To(BeNil(), "deliveries wait")
	g.Expect(endpoint.Status.Secrets[0].ExpiresAt).NotTo(BeNil())
	g.Expect(endpoint.Status.FailingSince).NotTo(BeNil(), "it is disabled after five days")

	fresh := testenv.Create(t, env, builder.WebhookEndpoint("fresh").In(ns).Build())
	testenv.AwaitReason(t, env, fresh, v1alpha1.ReasonSecretNotWritten)

	g.Expect(env.Client.Delete(t.Context(), quota)).To(Succeed())
	for _, e := range []*v1alpha1.WebhookEndpoint{endpoint, fresh} { // else they are tried again after some seconds
		testenv.Change(t, env, e, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Batch = v1alpha1.WebhookBatchPerScan })
		testenv.AwaitReason(t, env, e, v1alpha1.ReasonReconciled)
	}
	g.Expect(endpoint.Status.Secrets).To(HaveLen(2))
}

// refuseNew returns the error for each new object of the kind.
func refuseNew[O client.Object](err func() error) interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, object client.Object,
		options ...client.CreateOption) error {
		if _, is := object.(O); is {
			return err()
		}
		return c.Create(ctx, object, options...)
	}}
}

// An error may name a request or a port.
func TestAnErrorWithAnotherTextEachTimeIsNotRetriedAtOnce(t *testing.T) {
	var attempts atomic.Int32
	failing := refuseNew[*corev1.Secret](func() error { return fmt.Errorf("request %d failed", attempts.Add(1)) })
	setup := func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
		options.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Hour, time.Hour)
		return Settings{}.SetupWithManager(ctx, mgr, options)
	}
	controllertest.Start(t, env, controllertest.Intercept(setup, failing))
	ns := env.Namespace(t)
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint("team").In(ns).Build())
	// The status write of the first reconcile, with a new reason, enqueues the endpoint.
	harness.Eventually(t, func(g Gomega) {
		message := testenv.Ready(t, g, env, endpoint).Message
		g.Expect(message).To(And(ContainSubstring("failed"), Not(ContainSubstring("request 1 failed"))))
	})
	// Once another one is reconciled, what was queued before it has been too.
	other := testenv.Create(t, env, builder.WebhookEndpoint("other").In(ns).Secret("absent").Build())
	testenv.AwaitReason(t, env, other, v1alpha1.ReasonSecretNotFound)
	harness.Same(t, "attempts", 2, int(attempts.Load()))
}

func TestARefusedSecretIsTriedAgainSoon(t *testing.T) {
	var r *Reconciler
	refused := refuseNew[*corev1.Secret](func() error {
		return webhookerrors.ToStatusErr("hold.example.org", &metav1.Status{Reason: metav1.StatusReasonAlreadyExists})
	})
	setup := func(ctx context.Context, mgr ctrl.Manager, _ controller.Options) error {
		r = &Reconciler{Base: reconcile.NewBase(mgr), secrets: ownsecret.NewStore(mgr)}
		return index.Add(ctx, mgr, &v1alpha1.WebhookDelivery{}, pendingIndex, pendingFor)
	}
	controllertest.Start(t, env, controllertest.Intercept(setup, refused))
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint("team").In(env.Namespace(t)).Build())
	harness.Eventually(t, func(g Gomega) { // once the cache has it
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(endpoint)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(reconcile.RefusedRetry))
	})
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonSecretNotWritten)
}

// A Secret of this type must hold more than a signing secret.
func TestASecretStaysInUseWhileItCannotBeWritten(t *testing.T) {
	stop := shared.Alone(t, env)
	ns, g := env.Namespace(t), NewWithT(t)
	endpoint := newEndpoint(t, ns)
	stop()
	typed := testenv.Get(t, g, env, secretNamed(ns, "team-webhook", nil))
	g.Expect(env.Client.Delete(t.Context(), secretNamed(ns, "team-webhook", nil))).To(Succeed())
	typed.ResourceVersion, typed.Type = "", corev1.SecretTypeSSHAuth
	typed.Data[corev1.SSHAuthPrivateKey] = []byte("a key")
	env.Create(t, typed)
	shared.Alone(t, env)
	testenv.Change(t, env, endpoint, rotate(1, 0))
	ready := testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonSecretNotWritten)
	g.Expect(ready.Message).To(ContainSubstring("stays in use"))
	g.Expect(endpoint.Status.SecretRef).NotTo(BeNil(), "events are sent")
	g.Expect(endpoint.Status.RotationSerial).To(BeZero())
	g.Expect(endpoint.Status.FailingSince).To(BeNil())
}

func TestAnEndpointBeyondThoseServedSaysSoUntilThereIsRoom(t *testing.T) {
	ns := shared.Namespace(t, env)
	oldest := testenv.Create(t, env, builder.WebhookEndpoint("a").In(ns).Secret("absent").Build())
	for i := range webhooks.MaxServed - 1 {
		env.Create(t, builder.WebhookEndpoint(fmt.Sprintf("e-%02d", i)).In(ns).Secret("absent").Build())
	}
	// Disabled ones get no ping, which would enqueue them. Once the second is reconciled, nothing else enqueues the first.
	var late []*v1alpha1.WebhookEndpoint
	for _, name := range []string{"y", "z"} {
		endpoint := testenv.Create(t, env, builder.WebhookEndpoint(name).In(ns).Mutate(func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = true }).Build())
		testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonTooManyEndpoints)
		late = append(late, endpoint)
	}
	harness.Must(t, env.Client.Delete(t.Context(), oldest))
	testenv.AwaitReason(t, env, late[0], v1alpha1.ReasonEndpointDisabled)
	testenv.AwaitReason(t, env, late[1], v1alpha1.ReasonTooManyEndpoints)
}

func TestThePingIsMadeOnce(t *testing.T) {
	stop := shared.Alone(t, env)
	ns, g := env.Namespace(t), NewWithT(t)
	endpoint := newEndpoint(t, ns)
	pings := deliveries(t, g, ns)
	g.Expect(pings).To(HaveLen(1))
	g.Expect(pings[0].Name).To(Equal(webhooks.DeliveryName(endpoint.UID, 0, endpoint.UID)))
	g.Expect(pings[0].Spec.Event.Type).To(Equal("webhook.ping"))
	g.Expect(pings[0].Spec.Event.ID).To(Equal(pings[0].Name))
	g.Expect(pings[0].Spec.EndpointRef.UID).To(Equal(string(endpoint.UID)))
	g.Expect(endpoint.Status.PingedAt).NotTo(BeNil())

	// After the ping is retired it is not made again, neither now nor after a restart.
	g.Expect(env.Client.Delete(t.Context(), &pings[0])).To(Succeed())
	stop()
	shared.Alone(t, env)
	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Events = []v1alpha1.WebhookEventPattern{"*"} })
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonReconciled)
	g.Expect(deliveries(t, g, ns)).To(BeEmpty())
}

// A crash between the ping and the status leaves a ping that the status does not record.
func TestAPingThatIsThereAlreadyIsTakenForMade(t *testing.T) {
	ns, g := env.Namespace(t), NewWithT(t)
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint("team").In(ns).Build())
	d, err := webhooks.NewDelivery(webhooks.Ping(endpoint, time.Now()), endpoint)
	g.Expect(err).NotTo(HaveOccurred())
	env.Create(t, d)
	shared.Alone(t, env)
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonReconciled)
	g.Expect(endpoint.Status.PingedAt).NotTo(BeNil())
	g.Expect(deliveries(t, g, ns)).To(HaveLen(1))
}

func TestADisabledEndpointIsPingedWhenItIsEnabled(t *testing.T) {
	ns, g := shared.Namespace(t, env), NewWithT(t)
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint("team").In(ns).Mutate(func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = true }).Build())
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonEndpointDisabled)
	g.Expect(endpoint.Status.SecretRef).NotTo(BeNil(), "the receiver can be set up")
	g.Expect(deliveries(t, g, ns)).To(BeEmpty())
	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = false })
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonReconciled)
	g.Expect(deliveries(t, g, ns)).To(HaveLen(1))
}

func TestFailuresShowInTheCondition(t *testing.T) {
	ns, g := shared.Namespace(t, env), NewWithT(t)
	endpoint := newEndpoint(t, ns)
	report := func(body string) {
		g.Expect(env.AsController(t).Status().Patch(t.Context(), endpoint, testenv.MergePatch(body))).To(Succeed())
	}
	report(`{"status":{"consecutiveFailures":1}}`)
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonDeliveryFailing)
	report(`{"status":{"consecutiveFailures":2,"lastSuccessAt":"2026-03-01T12:00:00Z"}}`)
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonReconciled)
	report(`{"status":{"consecutiveFailures":3}}`)
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonDeliveryFailing)
}

// The sender's reason for disabling the endpoint applies until the spec changes.
func TestAnEndpointThatTheSenderHasDisabled(t *testing.T) {
	ns, g := shared.Namespace(t, env), NewWithT(t)
	endpoint := newEndpoint(t, ns)
	for _, reason := range []string{v1alpha1.ReasonGone, v1alpha1.ReasonFailingTooLong} {
		testenv.ChangeStatus(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) {
			status := &e.Status
			status.ConsecutiveFailures, status.FailingSince = 7, &v1alpha1.Time{Time: time.Now()}
			status.Disabled = &v1alpha1.WebhookDisabled{
				At: v1alpha1.Now(), Reason: v1alpha1.WebhookDisabledReason(reason), Message: "why", Generation: e.Generation,
			}
		})
		testenv.AwaitReason(t, env, endpoint, reason)
		stalled := v1alpha1.FindCondition(endpoint.Status.Conditions, v1alpha1.ConditionStalled)
		g.Expect(stalled).NotTo(BeNil())
		g.Expect(stalled.Message).To(And(ContainSubstring("why"), ContainSubstring("change the spec")))

		testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.URL += "/other" })
		testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonReconciled)
		g.Expect(endpoint.Status.Disabled).To(BeNil())
		g.Expect(endpoint.Status.ConsecutiveFailures).To(BeZero())
		g.Expect(endpoint.Status.FailingSince).To(BeNil(), "it has five days again")
	}
}

// Creating an endpoint causes one status write, and no more.
func TestOneWriteForANewEndpoint(t *testing.T) {
	ns, g := shared.Namespace(t, env), NewWithT(t)
	writes := testenv.Writes[*v1alpha1.WebhookEndpoint](t, env, &v1alpha1.WebhookEndpointList{}, ns)
	endpoint := newEndpoint(t, ns)
	newEndpoint(t, env.Namespace(t)) // so what was queued before it has been reconciled
	env.Patch(t, endpoint, `{"metadata":{"labels":{"last":"true"}}}`)
	last := func(written *v1alpha1.WebhookEndpoint) bool { return written.Labels["last"] == "true" }
	g.Expect(testenv.CountWrites(writes, last)).To(Equal(1))
}
