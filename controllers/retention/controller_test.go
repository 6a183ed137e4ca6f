package retention

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	findings "github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func duration(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func TestWhatIsOldEnoughGoesAndNothingElse(t *testing.T) {
	ns := env.Organization(t, "terms")
	setRetention(t, "terms", v1alpha1.Retention{
		ClosedFindings: duration(time.Hour), FinishedScans: duration(time.Hour), FinishedDeliveries: duration(time.Hour),
	})
	now := time.Now()
	long, short := now.Add(-2*time.Hour), now.Add(-30*time.Minute)
	closed := func(name string, at time.Time) *builder.FindingBuilder {
		return builder.Finding(name).In(ns).Closed(at, "s-2")
	}
	owes := closed("f-owes", long).Mutate(func(f *v1alpha1.Finding) {
		f.Status.Transitions = []v1alpha1.Transition{{Seq: 1, Type: v1alpha1.TransitionClosed, At: v1alpha1.NewTime(long), Scan: "s-told"}}
	}).Build()
	scan := func(name string, at time.Time, outcome v1alpha1.ScanOutcome) *v1alpha1.Scan {
		return builder.Scan(name, at.Add(-time.Minute)).In(ns).Ended(at, outcome).Build()
	}
	delivery := func(name, subject string, at time.Time, phase v1alpha1.WebhookDeliveryPhase) *v1alpha1.WebhookDelivery {
		return builder.WebhookDelivery(name, at).In(ns).Mutate(func(d *v1alpha1.WebhookDelivery) {
			d.Spec.Event.Subject = v1alpha1.WebhookEventSubject{Kind: "Finding", Name: v1alpha1.ResourceName(subject)}
			d.Status = v1alpha1.WebhookDeliveryStatus{Phase: phase, FinishedAt: new(v1alpha1.NewTime(at))}
		}).Build()
	}
	stays := []client.Object{
		closed("f-young", short).Build(),
		closed("f-muted", long).Triage(v1alpha1.UserStatusMuted, "").Build(),
		closed("f-commented", long).Triage(v1alpha1.UserStatusOpen, "see #4").Build(),
		builder.Finding("f-open").In(ns).Build(),
		owes,
		scan("s-3", long, v1alpha1.ScanSucceeded),               // the last that succeeded
		scan("s-4", long.Add(time.Minute), v1alpha1.ScanFailed), // the last
		scan("s-told", long.Add(-3*time.Hour), v1alpha1.ScanSucceeded),
		builder.Scan("s-other", long).In(ns).Tool("other", v1alpha1.CategorySecret).Ended(long, v1alpha1.ScanSucceeded).Build(),
		delivery("d-young", "gone", short, v1alpha1.WebhookDeliveryDelivered),
		delivery("d-pending", "gone", long, v1alpha1.WebhookDeliveryPending),
		closed("f-dated-back", now.AddDate(-25, 0, 0)).Mutate(func(f *v1alpha1.Finding) {
			f.Status.Transitions = []v1alpha1.Transition{{Seq: 1, Type: v1alpha1.TransitionClosed, At: v1alpha1.NewTime(short)}}
			f.Status.EmittedSeq = 1
		}).Build(),
	}
	goes := []client.Object{
		closed("f-old", long).Build(),
		closed("f-active", long).Triage(v1alpha1.UserStatusActive, "").Build(),
		scan("s-1", long.Add(-2*time.Hour), v1alpha1.ScanSucceeded),
		scan("s-2", long.Add(-time.Hour), v1alpha1.ScanFailed),
		delivery("d-old", "f-open", long, v1alpha1.WebhookDeliveryDelivered),
		delivery("d-failed", "f-owes", long, v1alpha1.WebhookDeliveryFailed), // of an earlier change
	}
	for _, objects := range [][]client.Object{stays, goes} {
		for _, object := range objects {
			status := object.DeepCopyObject()
			env.Create(t, object) // which drops the status
			switch o := object.(type) {
			case *v1alpha1.Finding:
				o.Status = status.(*v1alpha1.Finding).Status
			case *v1alpha1.WebhookDelivery:
				o.Status = status.(*v1alpha1.WebhookDelivery).Status
			}
			markObserved(t, object)
		}
	}
	stays = append(stays, delivered(t, ns, webhooks.DeliveryName(owes.UID, 1, "endpoint"), "finding.closed", "f-owes", now.Sub(long)))
	before := map[string]float64{}
	for _, kind := range []string{"Finding", "Scan", "WebhookDelivery"} {
		before[kind] = testutil.ToFloat64(retired.WithLabelValues(kind))
	}
	start(t, quick)
	env.AwaitGone(t, goes...)
	announced(t, "terms", "closed findings 2, finished scans 2, finished deliveries 2") // after the metric is written
	for kind, n := range before {
		harness.Same(t, "what the metric counts of kind "+kind, 2.0, testutil.ToFloat64(retired.WithLabelValues(kind))-n)
	}
	harness.Same(t, "kinds whose refusals are exported from the start", testutil.CollectAndCount(retired), testutil.CollectAndCount(notRemoved))

	// Another turn with due objects keeps the others, too.
	setRetention(t, "terms", v1alpha1.Retention{
		ClosedFindings: duration(time.Hour), IncludeTriaged: true, FinishedScans: duration(time.Hour), FinishedDeliveries: duration(time.Hour),
	})
	env.AwaitGone(t, stays[1], stays[2]) // the muted and the commented one
	g := NewWithT(t)
	for i, object := range stays {
		if i != 1 && i != 2 {
			g.Expect(env.Gone(t, object)).To(BeFalse(), "%s is gone", object.GetName())
		}
	}

	// Nothing is owed any more: now the finding is removed, and the objects that it held.
	g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(owes), owes)).To(Succeed())
	owes.Status.EmittedSeq = 1
	markObserved(t, owes)
	env.AwaitGone(t, owes)
	setRetention(t, "terms", v1alpha1.Retention{FinishedScans: duration(time.Hour), FinishedDeliveries: duration(time.Hour)})
	env.AwaitGone(t, stays[7], stays[12]) // the scan that was to be told of, and the delivery that told of it
}

// The removal of an organization may wait until it is empty, for good. Until then it is in use.
func TestWhatIsOldEnoughGoesWhileTheRemovalOfTheOrganizationWaits(t *testing.T) {
	ns := env.Organization(t, "waiting")
	setRetention(t, "waiting", v1alpha1.Retention{ClosedFindings: duration(time.Hour)})
	old := testenv.Create(t, env, builder.Finding("f-old").In(ns).Closed(time.Now().Add(-2*time.Hour), "s-1").Build())
	markObserved(t, old)
	organization := testenv.Get(t, NewWithT(t), env, builder.Organization("waiting").Build())
	// As the controller of organizations does.
	harness.Must(t, patch.AddFinalizer(t.Context(), env.AsController(t), organization, v1alpha1.CleanupFinalizer))
	harness.Must(t, env.Client.Delete(t.Context(), organization))
	start(t, quick)
	env.AwaitGone(t, old)
	announced(t, "waiting", "closed findings 1")
	if env.Gone(t, organization) {
		t.Error("the organization was released")
	}
}

// announced waits for an Event with that note on the organization.
func announced(t *testing.T, name, note string) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		list := testenv.List(t, g, env, &eventsv1.EventList{})
		var notes []string
		for _, e := range list.Items {
			if e.Regarding.Kind == "Organization" && e.Regarding.Name == name && e.Reason == "Retired" {
				notes = append(notes, e.Note)
			}
		}
		g.Expect(notes).To(ContainElement(ContainSubstring(note)))
	})
}

// A finding that is reopened between the decision and the request stays, and so does a new one of
// the same name.
func TestWhatHasChangedSinceTheDecisionStays(t *testing.T) {
	ns := env.Organization(t, "races")
	setRetention(t, "races", v1alpha1.Retention{ClosedFindings: duration(0)})
	reopened := builder.Finding("f-reopened").In(ns).Closed(time.Now().Add(-time.Hour), "s").Build()
	replaced := builder.Finding("f-replaced").In(ns).Closed(time.Now().Add(-time.Hour), "s").Build()
	env.Create(t, reopened, replaced)
	markObserved(t, reopened, replaced)

	g := NewWithT(t)
	seen := map[string]*v1alpha1.Finding{"f-reopened": reopened.DeepCopy(), "f-replaced": replaced.DeepCopy()}
	reopened.Spec.Closed = nil
	g.Expect(env.Client.Update(t.Context(), reopened)).To(Succeed())
	g.Expect(env.Client.Delete(t.Context(), replaced)).To(Succeed())
	again := testenv.Create(t, env, builder.Finding("f-replaced").In(ns).Build())

	r := behind(t, seen)
	o := testenv.Get(t, g, env, builder.Organization("races").Build())
	p := newPass()
	done, err := r.work(t.Context(), o, p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(done).To(BeTrue())
	g.Expect(p.changed).To(BeTrue())
	g.Expect(p.retired).To(BeEmpty())
	g.Expect(env.Gone(t, reopened)).To(BeFalse(), "it was reopened")
	g.Expect(env.Gone(t, again)).To(BeFalse(), "it is another")
}

// Whoever changes the terms while objects are being removed wants to keep the rest.
func TestATurnEndsWhenItsTermsAreWithdrawn(t *testing.T) {
	ns := env.Organization(t, "withdrawn")
	setRetention(t, "withdrawn", v1alpha1.Retention{ClosedFindings: duration(0)})
	first := builder.Finding("f-first").In(ns).Closed(time.Now().Add(-2*time.Hour), "s").Build()
	second := builder.Finding("f-second").In(ns).Closed(time.Now().Add(-time.Hour), "s").Build()
	env.Create(t, first, second)
	markObserved(t, first, second)
	r := newReconciler(interceptor.NewClient(env.AsController(t), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			setRetention(t, "withdrawn", v1alpha1.Retention{ClosedFindings: duration(24 * time.Hour)})
			return c.Delete(ctx, object, options...)
		},
	}), nil, quick)
	r.Live = r.Client
	r.agenda.change(nil, first)
	r.agenda.change(nil, second)

	g := NewWithT(t)
	p := newPass()
	for _, complete := range []bool{false, true} {
		done, err := r.work(t.Context(), testenv.Get(t, g, env, builder.Organization("withdrawn").Build()), p)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(done).To(Equal(complete))
	}
	g.Expect(p.retired).To(Equal(map[shelf]int{closedFindings: 1}))
	g.Expect(env.Gone(t, second)).To(BeFalse())
}

// A new leader's cache may show the settings of before an outage for a minute, while people already change them.
func TestNothingIsRemovedUnderSettingsThatOnlyTheCacheShows(t *testing.T) {
	due := finding(func(*v1alpha1.Finding) {})
	cached := builder.Organization("x").Mutate(func(o *v1alpha1.Organization) {
		o.UID, o.Generation, o.Status.Namespace = "x", 2, "org-x"
		o.Spec.Retention = &v1alpha1.Retention{ClosedFindings: duration(0)}
	}).Build()
	for reason, c := range map[string]struct {
		change  func(*v1alpha1.Organization) error
		removed int
		again   time.Duration
	}{
		"they are still stored": {func(*v1alpha1.Organization) error { return nil }, 1, 0},
		"they were changed":     {func(o *v1alpha1.Organization) error { o.Generation = 3; return nil }, 0, outdatedPause},
		"another organization has the name": {
			func(o *v1alpha1.Organization) error { o.UID = "another"; return nil }, 0, outdatedPause,
		},
		"it is gone": {func(o *v1alpha1.Organization) error {
			*o = v1alpha1.Organization{}
			return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("organizations").GroupResource(), "x")
		}, 0, outdatedPause},
	} {
		removed := 0
		r := newReconciler(interceptor.NewClient(handlertest.Gets(func(_ client.ObjectKey, into client.Object) error {
			switch into := into.(type) {
			case *v1alpha1.Organization:
				cached.DeepCopyInto(into)
			case *v1alpha1.Finding:
				due.DeepCopyInto(into)
			}
			return nil
		}), interceptor.Funcs{
			Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
				removed++
				return nil
			},
		}), &events.FakeRecorder{}, Settings{Clock: clocktesting.NewFakePassiveClock(noon)})
		r.Live = handlertest.Gets(func(_ client.ObjectKey, into client.Object) error {
			cached.DeepCopyInto(into.(*v1alpha1.Organization))
			return c.change(into.(*v1alpha1.Organization))
		})
		r.agenda.change(nil, due)
		r.leases.Store("x", snapshot{at: noon.Add(time.Hour)})
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "x"}})
		harness.Must(t, err)
		harness.Same(t, reason+": removed findings", c.removed, removed)
		if c.again > 0 {
			harness.Same(t, reason+": the next try", c.again, result.RequeueAfter)
		}
	}
}

// behind returns a reconciler whose cache shows old versions of the findings.
func behind(t *testing.T, findings map[string]*v1alpha1.Finding) *Reconciler {
	t.Helper()
	r := newReconciler(interceptor.NewClient(env.AsController(t), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if into, ok := object.(*v1alpha1.Finding); ok {
				findings[key.Name].DeepCopyInto(into)
				return nil
			}
			return c.Get(ctx, key, object, options...)
		},
	}), nil, quick)
	r.Live = r.Client
	for _, f := range findings {
		r.agenda.change(nil, f)
	}
	return r
}

// The controller of findings makes the delivery of a creation before it stores that, and would make it again.
func TestTheDeliveryOfACreationStaysUntilTheFindingHasAStatus(t *testing.T) {
	ns := env.Organization(t, "created")
	setRetention(t, "created", v1alpha1.Retention{FinishedDeliveries: duration(0)})
	finding := testenv.Create(t, env, builder.Finding("f-new").In(ns).Build())
	created := delivered(t, ns, webhooks.DeliveryName(finding.UID, 1, "endpoint"), "finding.created", "f-new", 2*time.Hour)
	other := delivered(t, ns, "d-other", "finding.updated", "f-new", time.Hour) // later, so it comes after the first
	earlier := webhooks.DeliveryName("an earlier finding", 1, "endpoint")
	namesake := delivered(t, ns, earlier, "finding.created", "f-new", time.Hour)
	start(t, quick)
	env.AwaitGone(t, other, namesake)
	NewWithT(t).Expect(env.Gone(t, created)).To(BeFalse())

	finding.Status.UpdatedAt = new(v1alpha1.Now())
	markObserved(t, finding)
	setRetention(t, "created", v1alpha1.Retention{FinishedDeliveries: duration(0), FinishedScans: duration(time.Hour)}) // to reconcile at once
	env.AwaitGone(t, created)
}

// delivered creates a delivery about the finding that has arrived that long ago.
func delivered(t *testing.T, ns, name, event, finding string, ago time.Duration) *v1alpha1.WebhookDelivery {
	t.Helper()
	d := testenv.Create(t, env, builder.WebhookDelivery(name, time.Now()).In(ns).Mutate(func(d *v1alpha1.WebhookDelivery) {
		d.Spec.EndpointRef.UID = "endpoint"
		d.Spec.Event.Type = event
		d.Spec.Event.Subject = v1alpha1.WebhookEventSubject{Kind: "Finding", Name: v1alpha1.ResourceName(finding)}
	}).Build())
	d.Status = v1alpha1.WebhookDeliveryStatus{
		Phase: v1alpha1.WebhookDeliveryDelivered, FinishedAt: new(v1alpha1.NewTime(time.Now().Add(-ago))),
	}
	markObserved(t, d)
	return d
}

// While an endpoint with a backlog still has to get the creation of a finding without a status, the finding's deliveries
// stay, and the scans that it may name.
func TestACreationThatWaitsForABacklogHoldsDeliveriesAndScans(t *testing.T) {
	ns, left, long := env.Organization(t, "backlog"), findings.NewImplied(), time.Now().Add(-24*time.Hour)
	setRetention(t, "backlog", v1alpha1.Retention{FinishedDeliveries: duration(0), FinishedScans: duration(0)})
	finding := builder.Finding("f-new").In(ns).Mutate(func(f *v1alpha1.Finding) {
		f.Spec.Category, f.Spec.Scan = v1alpha1.CategoryCode, &v1alpha1.FindingScan{ScanID: "s-1"}
	}).Build()
	scan := builder.Scan("s-1", long).In(ns).Ended(long.Add(time.Minute), v1alpha1.ScanSucceeded).Build()
	last := builder.Scan("s-2", long.Add(time.Hour)).In(ns).Ended(long.Add(2*time.Hour), v1alpha1.ScanSucceeded).Build()
	env.Create(t, finding, scan, last)
	markObserved(t, scan, last)
	left.Leave(finding, true)
	held := delivered(t, ns, webhooks.DeliveryName(finding.UID, 1, "endpoint"), "finding.created", finding.Name, 2*time.Hour)
	other := delivered(t, ns, "d-other", "finding.created", "f-gone", time.Hour)
	start(t, Settings{Rate: quick.Rate, Interval: quick.Interval, Implied: left})
	env.AwaitGone(t, other)
	NewWithT(t).Expect(env.Gone(t, held)).To(BeFalse())
	NewWithT(t).Expect(env.Gone(t, scan)).To(BeFalse())
	NewWithT(t).Expect(left.IsRequested(finding)).To(BeFalse(), "a status would free nothing")

	left.Leave(finding, false)
	setRetention(t, "backlog", v1alpha1.Retention{FinishedDeliveries: duration(0), FinishedScans: duration(time.Hour)}) // to reconcile at once
	harness.Eventually(t, func(g Gomega) {
		g.Expect(left.IsRequested(finding)).To(BeTrue())
		g.Expect(env.Gone(t, scan)).To(BeTrue())
	})
	NewWithT(t).Expect(env.Gone(t, last)).To(BeFalse())
}

// A finding whose creation only its delivery records gets a status, so that the delivery can go.
func TestTheDeliveryOfACreationGoesOnceTheFindingHasBeenGivenAStatus(t *testing.T) {
	ns := env.Organization(t, "told")
	left := findings.NewImplied()
	start(t, Settings{Interval: quick.Interval, Implied: left}, findings.Settings{Implied: left}.SetupWithManager)
	finding := builder.Finding("f-new").In(ns).Build()
	env.Create(t, builder.Repository("repo").In(ns).Build(), builder.Project("proj").In(ns).Build(),
		builder.WebhookEndpoint("all").In(ns).Build(), finding)
	deliveries := &v1alpha1.WebhookDeliveryList{}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.List(t, g, env, deliveries, client.InNamespace(ns)).Items).To(HaveLen(1))
		g.Expect(left.Suffice(testenv.Get(t, g, env, finding))).To(BeTrue())
	})
	delivery := &deliveries.Items[0]
	delivery.Status = v1alpha1.WebhookDeliveryStatus{
		Phase: v1alpha1.WebhookDeliveryDelivered, FinishedAt: new(v1alpha1.NewTime(time.Now().Add(-time.Hour))),
	}
	markObserved(t, delivery)
	setRetention(t, "told", v1alpha1.Retention{FinishedDeliveries: duration(0)})
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, finding).Status.EmittedSeq).To(BeEquivalentTo(1))
	})
	setRetention(t, "told", v1alpha1.Retention{FinishedDeliveries: duration(0), FinishedScans: duration(time.Hour)}) // to reconcile at once
	env.AwaitGone(t, delivery)
}

// A restart in the middle continues with the rest; the rate applies to everything together.
func TestItGoesAtTheRateAndOverARestart(t *testing.T) {
	const n, rate = 13, 8 // slower than a busy machine
	names := []string{"rate-a", "rate-b"}
	long := time.Now().Add(-time.Hour)
	var wg sync.WaitGroup
	for _, name := range names {
		ns := env.Organization(t, name)
		wg.Go(func() {
			for i := range n {
				f := testenv.Create(t, env, builder.Finding(fmt.Sprintf("f-%d", i)).In(ns).Closed(long, "s").Build())
				markObserved(t, f)
			}
		})
	}
	wg.Wait()
	left := func(g Gomega) int {
		sum := 0
		for _, name := range names {
			list := testenv.List(t, g, env, &v1alpha1.FindingList{}, client.InNamespace(v1alpha1.NamespacePrefix+name))
			sum += len(list.Items)
		}
		return sum
	}
	for _, name := range names {
		setRetention(t, name, v1alpha1.Retention{ClosedFindings: duration(time.Minute)})
	}
	settings := Settings{Rate: rate, Interval: quick.Interval}
	g := NewWithT(t)
	// untilOneIsGone runs the controller, and returns what was left at a time soon after its first removal.
	untilOneIsGone := func() (stop func(), at time.Time, rest int) {
		before := left(g)
		stop = start(t, settings)
		harness.Eventually(t, func(g Gomega) {
			at = time.Now()
			rest = left(g)
			g.Expect(rest).To(BeNumerically("<", before))
		})
		return stop, at, rest
	}
	stop, _, _ := untilOneIsGone()
	stop()
	g.Expect(left(g)).To(BeNumerically(">", 0), "it was done before it could be stopped")
	_, began, rest := untilOneIsGone()
	harness.Eventually(t, func(g Gomega) { g.Expect(left(g)).To(BeZero()) })
	// One removal per organization may have been under way at that time, and the next one need not wait.
	if took, least := time.Since(began), time.Duration(rest-len(names)-1)*time.Second/rate; took < least {
		t.Errorf("%d objects went in %s, faster than %d a second", rest, took, rate)
	}
}

// Objects that become due during the last steps of a pass are not forgotten.
func TestSleepForgetsNothing(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(noon)
	r := newReconciler(nil, nil, Settings{Clock: now})
	r.agenda.change(nil, finding(func(f *v1alpha1.Finding) { f.Spec.Closed.At = v1alpha1.NewTime(noon.Add(time.Second)) }))
	o := builder.Organization("x").Mutate(func(o *v1alpha1.Organization) {
		o.Status.Namespace, o.Spec.Retention = "org-x", &v1alpha1.Retention{ClosedFindings: duration(0)}
	}).Build()
	p := r.under(o)
	g := NewWithT(t)
	done, err := r.work(t.Context(), o, p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(done).To(BeTrue())
	now.SetTime(noon.Add(2 * time.Second))
	g.Expect(r.sleep(o, p)).To(Equal(defaultInterval), "no sooner than another pass may be, and no later")
	g.Expect(r.sleep(o, &pass{held: true, reached: map[shelf]entry{closedFindings: {at: noon.Unix() + 5}}})).To(Equal(recheckInterval))
	g.Expect(r.sleep(o, &pass{reached: map[shelf]entry{closedFindings: {at: noon.Unix() + 5}}})).To(BeZero())

	p.note(closedFindings, entry{at: noon.Unix() + 5}, fateRetired)
	r.agenda.change(nil, finding(func(f *v1alpha1.Finding) { f.Name, f.Spec.Closed.At = "f-late", v1alpha1.NewTime(noon) }))
	g.Expect(r.sleep(o, p)).To(Equal(defaultInterval), "one that was added behind the position between two turns")
}

// Reconciling an organization with nothing due makes no request, and requeues for when something
// is.
func TestAReconcileWithNothingDueCostsNothing(t *testing.T) {
	r := newReconciler(handlertest.Gets(func(key client.ObjectKey, object client.Object) error {
		o, ok := object.(*v1alpha1.Organization)
		if !ok {
			t.Errorf("asked for %T %s", object, key)
			return nil
		}
		o.Name, o.Status.Namespace = "x", "org-x"
		o.Spec.Retention = &v1alpha1.Retention{ClosedFindings: duration(time.Hour)}
		return nil
	}), nil, Settings{Clock: clocktesting.NewFakePassiveClock(noon)})
	for i := range 100 { // the first of them is due in an hour and a minute
		r.agenda.change(nil, finding(func(f *v1alpha1.Finding) {
			f.Name = fmt.Sprint("f-", i)
			f.Spec.Closed.At = v1alpha1.NewTime(noon.Add(time.Duration(i+1) * time.Minute))
		}))
	}
	r.leases.Store("x", snapshot{at: noon.Add(time.Hour)}) // nor are the Leases due
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "x"}})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(Equal(time.Hour+time.Minute), "until the first of them is due")
	_, found := r.passes.Load("x")
	g.Expect(found).To(BeFalse())
}
