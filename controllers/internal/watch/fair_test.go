package watch

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// fairBench plays the workers of a fair queue.
type fairBench struct {
	*fairQueue
	clock *clocktesting.FakePassiveClock
}

func newFairBench(t *testing.T) fairBench {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	q := newFairQueue("", workqueue.DefaultTypedControllerRateLimiter[ctrl.Request](), clock)
	t.Cleanup(q.ShutDown)
	return fairBench{q, clock}
}

func requestFor(namespace, name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func (b fairBench) add(priority int, namespace string, names ...string) {
	for _, name := range names {
		b.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, requestFor(namespace, name))
	}
}

// begin gives the next request to a worker.
func (b fairBench) begin(t *testing.T) ctrl.Request {
	t.Helper()
	if b.Len() == 0 {
		t.Fatal("nothing waits")
	}
	r, _, _ := b.GetWithPriority()
	return r
}

// work has one worker do the next requests, which take as long as their namespace needs, and returns them.
func (b fairBench) work(t *testing.T, requests int, takes map[string]time.Duration) (done []string) {
	t.Helper()
	for range requests {
		r := b.begin(t)
		b.clock.SetTime(b.clock.Now().Add(takes[r.Namespace]))
		b.Done(r)
		done = append(done, r.String())
	}
	return done
}

func TestWhatADecidingNamespaceCostsDelaysItselfOnly(t *testing.T) {
	b, takes := newFairBench(t), map[string]time.Duration{"busy": 400 * time.Millisecond, "other": 5 * time.Millisecond}
	b.add(first, "busy", "a", "b", "c", "d", "e", "f")
	b.work(t, 1, takes)
	b.add(0, "other", "1", "2", "3")
	b.add(first, "other", "decided")
	harness.Same(t, "done", []string{"other/decided", "other/1", "other/2", "other/3", "busy/b"}, b.work(t, 5, takes))
}

func TestANamespaceGetsNoSecondWorkerWhileAnotherWaits(t *testing.T) {
	b := newFairBench(t)
	b.add(0, "slow", "a", "b")
	slow := b.begin(t)
	b.add(0, "other", "1", "2")
	for range 2 {
		other := b.begin(t)
		if other.Namespace != "other" {
			t.Fatalf("%s got the second worker", other)
		}
		b.clock.SetTime(b.clock.Now().Add(time.Second))
		b.Done(other)
	}
	harness.Same(t, "what comes before the rest of the other namespace", requestFor("slow", "b"), b.begin(t))
	b.Done(slow)
}

func TestASerialQueueGivesANamespaceOneWorker(t *testing.T) {
	b := newFairBench(t)
	b.turns.serial = true
	b.add(0, "slow", "a", "b")
	slow := b.begin(t)
	harness.Same(t, "requests for another worker", 0, b.Len())
	b.add(0, "slow", "c")
	b.add(0, "other", "1")
	harness.Same(t, "what another worker does", []string{"other/1"}, b.work(t, 1, nil))
	harness.Same(t, "requests for another worker", 0, b.Len())
	b.Done(slow)
	harness.Same(t, "what follows", []string{"slow/b", "slow/c"}, b.work(t, 2, nil))
}

func TestAnIdleNamespaceSavesUpNoTime(t *testing.T) {
	b, takes := newFairBench(t), map[string]time.Duration{"busy": time.Second, "idle": time.Second}
	b.add(0, "busy", "a", "b", "c", "d", "e", "f", "g")
	b.work(t, 4, takes)
	b.add(0, "idle", "1", "2", "3", "4")
	if got := b.work(t, 4, takes); !slices.Contains(got, "busy/e") {
		t.Errorf("the other namespace waits for all of %v", got)
	}
}

func TestANamespaceWhoseRequestHungWaitsForOthersNoLongerThanSeconds(t *testing.T) {
	b, takes := newFairBench(t), map[string]time.Duration{"hung": 2 * time.Minute, "other": time.Second}
	b.add(0, "hung", "a", "b")
	b.work(t, 1, takes)
	for i := range 20 {
		b.add(0, "other", strconv.Itoa(i))
	}
	if got := b.work(t, 15, takes); !slices.Contains(got, "hung/b") {
		t.Errorf("it waits for all of %v", got)
	}
}

func TestANamespaceIsForgottenOnceItsShareIsThatOfANewOne(t *testing.T) {
	b, takes := newFairBench(t), map[string]time.Duration{"gone": time.Second, "busy": time.Second}
	b.add(0, "gone", "a")
	b.work(t, 1, takes)
	b.add(0, "busy", "1", "2", "3")
	b.work(t, 3, takes)
	if _, known := b.turns.shares["gone"]; known {
		t.Error("its share is kept")
	}
}

func TestPrioritiesOrderTheRequestsOfANamespace(t *testing.T) {
	b := newFairBench(t)
	b.add(last, "ns", "last", "raised to first", "raised")
	b.add(0, "ns", "ordinary")
	b.add(first, "ns", "first")
	b.add(first, "ns", "raised to first")
	b.Add(requestFor("ns", "raised"))
	b.add(last, "ns", "first", "ordinary") // lowers nothing
	want := []string{"ns/first", "ns/raised to first", "ns/ordinary", "ns/raised", "ns/last"}
	harness.Same(t, "done", want, b.work(t, len(want), nil))
	harness.Same(t, "left", 0, b.Len())
}

func TestWhatChangesWhileItIsReconciledKeepsItsPriority(t *testing.T) {
	b := newFairBench(t)
	b.add(0, "ns", "decided")
	running := b.begin(t)
	b.add(0, "ns", "ordinary")
	b.add(first, "ns", "decided")
	b.Done(running)
	r, priority, _ := b.GetWithPriority()
	if r != running || priority != first {
		t.Errorf("%s comes next, with priority %d", r, priority)
	}
}

func TestADelayedRequestKeepsItsPriority(t *testing.T) {
	b := newFairBench(t)
	for _, o := range []priorityqueue.AddOpts{
		{RateLimited: true, Priority: new(first)}, {After: time.Millisecond, Priority: new(Due)},
		{After: time.Millisecond, Priority: new(last)},
	} {
		b.AddWithOpts(o, requestFor("ns", "delayed"))
		r, priority, _ := b.GetWithPriority()
		harness.Same(t, "the priority", *o.Priority, priority)
		b.Done(r)
	}
	harness.Same(t, "lanes that are kept", 0, len(b.turns.delayed))
}

// A retry behind others must not lose the lane of an end that is near.
func TestAShorterDelayInALowerLaneKeepsTheBetterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFairBench(t)
		b.AddWithOpts(priorityqueue.AddOpts{After: time.Hour, Priority: new(Due)}, requestFor("ns", "ends"))
		b.AddWithOpts(priorityqueue.AddOpts{After: time.Minute, Priority: new(last)}, requestFor("ns", "ends"))
		b.add(0, "ns", "backlog")
		<-time.After(time.Minute)
		synctest.Wait()
		harness.Same(t, "done", []string{"ns/ends", "ns/backlog"}, b.work(t, 2, nil))
	})
}

func TestADelayedRequestIsNotAheadOfNewDecisions(t *testing.T) {
	b := newFairBench(t)
	b.AddWithOpts(priorityqueue.AddOpts{After: time.Millisecond, Priority: new(first)}, requestFor("ns", "delayed"))
	r, priority, _ := b.GetWithPriority()
	harness.Same(t, "the priority", Due, priority)
	b.Done(r)
}

func TestARequestThatIsDueMuchLaterRaisesNothingThatIsAddedMeanwhile(t *testing.T) {
	b := newFairBench(t)
	b.AddWithOpts(priorityqueue.AddOpts{After: time.Hour, Priority: new(first)}, requestFor("ns", "decided"))
	b.AddWithOpts(priorityqueue.AddOpts{After: time.Hour}, requestFor("ns", "ordinary"))
	b.add(last, "ns", "decided", "ordinary")
	b.add(0, "ns", "new")
	want := []string{"ns/new", "ns/decided", "ns/ordinary"}
	harness.Same(t, "done", want, b.work(t, len(want), nil))
}

// A start and a policy enqueue findings behind all others.
func TestAnEndComesBehindNewDecisionsAndAheadOfTheBacklogWhateverLaneItsFindingWaitsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFairBench(t)
		b.add(last, "ns", "restarted")
		b.work(t, 1, nil)
		for _, name := range []string{"restarted", "running", "judged", "imported"} {
			b.AddWithOpts(priorityqueue.AddOpts{After: time.Hour, Priority: new(Due)}, requestFor("ns", name))
		}
		b.add(first, "ns", "running")
		running := b.begin(t)
		b.add(last, "ns", "judged")
		b.add(0, "ns", "backlog", "imported")
		<-time.After(time.Hour)
		synctest.Wait()
		b.add(first, "ns", "decided")
		b.clock.SetTime(b.clock.Now().Add(time.Second))
		b.Done(running)
		b.add(0, "other", "1")
		got := b.work(t, 7, nil)
		slices.Sort(got[2:6])
		want := []string{"other/1", "ns/decided", "ns/imported", "ns/judged", "ns/restarted", "ns/running", "ns/backlog"}
		harness.Same(t, "done", want, got)
	})
}

func TestAShutdownIsReportedThoughRequestsWait(t *testing.T) {
	b := newFairBench(t)
	b.add(0, "ns", "a", "b")
	b.ShutDown()
	if _, _, shutdown := b.GetWithPriority(); !shutdown {
		t.Error("a worker goes on")
	}
}
