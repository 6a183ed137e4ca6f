package webhookdelivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/safely"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// bench runs a dispatcher whose work waits to be released, and records what ran.
type bench struct {
	*dispatcher
	t        *testing.T
	clock    *clocktesting.FakeClock
	began    chan types.NamespacedName
	finished sync.WaitGroup

	mu    sync.Mutex
	gates map[types.NamespacedName]chan health
}

func newBench(t *testing.T, l limits) *bench {
	t.Helper()
	l.grace = time.Millisecond // hanging work hangs until the end of the test
	clock := clocktesting.NewFakeClock(time.Now())
	b := &bench{
		dispatcher: newDispatcher(l, clock), t: t, clock: clock,
		began: make(chan types.NamespacedName, 1000), gates: map[types.NamespacedName]chan health{},
	}
	b.work = func(ctx context.Context, delivery types.NamespacedName) (health, error) {
		b.began <- delivery
		select {
		case after := <-b.gate(delivery):
			return after, nil
		case <-ctx.Done():
		}
		return healthUnknown, ctx.Err()
	}
	b.done = func(context.Context, types.NamespacedName, error) { b.finished.Done() }
	return b
}

func (b *bench) gate(delivery types.NamespacedName) chan health {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gates[delivery] == nil {
		b.gates[delivery] = make(chan health, 1)
	}
	return b.gates[delivery]
}

// named returns the endpoint of that name: "acme.team" is one of the organization acme, and "team" is the only one of its
// organization.
func named(endpoint string) types.NamespacedName {
	organization, _, _ := strings.Cut(endpoint, ".")
	return types.NamespacedName{Namespace: organization, Name: endpoint}
}

func (b *bench) ask(endpoint string, n int, known health) {
	b.finished.Add(1)
	delivery := types.NamespacedName{Name: fmt.Sprintf("%s/%d", endpoint, n)}
	b.submit(delivery, named(endpoint), known, false)
}

// release lets the work of that delivery end.
func (b *bench) release(delivery types.NamespacedName, after health) { b.gate(delivery) <- after }

func (b *bench) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = b.Start(ctx) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// next waits until n jobs have started, and returns their number per endpoint.
func (b *bench) next(n int) map[string]int {
	b.t.Helper()
	out := map[string]int{}
	for range n {
		endpoint, _, _ := strings.Cut(b.nextJob().Name, "/")
		out[endpoint]++
	}
	return out
}

// perOrganization adds up the numbers of each organization's endpoints.
func perOrganization(endpoints map[string]int) map[string]int {
	out := map[string]int{}
	for endpoint, n := range endpoints {
		out[named(endpoint).Namespace] += n
	}
	return out
}

// nextJob waits until a job has started, and returns its delivery.
func (b *bench) nextJob() types.NamespacedName {
	b.t.Helper()
	select {
	case delivery := <-b.began:
		return delivery
	case <-time.After(waitLimit):
		b.t.Fatal("no other job begins")
		return types.NamespacedName{}
	}
}

// wantsRunning fails the test unless n jobs run. Jobs are counted under the same lock under which
// they are started.
func (b *bench) wantsRunning(n int, reason string) {
	b.t.Helper()
	b.dispatcher.mu.Lock()
	defer b.dispatcher.mu.Unlock()
	running := 0
	for _, q := range b.queues {
		running += q.running
	}
	if running != n {
		b.t.Errorf("%s: %d run, want %d", reason, running, n)
	}
}

func (b *bench) running(endpoint string) int {
	b.dispatcher.mu.Lock()
	defer b.dispatcher.mu.Unlock()
	if q := b.queues[named(endpoint)]; q != nil {
		return q.running
	}
	return 0
}

// waitLimit bounds the waits of a test.
const waitLimit = 30 * time.Second

// until waits until the condition holds, which other goroutines bring about.
func (b *bench) until(holds func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(waitLimit); !holds(); {
		if time.Now().After(deadline) {
			b.t.Fatal("it does not come about")
		}
		<-time.After(time.Millisecond)
	}
}

var roomy = limits{overall: 16, failing: 8, slow: 16, perEndpoint: 4, slowAfter: time.Second}

func TestEndpointsTakeTurnsWithinTheLimits(t *testing.T) {
	b := newBench(t, limits{overall: 6, failing: 1, slow: 1, perEndpoint: 3, slowAfter: time.Second})
	for n := range 3 {
		b.ask("a", n, healthProven)
	}
	for _, endpoint := range []string{"b", "c", "d"} {
		b.ask(endpoint, 0, healthProven)
	}
	b.run(t)
	first := b.next(5)
	for endpoint, want := range map[string]int{"a": 2, "b": 1, "c": 1, "d": 1} {
		if first[endpoint] != want {
			t.Errorf("%d of %s were among the first: %v", first[endpoint], endpoint, first)
		}
	}
	b.wantsRunning(5, "one place is left")
	if b.hasRoom(named("b"), healthProven, false) || !b.hasRoom(named("e"), healthProven, false) {
		t.Error("the last place is not for an organization that has none")
	}
	b.ask("e", 0, healthProven)
	b.next(1)
	if b.hasRoom(named("f"), healthProven, false) {
		t.Error("there is room above the overall limit")
	}
	for _, name := range []string{"a/0", "a/1", "a/2", "b/0", "c/0", "d/0", "e/0"} {
		b.release(types.NamespacedName{Name: name}, healthProven)
	}
	b.finished.Wait()
	b.dispatcher.mu.Lock()
	defer b.dispatcher.mu.Unlock()
	if len(b.busy)+len(b.queues)+len(b.turns)+len(b.shares)+b.used[laneOverall]+b.used[laneFailing]+b.used[laneSlow] != 0 {
		t.Errorf("something is left: %+v %+v %+v %+v %+v", b.busy, b.queues, b.turns, b.shares, b.used)
	}
}

// One organization alone gets half of the places.
func TestOrganizationsLeaveRoomForEachOther(t *testing.T) {
	for reason, known := range map[string]health{"nobody knows the endpoints": healthUnknown, "they fail": healthFailing} {
		t.Run(reason, func(t *testing.T) {
			b := newBench(t, limits{overall: 8, failing: 8, slow: 8, perEndpoint: 1, slowAfter: time.Second})
			for _, organization := range []string{"acme", "globex", "initech", "umbrella", "hooli"} {
				for n := range 9 {
					b.ask(fmt.Sprintf("%s.%d", organization, n), 0, known)
				}
			}
			b.run(t)
			began := b.next(8)
			harness.Same(t, "what began",
				map[string]int{"acme": 4, "globex": 2, "initech": 1, "umbrella": 1}, perOrganization(began))
			b.release(types.NamespacedName{Name: "acme.0/0"}, known)
			harness.Same(t, "what began next", map[string]int{"hooli": 1}, perOrganization(b.next(1)))
			b.wantsRunning(8, "all places are taken")
		})
	}
}

// Else a few organizations whose receivers hang would keep the attempts of all others in the first pool.
func TestOrganizationsLeaveRoomForTheSlowWorkOfEachOther(t *testing.T) {
	b := newBench(t, limits{overall: 100, failing: 1, slow: 8, perEndpoint: 1, slowAfter: time.Second})
	b.run(t)
	for _, organization := range []string{"acme", "globex", "initech"} {
		for n := range 9 {
			b.ask(fmt.Sprintf("%s.%d", organization, n), 0, healthUnknown)
		}
		b.next(9)
		b.until(func() bool { return b.clock.Waiters() == 9 })
		b.clock.Step(time.Second)
	}
	b.dispatcher.mu.Lock()
	defer b.dispatcher.mu.Unlock()
	for organization, want := range map[string]int{"acme": 4, "globex": 2, "initech": 1} {
		harness.Same(t, "slow work of "+organization, want, b.shares[share{organization, laneSlow}])
	}
}

// Its receivers take a second or two for each answer, so they are never slow, and it has work for days.
func TestABusyOrganizationDoesNotSlowDownAnother(t *testing.T) {
	b := newBench(t, standardLimits)
	b.run(t)
	for i := range endpointLimit {
		for n := range 50 {
			b.ask(fmt.Sprintf("busy.%d", n), i, healthProven)
		}
	}
	b.next(overallLimit / 2)
	b.wantsRunning(overallLimit/2, "it has half of the places")
	for i := range endpointLimit + 1 {
		b.ask("other", i, healthProven)
	}
	harness.Same(t, "what begins of another", endpointLimit, b.next(endpointLimit)["other"])
	if !b.hasRoom(named("other"), healthProven, true) {
		t.Error("there is no room for a decision")
	}
}

func TestADeliveryIsWorkedOnOnceAtATime(t *testing.T) {
	b := newBench(t, roomy)
	b.run(t)
	b.ask("a", 0, healthProven)
	delivery := <-b.began
	b.submit(delivery, named("a"), healthProven, false)
	b.ask("a", 1, healthProven)
	other := <-b.began
	if other == delivery {
		t.Error("it was begun twice")
	}
	if !b.isBusy(delivery) {
		t.Error("it is not busy")
	}
	b.release(delivery, healthProven)
	b.release(other, healthProven)
	b.finished.Wait()
	if b.isBusy(delivery) {
		t.Error("it is still busy")
	}
}

// The dispatcher serves all organizations.
func TestAPanicFailsItsDeliveryAlone(t *testing.T) {
	b := newBench(t, roomy)
	b.work = func(context.Context, types.NamespacedName) (health, error) { panic("no such payload") }
	ended := make(chan error, 1)
	b.done = func(_ context.Context, _ types.NamespacedName, err error) { ended <- err }
	b.run(t)
	b.submit(types.NamespacedName{Name: "a/0"}, named("a"), healthProven, false)
	if err := <-ended; safely.Stack(err) == "" {
		t.Errorf("got %v, want the panic", err)
	}
	if b.isBusy(types.NamespacedName{Name: "a/0"}) {
		t.Error("it is still busy")
	}
}

// pauseQueue records the last pause.
type pauseQueue struct {
	watch.Queue
	pause time.Duration
}

func (q *pauseQueue) AddAfter(_ reconcile.Request, pause time.Duration) { q.pause = pause }

func TestOnlyAPanicIsLoggedWithAStack(t *testing.T) {
	panicked := safely.Func(func() error { panic("no such payload") })()
	for failed, want := range map[error]bool{panicked: true, errors.New("no such endpoint"): false, errBehind: false, nil: false} {
		var logged string
		ctx := logf.IntoContext(t.Context(), funcr.New(func(_, line string) { logged = line }, funcr.Options{}))
		r, q := &Reconciler{dispatcher: newDispatcher(roomy, clock.RealClock{})}, &pauseQueue{}
		harness.Must(t, r.enqueueEnded(ctx, q))
		r.dispatcher.done(ctx, types.NamespacedName{Name: "a"}, failed)
		if got := strings.Contains(logged, `"stack"`); got != want || errors.Is(failed, errBehind) && logged != "" {
			t.Errorf("logged %s", logged)
		}
		if long := q.pause >= errorDelay; long != (failed != nil) || q.pause < settleDelay {
			t.Errorf("after %v it is enqueued in %s", failed, q.pause)
		}
	}
}

func TestTheHealthOfAnEndpointFollowsFromItsStatus(t *testing.T) {
	succeeded := new(v1alpha1.Now())
	for want, status := range map[health]v1alpha1.WebhookEndpointStatus{
		healthUnknown: {},
		healthProven:  {LastSuccessAt: succeeded},
		healthFailing: {LastSuccessAt: succeeded, ConsecutiveFailures: 1},
	} {
		harness.Same(t, "health", want, healthOf(&v1alpha1.WebhookEndpoint{Status: status}))
	}
}

// An endpoint must have answered before it gets more than one attempt at a time, and loses that
// with its first failure.
func TestOnlyWhoAnswersGetsSeveralAtATime(t *testing.T) {
	b := newBench(t, roomy)
	b.run(t)
	for n := range 12 {
		b.ask("a", n, healthUnknown)
	}
	at := func(n int) types.NamespacedName { return types.NamespacedName{Name: fmt.Sprintf("a/%d", n)} }
	b.next(1)
	b.wantsRunning(1, "nothing is known of it")
	b.release(at(0), healthProven)
	b.next(4)
	b.wantsRunning(4, "it has answered")
	harness.Same(t, "attempts at a time", 4, b.running("a"))
	for n := 1; n < 5; n++ {
		b.release(at(n), healthFailing)
		b.until(func() bool { return b.running("a") == 4-n || n == 4 })
	}
	b.next(1)
	b.wantsRunning(1, "it has failed")
	b.release(at(5), healthFailing)
	b.next(1)
	b.wantsRunning(1, "it fails still")
	b.release(at(6), healthProven)
	b.next(4)
	b.wantsRunning(4, "it answers again")
}

// Thousands of deliveries may wait while the secret of their endpoint is replaced.
func TestAnEndpointThatCannotBeSentToRests(t *testing.T) {
	b := newBench(t, roomy)
	b.run(t)
	for n := range 9 {
		b.ask("a", n, healthProven)
	}
	at := func(n int) types.NamespacedName { return types.NamespacedName{Name: fmt.Sprintf("a/%d", n)} }
	b.next(4)
	for n := range 4 {
		b.release(at(n), healthUnsendable)
	}
	b.until(func() bool { return b.running("a") == 0 })
	b.ask("b", 0, healthProven)
	harness.Same(t, "what begins meanwhile", 1, b.next(1)["b"])
	b.wantsRunning(1, "nothing could be sent to the other")
	b.release(types.NamespacedName{Name: "b/0"}, healthProven)
	b.until(func() bool { return b.running("b") == 0 })

	b.clock.Step(errorDelay)
	b.next(1)
	b.wantsRunning(1, "it is tried again")
	b.release(at(4), healthProven)
	b.next(4)
	b.wantsRunning(4, "it can be sent to again")
	for n := 5; n < 9; n++ {
		b.release(at(n), healthUnsendable)
	}
	b.finished.Wait()
	b.clock.Step(errorDelay)
	b.dispatcher.mu.Lock()
	defer b.dispatcher.mu.Unlock()
	harness.Same(t, "queues that are left", 0, len(b.queues))
}

// Any number of endpoints that fail and hang get at most their share, and the others get the rest.
func TestFailingEndpointsLeaveRoomForTheOthers(t *testing.T) {
	b := newBench(t, standardLimits)
	b.run(t)
	for n := range 200 {
		for i := range 3 {
			b.ask(fmt.Sprintf("dead-%d", n), i, healthFailing)
		}
	}
	for endpoint, n := range b.next(failingLimit) {
		harness.Same(t, endpoint+": attempts at a time", 1, n)
	}
	b.wantsRunning(failingLimit, "the half of the failing ones is taken")
	for n := range 30 {
		b.ask("healthy", n, healthProven)
	}
	if got := b.next(endpointLimit); got["healthy"] != endpointLimit {
		t.Errorf("began %v", got)
	}
	b.ask("new", 0, healthUnknown)
	if got := b.next(1); got["new"] != 1 {
		t.Errorf("began %v", got)
	}
	// Endpoints that fail and hang do not use the slow lane.
	all := failingLimit + endpointLimit + 1
	b.until(func() bool { return b.clock.Waiters() == all })
	b.clock.Step(10 * slowAfter)
	b.wantsRunning(all, "time makes no more of them")
	b.release(types.NamespacedName{Name: "healthy/0"}, healthProven)
	for began := range b.next(1) {
		harness.Same(t, "what began", "healthy", began)
	}
	if b.hasRoom(named("dead-201"), healthFailing, false) {
		t.Error("there is room for one more that fails")
	}
}

// Hundreds of dead endpoints that were not known to be dead delay others only until they count as
// slow, not until their attempts time out.
func TestEndpointsThatHangAllAtOnceMakeRoomSoon(t *testing.T) {
	for reason, known := range map[string]health{"nobody knows them": healthUnknown, "they answered until now": healthProven} {
		t.Run(reason, func(t *testing.T) {
			b := newBench(t, standardLimits)
			for n := range 200 {
				b.ask(fmt.Sprintf("dead-%d", n), 0, known)
			}
			b.ask("healthy", 0, healthProven)
			b.run(t)
			if got := b.next(overallLimit); got["healthy"] != 0 {
				t.Fatal("the healthy one was not behind the others")
			}
			b.wantsRunning(overallLimit, "all is taken")
			b.until(func() bool { return b.clock.Waiters() == overallLimit })
			b.clock.Step(slowAfter)
			if got := b.next(200 - overallLimit + 1); got["healthy"] != 1 {
				t.Error("the healthy one still waits")
			}
		})
	}
}

// Slow work is bounded, too.
func TestSlowWorkIsBounded(t *testing.T) {
	b := newBench(t, limits{overall: 2, failing: 1, slow: 3, perEndpoint: 1, slowAfter: time.Second})
	for n := range 20 {
		b.ask(fmt.Sprintf("dead-%d", n), 0, healthUnknown)
	}
	b.run(t)
	for _, more := range []int{2, 2, 1} {
		b.next(more)
		b.until(func() bool { return b.clock.Waiters() == more })
		b.clock.Step(time.Second)
	}
	b.wantsRunning(5, "3 are slow, and 2 wait to be")
	b.dispatcher.mu.Lock()
	defer b.dispatcher.mu.Unlock()
	if b.used[laneSlow] != 3 || b.used[laneOverall] != 2 {
		t.Errorf("used %v", b.used)
	}
}

func TestAStopEndsWorkOnceTheGraceIsOver(t *testing.T) {
	b := newBench(t, limits{overall: 1, perEndpoint: 1, slowAfter: time.Second, grace: time.Millisecond})
	stop := b.run(t)
	b.ask("a", 0, healthProven)
	<-b.began
	b.submit(types.NamespacedName{Name: "never"}, named("a"), healthProven, false)
	stop()
	b.finished.Wait()
	select {
	case delivery := <-b.began:
		t.Errorf("%s was begun after the stop", delivery)
	default:
	}
}
