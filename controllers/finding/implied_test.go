package finding

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// With implied statuses, an open finding is written by its scanner alone, and shows its state nevertheless. Its first
// change is recorded as if the status had been stored before.
func TestAnOpenFindingNeedsNoStoredStatus(t *testing.T) {
	ns := beside(t, implying)
	g := NewWithT(t)
	plain, muted := builder.Finding("f-1").In(ns).Build(), builder.Finding("f-2").In(ns).Build()
	env.Create(t, plain, muted)
	created := plain.ResourceVersion
	env.Patch(t, muted, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	testenv.AwaitObserved(t, env, muted)

	selected := testenv.List(t, g, env, &v1alpha1.FindingList{}, client.InNamespace(ns), client.MatchingFields{"status.state": "open"})
	g.Expect(selected.Items).To(HaveLen(1))
	g.Expect(selected.Items[0].Name).To(Equal(plain.Name))
	g.Expect(selected.Items[0].Status).To(Equal(v1alpha1.FindingStatus{State: "open", UserStatus: "open"}))
	g.Expect(findingstate.IsRecorded(&selected.Items[0])).To(BeTrue())
	g.Expect(selected.Items[0].ResourceVersion).To(Equal(created), "somebody wrote it")

	env.Patch(t, plain, `{"spec":{"closed":{"at":"2026-01-01T00:00:00Z","scanID":"s-2"}}}`)
	testenv.AwaitObserved(t, env, plain)
	g.Expect(kinds(plain.Status.Transitions)).To(Equal([]v1alpha1.TransitionType{
		v1alpha1.TransitionCreated, v1alpha1.TransitionClosed,
	}))
	g.Expect(plain.Status.State).To(Equal(v1alpha1.FindingStateClosed))
}

// What follows from anything but the creation is stored: a missing project, and that an endpoint is not to be sent the
// creation, which it could ask for later, or gets it in a page.
func TestAStatusThatSaysMoreIsStored(t *testing.T) {
	implying.Start(t, env)
	astray := testenv.Create(t, env, builder.Finding("f-1").In(env.Namespace(t)).Build())
	for _, endpoint := range []*builder.WebhookEndpointBuilder{
		builder.WebhookEndpoint("e").Events("finding.closed"), builder.WebhookEndpoint("e").Batched(),
	} {
		ns := controllertest.Places(t, env)
		asked := builder.Finding("f-1").In(ns).Scan("s-1").Build()
		env.Create(t, builder.Scan("s-1", time.Now()).In(ns).Build(), endpoint.In(ns).Build(),
			builder.WebhookEndpoint("all").In(ns).Build(), asked)
		testenv.AwaitObserved(t, env, asked)
		// The status is stored first.
		harness.Eventually(t, func(g Gomega) {
			g.Expect(sentTo(t, g, ns, "all", "f-1")).To(ConsistOf("finding.created 1"))
		})
	}
	testenv.AwaitObserved(t, env, astray)
	testenv.AwaitReason(t, env, astray, v1alpha1.ReasonRepositoryNotFound)
}

// recordedByItsDelivery creates an endpoint "all" and a finding, and returns once only the delivery of the creation
// records it.
func recordedByItsDelivery(t *testing.T) *v1alpha1.Finding {
	t.Helper()
	ns := controllertest.Places(t, env)
	receive(t, ns, "all", nil)
	finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Build())
	created := finding.ResourceVersion
	harness.Eventually(t, func(g Gomega) {
		g.Expect(impliedStatuses.Suffice(testenv.Get(t, g, env, finding))).To(BeTrue())
		g.Expect(sentTo(t, g, ns, "all", "f-1")).To(ConsistOf("finding.created 1"))
	})
	NewWithT(t).Expect(finding.ResourceVersion).To(Equal(created), "somebody wrote it")
	return finding
}

// deleteDeliveries deletes the namespace's deliveries as a user does.
func deleteDeliveries(t *testing.T, ns string) {
	t.Helper()
	harness.Must(t, env.Client.DeleteAllOf(t.Context(), &v1alpha1.WebhookDelivery{}, client.InNamespace(ns)))
}

// The delivery is the record that a creation was sent. It is sent once, over restarts and whatever happens next, and an
// endpoint that has it needs no status even if it asks for something else now.
func TestADeliveryRecordsTheCreationOfAFinding(t *testing.T) {
	stop := implying.Alone(t, env)
	finding := recordedByItsDelivery(t)
	ns, g := finding.Namespace, NewWithT(t)
	stop()
	env.Patch(t, builder.WebhookEndpoint("all").In(ns).Build(), `{"spec":{"events":["finding.triaged"]}}`)

	implying.Alone(t, env)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(impliedStatuses.Suffice(testenv.Get(t, g, env, finding))).To(BeTrue())
	})
	g.Expect(finding.Status.UpdatedAt).To(BeNil())
	triage(t, finding, "x")
	caughtUp(t, finding, 2)
	g.Expect(sentTo(t, g, ns, "all", "f-1")).To(ConsistOf("finding.created 1", "finding.triaged 2"))
}

// If one of two deliveries of a creation cannot be made, the status is stored: it shows what is owed.
func TestACreationThatAnEndpointHasNotGotIsStored(t *testing.T) {
	refused := hooks{
		implied: NewImplied(),
		create: func(d *v1alpha1.WebhookDelivery) error {
			if d.Spec.EndpointRef.Name == "b" {
				return errCut
			}
			return nil
		},
	}
	ns, stop := started(t, refused.setup())
	g := NewWithT(t)
	receive(t, ns, "a", nil)
	receive(t, ns, "b", nil)
	finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Build())
	testenv.AwaitObserved(t, env, finding)
	g.Expect(finding.Status.EmittedSeq).To(BeZero())
	stop()

	implying.Alone(t, env)
	caughtUp(t, finding, 1)
	for _, endpoint := range []string{"a", "b"} {
		g.Expect(sentTo(t, g, ns, endpoint, "f-1")).To(ConsistOf("finding.created 1"))
	}
}

// A creation that an endpoint gets only after its backlog is sent then, once, over a restart too, and needs no status
// until the finding changes.
func TestACreationThatWaitsForABacklogNeedsNoStatus(t *testing.T) {
	stop := implying.Alone(t, env)
	ns, busy := overloaded(t)
	receive(t, ns, "well", nil)
	f := testenv.Create(t, env, builder.Finding("f-1").In(ns).Build())
	g, created := NewWithT(t), f.ResourceVersion
	owes := func(want bool) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			g.Expect(impliedStatuses.Suffice(testenv.Get(t, g, env, f))).To(BeTrue())
			g.Expect(impliedStatuses.Owes(f)).To(Equal(want))
		})
		g.Expect(f.ResourceVersion).To(Equal(created), "somebody wrote it")
	}
	owes(true)
	// The controllers' cache may get the endpoint after the finding.
	harness.Eventually(t, func(g Gomega) { g.Expect(sentTo(t, g, ns, "well", "f-1")).To(ConsistOf("finding.created 1")) })
	stop()

	implying.Alone(t, env)
	owes(true)
	controllertest.AwaitLastRequeue(t)
	controllertest.SetBacklogged(t, env, busy, "")
	owes(false)
	g.Expect(sentTo(t, g, ns, "busy", "f-1")).To(ConsistOf("finding.created 1"))
	g.Expect(sentTo(t, g, ns, "well", "f-1")).To(ConsistOf("finding.created 1"))

	triage(t, f, "x")
	caughtUp(t, f, 2)
	g.Expect(sentTo(t, g, ns, "busy", "f-1")).To(ConsistOf("finding.created 1", "finding.triaged 2"))
}

// owedTo returns a finding whose creation waits for the backlog of the endpoint.
func owedTo(t *testing.T) (*v1alpha1.Finding, *v1alpha1.WebhookEndpoint) {
	t.Helper()
	implying.Start(t, env)
	ns, busy := overloaded(t)
	finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Build())
	harness.Eventually(t, func(g Gomega) { g.Expect(impliedStatuses.Owes(finding)).To(BeTrue()) })
	return finding, testenv.Get(t, NewWithT(t), env, busy)
}

func TestNothingIsOwedAnyLongerOnceTheEndpointGoes(t *testing.T) {
	finding, busy := owedTo(t)
	created := finding.ResourceVersion
	triaged := testenv.Create(t, env, builder.Finding("f-2").In(finding.Namespace).Triage(v1alpha1.UserStatusMuted, "x").Build())
	testenv.AwaitObserved(t, env, triaged)
	g := NewWithT(t)
	g.Expect(triaged.Status.EmittedSeq).To(BeZero())
	controllertest.AwaitLastRequeue(t)
	harness.Must(t, env.Client.Delete(t.Context(), busy))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(impliedStatuses.Suffice(testenv.Get(t, g, env, finding))).To(BeTrue())
		g.Expect(impliedStatuses.Owes(finding)).To(BeFalse())
	})
	g.Expect(finding.ResourceVersion).To(Equal(created), "somebody wrote it")
	caughtUp(t, triaged, 2)
}

// An endpoint that stops asking for creations during its backlog does not get one that it asks for again later: the
// status says so.
func TestAnOwedCreationIsNotSentLaterIfTheEndpointStopsAskingForIt(t *testing.T) {
	finding, busy := owedTo(t)
	controllertest.AwaitLastRequeue(t)
	env.Patch(t, busy, `{"spec":{"events":["finding.closed"]}}`)
	caughtUp(t, finding, 1)
	env.Patch(t, busy, `{"spec":{"events":null}}`)
	controllertest.SetBacklogged(t, env, busy, "")
	triage(t, finding, "x")
	caughtUp(t, finding, 2)
	NewWithT(t).Expect(sentTo(t, NewWithT(t), finding.Namespace, "busy", "f-1")).To(ConsistOf("finding.triaged 2"))
}

// Pages need the transition in a status.
func TestAnOwedCreationIsStoredIfTheEndpointBeginsToBatch(t *testing.T) {
	finding, busy := owedTo(t)
	controllertest.AwaitLastRequeue(t)
	env.Patch(t, busy, `{"spec":{"batch":"PerScan"}}`)
	testenv.AwaitObserved(t, env, finding)
	NewWithT(t).Expect(finding.Status.EmittedSeq).To(BeZero())
	controllertest.SetBacklogged(t, env, busy, "")
	caughtUp(t, finding, 1)
	NewWithT(t).Expect(impliedStatuses.Owes(finding)).To(BeFalse())
}

// Before the delivery that records a creation goes, the status takes over, as retention requests. So it does when
// somebody else has deleted the delivery, which is not made again.
func TestTheStatusTakesOverFromTheDeliveryOfACreation(t *testing.T) {
	for reason, deleted := range map[string]bool{"retention requests it": false, "somebody deletes it": true} {
		t.Run(reason, func(t *testing.T) {
			stop := implying.Alone(t, env)
			finding := recordedByItsDelivery(t)
			ns, g := finding.Namespace, NewWithT(t)
			if deleted {
				deleteDeliveries(t, ns)
			} else {
				impliedStatuses.Request(finding)
			}
			caughtUp(t, finding, 1)
			stop()
			if !deleted {
				deleteDeliveries(t, ns)
			}

			implying.Alone(t, env)
			triage(t, finding, "x")
			caughtUp(t, finding, 2)
			g.Expect(sentTo(t, g, ns, "all", "f-1")).To(ConsistOf("finding.triaged 2"), "it was made again")
		})
	}
}

// A change that comes before the status does not bring back a delivery that was deleted.
func TestALostDeliveryIsNotMadeAgainByAChange(t *testing.T) {
	implying.Start(t, env)
	finding := recordedByItsDelivery(t)
	g := NewWithT(t)
	deleteDeliveries(t, finding.Namespace)
	harness.Eventually(t, func(g Gomega) { g.Expect(impliedStatuses.IsRequested(finding)).To(BeTrue()) })
	triage(t, finding, "x")
	caughtUp(t, finding, 2)
	g.Expect(sentTo(t, g, finding.Namespace, "all", "f-1")).To(ConsistOf("finding.triaged 2"))
	g.Expect(impliedStatuses.IsRequested(finding)).To(BeFalse())
}

// A rescan that adds only evidence changes no facts, even if the finding has no status.
func TestARescanThatChangesNoFactsSendsNothingOfAFindingWithoutAStatus(t *testing.T) {
	implying.Start(t, env)
	finding := recordedByItsDelivery(t)
	g := NewWithT(t)
	env.Patch(t, finding, `{"spec":{"evidence":"{}"}}`)
	caughtUp(t, finding, 1)
	g.Expect(kinds(finding.Status.Transitions)).To(Equal([]v1alpha1.TransitionType{v1alpha1.TransitionCreated}))
	g.Expect(sentTo(t, g, finding.Namespace, "all", "f-1")).To(ConsistOf("finding.created 1"))
}

// Without the flag again, each finding gets the status that it would have had, and records its creation once, also if it
// changes meanwhile.
func TestStatusesAreStoredOnceTheyAreNoLongerImplied(t *testing.T) {
	stop := implying.Alone(t, env)
	left, seen := leftWithoutStatus(t)
	changed, _ := leftWithoutStatus(t)
	stop()
	env.Patch(t, changed, `{"spec":{"closed":{"at":"2026-01-01T00:00:00Z","scanID":"s-2"}}}`)
	storing.Alone(t, env)
	testenv.AwaitReady(t, env, left)
	g := NewWithT(t)
	g.Expect(kinds(left.Status.Transitions)).To(Equal([]v1alpha1.TransitionType{v1alpha1.TransitionCreated}))
	g.Expect(left.Status.UpdatedAt.Unix()).To(Equal(seen.CreationTimestamp.Unix()))
	testenv.AwaitObserved(t, env, changed)
	g.Expect(kinds(changed.Status.Transitions)).To(Equal([]v1alpha1.TransitionType{
		v1alpha1.TransitionCreated, v1alpha1.TransitionClosed,
	}))
}

// A finding may be left before the cache shows an endpoint that is older than the finding.
func TestAnEndpointGetsAFindingThatWasLeftBeforeTheCacheShowedIt(t *testing.T) {
	ns := beside(t, implying)
	g := NewWithT(t)
	before, later := createdAt(t, ns, "f-before", time.Now().Add(-time.Hour)), createdAt(t, ns, "f-later", time.Now().Add(time.Hour))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(impliedStatuses.Suffice(testenv.Get(t, g, env, before))).To(BeTrue())
		g.Expect(impliedStatuses.Suffice(testenv.Get(t, g, env, later))).To(BeTrue())
	})
	receive(t, ns, "all", nil)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(sentTo(t, g, ns, "all", "f-later")).To(ConsistOf("finding.created 1"))
	})
	g.Expect(sentTo(t, g, ns, "all", "f-before")).To(BeEmpty(), "the endpoint gets no event from before its creation")
	g.Expect(testenv.Get(t, g, env, before).Status.UpdatedAt).To(BeNil())
}

// createdAt stores a finding with that time of creation.
func createdAt(t *testing.T, ns, name string, at time.Time) *v1alpha1.Finding {
	t.Helper()
	finding := builder.Finding(name).In(ns).Build()
	harness.Must(t, putFinding(t, finding, at))
	return finding
}

// A status that says that the project is missing stays, and says so when the project is back.
func TestAFindingWithoutAStatusLosesItsProject(t *testing.T) {
	implying.Start(t, env)
	left, _ := leftWithoutStatus(t)
	ready := func(status metav1.ConditionStatus) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			ready := testenv.Ready(t, g, env, left)
			g.Expect(ready.Status).To(Equal(status))
		})
	}
	harness.Must(t, env.Client.Delete(t.Context(), builder.Project("proj").In(left.Namespace).Build()))
	ready(metav1.ConditionFalse)
	env.Create(t, builder.Project("proj").In(left.Namespace).Build())
	ready(metav1.ConditionTrue)
	NewWithT(t).Expect(kinds(left.Status.Transitions)).To(Equal([]v1alpha1.TransitionType{v1alpha1.TransitionCreated}))
}

// An endpoint receives no events from before its creation, even about a finding without a status.
func TestALaterEndpointReceivesNoCreationThatWasImplied(t *testing.T) {
	implying.Start(t, env)
	left, seen := leftWithoutStatus(t)
	ns := left.Namespace
	harness.Eventually(t, func(g Gomega) { // times are whole seconds
		g.Expect(time.Now().Unix()).To(BeNumerically(">", seen.CreationTimestamp.Unix()))
	})
	env.Create(t, builder.WebhookEndpoint("e").In(ns).Build())
	deliveriesOf := func(g Gomega, finding string) (types []string) {
		deliveries := testenv.List(t, g, env, &v1alpha1.WebhookDeliveryList{}, client.InNamespace(ns))
		for i := range deliveries.Items {
			if event := &deliveries.Items[i].Spec.Event; string(event.Subject.Name) == finding {
				types = append(types, event.Type)
			}
		}
		return types
	}
	later := builder.Finding("f-2").In(ns).Build()
	decisions := []string{"active", "muted"}
	harness.Eventually(t, func(g Gomega) { // the controller's cache may have the endpoint later than what is decided
		decisions[0], decisions[1] = decisions[1], decisions[0]
		env.Patch(t, later, `{"spec":{"triage":{"userStatus":"`+decisions[1]+`"}}}`)
		g.Expect(deliveriesOf(g, "f-2")).NotTo(BeEmpty())
	})
	env.Patch(t, left, `{"spec":{"closed":{"at":"2026-01-01T00:00:00Z","scanID":"s-2"}}}`)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(deliveriesOf(g, "f-1")).To(Equal([]string{"finding.closed"}))
		emitted := testenv.Get(t, g, env, left).Status
		g.Expect(emitted.EmittedSeq).To(Equal(emitted.Transitions[len(emitted.Transitions)-1].Seq))
	})
}

// leftWithoutStatus creates a finding, and waits until its controller has come past it.
func leftWithoutStatus(t *testing.T) (left, created *v1alpha1.Finding) {
	t.Helper()
	ns := controllertest.Places(t, env)
	left = testenv.Create(t, env, builder.Finding("f-1").In(ns).Build())
	created = left.DeepCopy()
	later := testenv.Create(t, env, builder.Finding("f-2").In(ns).Triage(v1alpha1.UserStatusMuted, "").Build())
	testenv.AwaitObserved(t, env, later)
	testenv.Get(t, NewWithT(t), env, left)
	NewWithT(t).Expect(left.ResourceVersion).To(Equal(created.ResourceVersion), "somebody wrote it")
	return left, created
}

// Each of thousands of endpoints would have all findings of its namespace read. The first that is not served still does:
// a finding may have been left without a status just before.
func TestAnEndpointBeyondThoseServedConcernsNoFinding(t *testing.T) {
	created := time.Now().Truncate(time.Second) // as the API server stores it
	newest := builder.Finding("f").In("org-a").Build()
	newest.CreationTimestamp = metav1.NewTime(created.Add(time.Hour))
	cache := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(newest)
	endpoints := make([]*v1alpha1.WebhookEndpoint, webhooks.MaxServed+2)
	for i := range endpoints {
		endpoints[i] = builder.WebhookEndpoint(fmt.Sprintf("e-%02d", i)).In("org-a").Build()
		endpoints[i].CreationTimestamp = metav1.NewTime(created.Add(time.Duration(i) * time.Second))
		cache.WithObjects(endpoints[i])
	}
	r := &Reconciler{}
	r.Client = cache.Build()
	for i, want := range map[int]int{0: 1, webhooks.MaxServed: 1, webhooks.MaxServed + 1: 0} {
		for _, again := range []bool{false, true} { // deleted and created again while the watch was down
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
			if h := r.enqueueForNewEndpoint(); again {
				former := endpoints[i].DeepCopy()
				former.UID = "former"
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: former, ObjectNew: endpoints[i]}, q)
			} else {
				h.Create(t.Context(), event.CreateEvent{Object: endpoints[i]}, q)
			}
			done := make(chan struct{}) // an organization's lists are made one after the other
			watch.Later(func(context.Context, watch.Change, watch.Queue) { close(done) })(
				t.Context(), watch.Change{After: endpoints[i]}, q)
			<-done
			harness.Same(t, fmt.Sprintf("findings of endpoint %d, created again: %t", i+1, again), want, q.Len())
			q.ShutDown()
		}
	}
}

// Tens of thousands of findings may refer to one repository.
func TestManyFindingsOfOneChangeGoLast(t *testing.T) {
	for n, want := range map[int]int{watch.Many: 0, watch.Many + 1: handler.LowPriority} {
		r := &Reconciler{}
		r.Client = handlertest.Lists(func(list *v1alpha1.FindingList) {
			for i := range n {
				list.Items = append(list.Items, *builder.Finding(fmt.Sprint("f-", i)).In("org-a").Build())
			}
		})
		for what, change := range map[string]func(watch.Queue){
			"repository": func(q watch.Queue) {
				deleted := event.DeleteEvent{Object: builder.Repository("r").In("org-a").Build()}
				r.enqueueFindings(waitsForRepository, refersToRepository).Delete(t.Context(), deleted, q)
			},
			"endpoint": func(q watch.Queue) {
				created := event.CreateEvent{Object: builder.WebhookEndpoint("e").In("org-a").Build()}
				r.enqueueForNewEndpoint().Create(t.Context(), created, q)
			},
		} {
			harness.Same(t, fmt.Sprintf("%s: priority of %d", what, n), want, handlertest.Priority(t, change))
		}
	}
}
