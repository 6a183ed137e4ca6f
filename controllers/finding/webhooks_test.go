package finding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/implied"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// logging is a manager with another logger.
type logging struct {
	ctrl.Manager
	logger logr.Logger
}

func (m logging) GetLogger() logr.Logger { return m.logger }

// hooks are called before each write of the controller; an error keeps the write from being sent.
type hooks struct {
	create func(*v1alpha1.WebhookDelivery) error
	status func(*v1alpha1.Finding) error
	logger logr.Logger
	// implied is that of the Settings.
	implied *implied.Statuses
	// blind means that the cache shows no deliveries and scans.
	blind bool
}

func (h hooks) setup() controllertest.Setup {
	return controllertest.Intercept(func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
		if h.logger.GetSink() != nil {
			mgr = logging{mgr, h.logger}
		}
		return Settings{Implied: h.implied}.SetupWithManager(ctx, mgr, options)
	}, interceptor.Funcs{Create: h.onCreate, Get: h.onGet, SubResourcePatch: h.onStatusPatch})
}

func (h hooks) onCreate(ctx context.Context, c client.WithWatch, object client.Object,
	options ...client.CreateOption) error {
	if delivery, ok := object.(*v1alpha1.WebhookDelivery); ok && h.create != nil {
		if err := h.create(delivery); err != nil {
			return err
		}
	}
	return c.Create(ctx, object, options...)
}

func (h hooks) onGet(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	switch object.(type) {
	case *v1alpha1.WebhookDelivery, *v1alpha1.Scan:
		if h.blind {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
	}
	return c.Get(ctx, key, object, options...)
}

func (h hooks) onStatusPatch(ctx context.Context, c client.Client, subresource string, object client.Object,
	patch client.Patch, options ...client.SubResourcePatchOption) error {
	if object.GetObjectKind().GroupVersionKind().Kind == "Finding" && h.status != nil {
		// The finding after the write: the stored one with the patch applied.
		finding := &v1alpha1.Finding{}
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), finding); err != nil {
			return err
		}
		data, err := patch.Data(object)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, finding); err != nil {
			return err
		}
		if err := h.status(finding); err != nil {
			return err
		}
	}
	return c.SubResource(subresource).Patch(ctx, object, patch, options...)
}

var errCut = errors.New("the controller is cut off here")

// receive creates an endpoint that subscribes to all events, or as changed.
func receive(t *testing.T, namespace, name string, change func(*v1alpha1.WebhookEndpoint)) *v1alpha1.WebhookEndpoint {
	t.Helper()
	b := builder.WebhookEndpoint(name).In(namespace)
	if change != nil {
		b = b.Mutate(change)
	}
	return testenv.Create(t, env, b.Build())
}

// started starts controllers with those setups, and then makes places for findings.
func started(t *testing.T, setups ...controllertest.Setup) (namespace string, stop func()) {
	t.Helper()
	stop = controllertest.Start(t, env, setups...)
	return controllertest.Places(t, env), stop
}

// beside makes places for findings in which shared controllers run.
func beside(t *testing.T, controllers *controllertest.Shared) (namespace string) {
	t.Helper()
	controllers.Start(t, env)
	return controllertest.Places(t, env)
}

// sentTo lists the subject's deliveries to the endpoint, each as "type seq", in any order.
func sentTo(t *testing.T, g Gomega, namespace, endpoint, subject string) []string {
	t.Helper()
	list := testenv.List(t, g, env, &v1alpha1.WebhookDeliveryList{}, client.InNamespace(namespace), client.MatchingFields{
		"spec.endpointRef.name": endpoint, "spec.event.subject.name": subject,
	})
	out := []string{}
	for i := range list.Items {
		out = append(out, fmt.Sprintf("%s %d", list.Items[i].Spec.Event.Type, seqOf(g, &list.Items[i])))
	}
	return out
}

func seqOf(g Gomega, delivery *v1alpha1.WebhookDelivery) int64 {
	var content struct {
		Data struct {
			Seq int64 `json:"seq"`
		} `json:"data"`
	}
	g.Expect(json.Unmarshal([]byte(delivery.Spec.Payload), &content)).To(Succeed())
	return content.Data.Seq
}

// caughtUp waits until the finding owes nothing and has emitted that many transitions.
func caughtUp(t *testing.T, finding *v1alpha1.Finding, seq int64) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, finding).Status.EmittedSeq).To(Equal(seq))
		g.Expect(finding.Status.ObservedGeneration).To(Equal(finding.Generation))
	})
}

// triage changes the comment, and with it the finding's triage.
func triage(t *testing.T, finding *v1alpha1.Finding, comment string) {
	t.Helper()
	env.Patch(t, finding, fmt.Sprintf(`{"spec":{"triage":{"comments":%q}}}`, comment))
}

// makeMarker creates a finding and waits for its delivery to the endpoint: all earlier requests are
// reconciled then.
func makeMarker(t *testing.T, namespace, endpoint string) {
	t.Helper()
	marker := testenv.Create(t, env, builder.Finding("marker").In(namespace).Build())
	caughtUp(t, marker, 1)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(sentTo(t, g, namespace, endpoint, marker.Name)).To(ConsistOf("finding.created 1"))
	})
}

func TestEachTransitionGoesToEachThatAsksForIt(t *testing.T) {
	ns := beside(t, storing)
	all := receive(t, ns, "all", nil)
	receive(t, ns, "closed", func(e *v1alpha1.WebhookEndpoint) {
		e.Spec.Events = []v1alpha1.WebhookEventPattern{"finding.closed", "scan.*"}
	})
	receive(t, ns, "off", func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = true })
	other := env.Namespace(t)
	receive(t, other, "elsewhere", nil)
	finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Severity(v1alpha1.LevelHigh).Scan("s-1").
		Mutate(func(f *v1alpha1.Finding) { f.Spec.Details.Code = "secret := 1" }).Build())
	caughtUp(t, finding, 1)
	env.Patch(t, finding, `{"spec":{"triage":{"userStatus":"muted","comments":"the password is 1234"}}}`)
	caughtUp(t, finding, 2)
	env.Patch(t, finding, `{"spec":{"suppression":{"kind":"inSource","justification":"a constant"}}}`)
	caughtUp(t, finding, 3)
	env.Patch(t, finding, `{"spec":{"suppression":null}}`)
	caughtUp(t, finding, 4)
	env.Patch(t, finding, `{"spec":{"closed":{"at":"2026-03-01T12:00:00Z","scanID":"s-2"}}}`)
	caughtUp(t, finding, 5)

	g := NewWithT(t)
	g.Expect(sentTo(t, g, ns, "all", "f-1")).To(ConsistOf("finding.created 1", "finding.triaged 2",
		"finding.suppressed 3", "finding.unsuppressed 4", "finding.closed 5"))
	g.Expect(sentTo(t, g, ns, "closed", "f-1")).To(ConsistOf("finding.closed 5"))
	g.Expect(sentTo(t, g, ns, "off", "f-1")).To(BeEmpty())
	g.Expect(sentTo(t, g, other, "elsewhere", "f-1")).To(BeEmpty())

	delivery := &v1alpha1.WebhookDelivery{}
	delivery.Namespace, delivery.Name = ns, webhooks.DeliveryName(finding.UID, 2, all.UID)
	testenv.Get(t, g, env, delivery)
	g.Expect(delivery.Spec.EndpointRef.UID).To(BeEquivalentTo(all.UID))
	g.Expect(delivery.Spec.Event.Subject).To(Equal(v1alpha1.WebhookEventSubject{Kind: "Finding", Name: "f-1"}))
	at, by := finding.Status.Transitions[1].At.UTC().Format(time.RFC3339), finding.Status.Transitions[1].By
	g.Expect(delivery.Spec.Payload).To(MatchJSON(fmt.Sprintf(`{"type":"finding.triaged","timestamp":%q,"data":{
		"finding_id":"f-1","uid":%q,"seq":2,"repository_id":"repo","project_id":"proj","severity":"high",
		"by":%q,"user_status":{"from":"open","to":"muted"}}}`, at, finding.UID, by)), "ids and what has changed, and nothing that was written")
}

// Each endpoint makes one more write of every change, and all organizations wait for it.
func TestOnlyTheOldestEndpointsGetEvents(t *testing.T) {
	ns := beside(t, implying)
	for i := range webhooks.MaxServed {
		receive(t, ns, fmt.Sprintf("e-%02d", i), func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = i != 0 })
	}
	receive(t, ns, "z", nil)
	finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Build())
	caughtUp(t, finding, 1)
	g := NewWithT(t)
	g.Expect(sentTo(t, g, ns, "e-00", "f-1")).To(ConsistOf("finding.created 1"))
	g.Expect(sentTo(t, g, ns, "z", "f-1")).To(BeEmpty())
}

func TestTwoWritesOnlyOfAChangeThatSomebodyAsksFor(t *testing.T) {
	writesIn := func(ns string) int {
		// The controller's cache shows the places then.
		testenv.CreateReady(t, env, builder.Finding("first").In(ns).Build())
		writes := testenv.Writes[*v1alpha1.Finding](t, env, &v1alpha1.FindingList{}, ns)
		finding := testenv.Create(t, env, builder.Finding("counted").In(ns).Build())
		caughtUp(t, finding, 1)
		triage(t, finding, "x")
		return testenv.CountWrites(writes, func(f *v1alpha1.Finding) bool { return f.Status.EmittedSeq == 2 })
	}
	g := NewWithT(t)
	quiet := beside(t, storing)
	g.Expect(writesIn(quiet)).To(Equal(2), "the creation's and the triage itself, before the triage's")
	loud := controllertest.Places(t, env)
	receive(t, loud, "all", nil)
	g.Expect(writesIn(loud)).To(Equal(3), "another before the triage's: its transition, before its deliveries are made")
}

// A transition is stored before its delivery: otherwise the delivery could be made twice. The finding is created
// with a decision; later nobody could tell when it was made.
func TestATransitionIsStoredBeforeAnythingIsMadeOfIt(t *testing.T) {
	var judged, unrecorded atomic.Int32
	ns, _ := started(t, hooks{create: func(d *v1alpha1.WebhookDelivery) error {
		stored := &v1alpha1.Finding{}
		key := client.ObjectKey{Namespace: d.Namespace, Name: string(d.Spec.Event.Subject.Name)}
		if err := env.Client.Get(context.Background(), key, stored); err != nil {
			return err
		}
		var content struct{ Data webhooks.FindingData }
		if err := json.Unmarshal([]byte(d.Spec.Payload), &content); err != nil {
			return err
		}
		n := len(stored.Status.Transitions)
		if n == 0 || stored.Status.Transitions[n-1].Seq < content.Data.Seq {
			unrecorded.Add(1)
		}
		judged.Add(1)
		return nil
	}}.setup())
	receive(t, ns, "all", nil)
	finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Triage(v1alpha1.UserStatusMuted, "x").Build())
	caughtUp(t, finding, 2)
	triage(t, finding, "y")
	caughtUp(t, finding, 3)
	g := NewWithT(t)
	g.Expect(judged.Load()).To(BeNumerically(">=", 3))
	g.Expect(unrecorded.Load()).To(BeZero())
}

// Wherever the controller is interrupted, the next one loses nothing and makes nothing twice, even
// after the deliveries are retired.
func TestNothingIsLostOrDoubledWhereverTheControllerDies(t *testing.T) {
	type reached func(g Gomega, finding *v1alpha1.Finding, made int)
	always := func(*v1alpha1.WebhookDelivery) error { return errCut }
	cases := []struct {
		reason string
		hooks  hooks
		// reached checks that the controller got as far as it can.
		reached reached
	}{{
		reason: "before the transition is stored",
		hooks:  hooks{status: func(*v1alpha1.Finding) error { return errCut }},
		reached: func(g Gomega, f *v1alpha1.Finding, made int) {
			g.Expect(f.Status.ObservedGeneration).To(BeZero())
			g.Expect(made).To(BeZero())
		},
	}, {
		reason: "before any delivery is made",
		hooks:  hooks{create: always},
		reached: func(g Gomega, f *v1alpha1.Finding, made int) {
			g.Expect(f.Status.Transitions).To(HaveLen(2))
			g.Expect(made).To(BeZero())
		},
	}, {
		reason: "after some deliveries",
		hooks: hooks{create: func(d *v1alpha1.WebhookDelivery) error {
			if d.Spec.EndpointRef.Name == "b" && d.Spec.Event.Type == "finding.triaged" {
				return errCut
			}
			return nil
		}},
		reached: func(g Gomega, f *v1alpha1.Finding, made int) {
			g.Expect(f.Status.EmittedSeq).To(BeEquivalentTo(1), "what is made of the first is noted")
			g.Expect(made).To(Equal(3))
		},
	}, {
		reason: "before it is noted that they are made",
		hooks: hooks{status: func(f *v1alpha1.Finding) error {
			if f.Status.EmittedSeq > 0 {
				return errCut
			}
			return nil
		}},
		reached: func(g Gomega, f *v1alpha1.Finding, made int) {
			g.Expect(f.Status.EmittedSeq).To(BeZero())
			g.Expect(made).To(Equal(4))
		},
	}}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			ns, stop := started(t, c.hooks.setup())
			receive(t, ns, "a", nil)
			receive(t, ns, "b", nil)
			finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Triage(v1alpha1.UserStatusMuted, "x").Build())
			harness.Eventually(t, func(g Gomega) {
				testenv.Get(t, g, env, finding)
				c.reached(g, finding, len(sentTo(t, g, ns, "a", "f-1"))+len(sentTo(t, g, ns, "b", "f-1")))
			})
			stop()

			stop = storing.Alone(t, env)
			caughtUp(t, finding, 2)
			g := NewWithT(t)
			for _, endpoint := range []string{"a", "b"} {
				g.Expect(sentTo(t, g, ns, endpoint, "f-1")).To(ConsistOf("finding.created 1", "finding.triaged 2"))
			}
			stop()

			g.Expect(env.Client.DeleteAllOf(t.Context(), &v1alpha1.WebhookDelivery{}, client.InNamespace(ns))).To(Succeed())
			version := testenv.Get(t, g, env, finding).ResourceVersion
			storing.Alone(t, env)
			makeMarker(t, ns, "a")
			for _, endpoint := range []string{"a", "b"} {
				g.Expect(sentTo(t, g, ns, endpoint, "f-1")).To(BeEmpty(), "a retired delivery was made again")
			}
			g.Expect(testenv.Get(t, g, env, finding).ResourceVersion).To(Equal(version), "a settled finding was written")
		})
	}
}

// A delivery that was just made may neither be in the cache nor be recorded yet.
func TestADeliveryThatIsThereIsAsGoodAsMade(t *testing.T) {
	ns, stop := started(t, hooks{status: func(f *v1alpha1.Finding) error {
		if f.Status.EmittedSeq > 0 {
			return errCut
		}
		return nil
	}}.setup())
	receive(t, ns, "all", nil)
	finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Build())
	harness.Eventually(t, func(g Gomega) { g.Expect(sentTo(t, g, ns, "all", "f-1")).To(HaveLen(1)) })
	stop()
	controllertest.Start(t, env, hooks{blind: true}.setup())
	caughtUp(t, finding, 1)
	NewWithT(t).Expect(sentTo(t, NewWithT(t), ns, "all", "f-1")).To(ConsistOf("finding.created 1"))
}

// The cache may show a finding before it shows the scan that created it.
func TestAFindingWaitsForThePageOfAScanThatTheCacheDoesNotShow(t *testing.T) {
	ns, _ := started(t, hooks{blind: true}.setup())
	env.Create(t, builder.WebhookEndpoint("paged").In(ns).Batched().Build())
	env.Create(t, builder.Scan("s-1", time.Now()).In(ns).Build())
	finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Scan("s-1").Build())
	testenv.AwaitObserved(t, env, finding)
	makeMarker(t, ns, "paged")
	g := NewWithT(t)
	g.Expect(testenv.Get(t, g, env, finding).Status.EmittedSeq).To(BeZero())
	g.Expect(sentTo(t, g, ns, "paged", "f-1")).To(BeEmpty())
}

func TestACacheThatIsBehindMakesNoRetiredDeliveryAgain(t *testing.T) {
	for reason, stored := range map[string]bool{"it shows the transition": true, "it shows no status": false} {
		t.Run(reason, func(t *testing.T) {
			ns := controllertest.Places(t, env)
			receive(t, ns, "all", nil)
			finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Build())
			if stored {
				stop := controllertest.Start(t, env, hooks{create: func(*v1alpha1.WebhookDelivery) error { return errCut }}.setup())
				harness.Eventually(t, func(g Gomega) { g.Expect(testenv.Get(t, g, env, finding).Status.Transitions).To(HaveLen(1)) })
				stop()
			}
			old := finding.DeepCopy()
			stop := storing.Alone(t, env)
			caughtUp(t, finding, 1)
			stop()
			g := NewWithT(t)
			g.Expect(env.Client.DeleteAllOf(t.Context(), &v1alpha1.WebhookDelivery{}, client.InNamespace(ns))).To(Succeed())

			result, err := reconcileBehind(t, old)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.RequeueAfter).NotTo(BeZero(), "it does not come back when the cache has caught up")
			g.Expect(sentTo(t, g, ns, "all", "f-1")).To(BeEmpty())
		})
	}
}

// reconcileBehind reconciles a finding once with a cache that shows it as it was.
func reconcileBehind(t *testing.T, old *v1alpha1.Finding) (result ctrl.Result, err error) {
	t.Helper()
	done := make(chan struct{})
	behind := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
		options ...client.GetOption) error {
		if finding, ok := object.(*v1alpha1.Finding); ok {
			old.DeepCopyInto(finding)
			return nil
		}
		return c.Get(ctx, key, object, options...)
	}}
	setup := func(ctx context.Context, mgr ctrl.Manager, _ controller.Options) error {
		books, err := ledger.New(ctx, mgr, ledger.Finding)
		if err != nil {
			return err
		}
		c := mgr.GetClient()
		r := &Reconciler{Base: reconcile.Base{Client: c, Clock: clock.RealClock{}}, ledger: books}
		return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			defer close(done)
			result, err = r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(old)})
			return nil
		}))
	}
	controllertest.Start(t, env, controllertest.Intercept(setup, behind))
	<-done
	return result, err
}

// overloaded returns an endpoint with so many pending deliveries that it gets no more.
func overloaded(t *testing.T) (namespace string, busy *v1alpha1.WebhookEndpoint) {
	t.Helper()
	namespace = controllertest.Places(t, env)
	busy = receive(t, namespace, "busy", nil)
	controllertest.SetBacklogged(t, env, busy, v1alpha1.ReasonDecisionsHeldBack)
	// The controllers' cache gets endpoints in the order in which they were written.
	elsewhere := controllertest.Places(t, env)
	receive(t, elsewhere, "later", nil)
	testenv.Create(t, env, builder.Finding("marker").In(elsewhere).Build())
	harness.Eventually(t, func(g Gomega) {
		g.Expect(sentTo(t, g, elsewhere, "later", "marker")).To(ConsistOf("finding.created 1"))
	})
	return namespace, busy
}

// First twice as many deliveries are pending as may, then fewer.
func TestABacklogLetsSingleDecisionsThrough(t *testing.T) {
	implying.Start(t, env)
	ns, busy := overloaded(t)
	finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Build())
	triage(t, finding, "x")
	testenv.AwaitObserved(t, env, finding)
	g := NewWithT(t)
	g.Expect(sentTo(t, g, ns, "busy", "f-1")).To(BeEmpty())

	controllertest.AwaitLastRequeue(t)
	controllertest.SetBacklogged(t, env, busy, v1alpha1.ReasonTooManyPending)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(sentTo(t, g, ns, "busy", "f-1")).To(ConsistOf("finding.triaged 2"))
	})
	g.Expect(testenv.Get(t, g, env, finding).Status.EmittedSeq).To(BeZero())

	controllertest.SetBacklogged(t, env, busy, "")
	caughtUp(t, finding, 2)
	g.Expect(sentTo(t, g, ns, "busy", "f-1")).To(ConsistOf("finding.created 1", "finding.triaged 2"))
}

// A full status is emitted despite a backlog: no owed transition is dropped.
func TestAFullStatusIsEmittedWhateverTheBacklog(t *testing.T) {
	implying.Start(t, env)
	ns, busy := overloaded(t)
	finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Build())
	g := NewWithT(t)
	last := int64(1)
	for i := range v1alpha1.MaxStoredTransitions {
		triage(t, finding, fmt.Sprint(i))
		testenv.AwaitObserved(t, env, finding)
		last++
		g.Expect(len(finding.Status.Transitions)).To(BeNumerically("<=", v1alpha1.MaxStoredTransitions))
		g.Expect(finding.Status.Transitions[len(finding.Status.Transitions)-1].Seq).To(Equal(last))
	}
	sent := sentTo(t, g, ns, "busy", "f-1")
	g.Expect(int64(len(sent))).To(Equal(finding.Status.EmittedSeq), "what counts as emitted was made")
	g.Expect(sent).NotTo(BeEmpty())
	g.Expect(last-finding.Status.EmittedSeq).To(BeNumerically(">", 0), "the next ones are held back again")

	controllertest.SetBacklogged(t, env, busy, "")
	caughtUp(t, finding, last)
	g.Expect(sentTo(t, g, ns, "busy", "f-1")).To(HaveLen(int(last)))
	g.Expect(len(finding.Status.Transitions)).To(BeNumerically("<=", v1alpha1.MaxTransitions), "no more are kept than need be")
}

func TestWhatAQuotaRefusesIsMadeWhenThereIsRoom(t *testing.T) {
	ns := beside(t, implying)
	receive(t, ns, "all", nil)
	quota := env.UseUp(t, "count/webhookdeliveries.appsec.dev", builder.WebhookDelivery("probe", time.Now()).In(ns).Build())
	finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Build())
	testenv.AwaitObserved(t, env, finding)
	triage(t, finding, "meanwhile")
	testenv.AwaitObserved(t, env, finding)
	g := NewWithT(t)
	g.Expect(finding.Status.EmittedSeq).To(BeZero())
	g.Expect(finding.Status.Transitions).To(HaveLen(2), "what is refused keeps nothing from being observed")
	g.Expect(sentTo(t, g, ns, "all", "f-1")).To(BeEmpty())

	g.Expect(env.Client.Delete(t.Context(), quota)).To(Succeed())
	caughtUp(t, finding, 2)
	g.Expect(sentTo(t, g, ns, "all", "f-1")).To(ConsistOf("finding.created 1", "finding.triaged 2"))
}

// auditLog keeps the lines of the audit log about the finding "audited".
type auditLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *auditLog) logger() logr.Logger {
	return funcr.NewJSON(func(line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if strings.Contains(line, `"logger":"audit"`) && strings.Contains(line, `"finding":"audited"`) {
			l.lines = append(l.lines, line)
		}
	}, funcr.Options{})
}

func (l *auditLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.lines...)
}

func TestEachTriageIsALineOfTheAuditLogAndInTheStatus(t *testing.T) {
	log := &auditLog{}
	var refused atomic.Bool
	var early atomic.Int32
	ns, _ := started(t, hooks{logger: log.logger(), status: func(f *v1alpha1.Finding) error {
		if f.Name == "audited" && f.Spec.Triage.Comments != "" && len(log.all()) == 0 {
			early.Add(1)
		}
		// The first write of the first decision fails.
		if f.Name == "audited" && f.Spec.Triage.Comments != "" && !refused.Swap(true) {
			return errCut
		}
		return nil
	}}.setup())
	finding := testenv.Create(t, env, builder.Finding("audited").In(ns).Build())
	caughtUp(t, finding, 1)
	comment := strings.Repeat("why? äöü\n", 200)
	env.Patch(t, finding, fmt.Sprintf(`{"spec":{"triage":{"userStatus":"muted","comments":%q}}}`, comment))
	caughtUp(t, finding, 2)

	g := NewWithT(t)
	recorded := finding.Status.Transitions[1]
	g.Expect([]rune(recorded.Comment)).To(HaveLen(v1alpha1.MaxTransitionComment))
	g.Expect(recorded.Comment).To(HaveSuffix(" ... [cut]"))
	g.Expect(early.Load()).To(BeZero(), "a decision was written before it was in the log")
	lines := log.all()
	g.Expect(lines).To(HaveLen(2), "one for the write that failed, one for that which did not")
	earlier, line := harness.Decoded[map[string]any](t, []byte(lines[0])), harness.Decoded[map[string]any](t, []byte(lines[1]))
	for _, key := range []string{"uid", "seq"} {
		g.Expect(line).To(HaveKeyWithValue(key, earlier[key]), "the same uid and seq, so that one may be dropped")
	}
	for key, want := range map[string]any{
		"organization": ns, "namespace": ns, "finding": "audited", "uid": string(finding.UID), "seq": float64(2),
		"at": recorded.At.UTC().Format(time.RFC3339), "by": recorded.By, "from": "open", "to": "muted", "comment": comment,
	} {
		g.Expect(line).To(HaveKeyWithValue(key, want))
	}

	env.Patch(t, finding, `{"spec":{"closed":{"at":"2026-03-01T12:00:00Z","scanID":"s-2"}}}`)
	caughtUp(t, finding, 3)
	triage(t, finding, "")
	caughtUp(t, finding, 4)
	g.Expect(log.all()).To(HaveLen(3), "one line for one decision, and none for what a scanner does")
}
