package watch

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// NewFairQueue returns a queue that shares the workers of a controller among the namespaces with waiting requests, so
// that no namespace waits for the backlog of another: see turns. Within a namespace, requests added by EnqueueFirst
// come first, then those of the priority Due, and those added by AddLast last. All controllers use it.
func NewFairQueue(name string, pauses workqueue.TypedRateLimiter[ctrl.Request]) Queue {
	return newFairQueue(name, pauses, clock.RealClock{})
}

// NewSerialQueue returns a NewFairQueue that gives each namespace one worker at most. It is for requests that take
// long: those of one namespace leave the other workers to other namespaces.
func NewSerialQueue(name string, pauses workqueue.TypedRateLimiter[ctrl.Request]) Queue {
	q := newFairQueue(name, pauses, clock.RealClock{})
	q.turns.serial = true
	return q
}

func newFairQueue(name string, pauses workqueue.TypedRateLimiter[ctrl.Request], clock clock.PassiveClock) *fairQueue {
	order := &turns{
		clock: clock, delayed: map[ctrl.Request]int{}, wanted: map[ctrl.Request]int{},
		waiting: map[ctrl.Request]int{}, running: map[ctrl.Request]run{}, shares: map[string]*share{},
	}
	ready := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[ctrl.Request]{Name: name, Queue: order})
	delayed := workqueue.NewTypedDelayingQueueWithConfig(
		workqueue.TypedDelayingQueueConfig[ctrl.Request]{Name: name, Queue: afterDelay{ready, order}})
	limited := workqueue.NewTypedRateLimitingQueueWithConfig(pauses,
		workqueue.TypedRateLimitingQueueConfig[ctrl.Request]{DelayingQueue: delayed})
	return &fairQueue{limited, ready, order}
}

// fairQueue hands out requests in the order of turns.
type fairQueue struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]
	ready workqueue.TypedInterface[ctrl.Request]
	turns *turns
}

// afterDelay is the queue of ready requests to which the delaying queue adds those whose delay is over.
type afterDelay struct {
	workqueue.TypedInterface[ctrl.Request]
	turns *turns
}

func (q afterDelay) Add(r ctrl.Request) {
	q.turns.wantDelayed(r)
	q.TypedInterface.Add(r)
}

var _ priorityqueue.PriorityQueue[ctrl.Request] = (*fairQueue)(nil)

func (q *fairQueue) Add(r ctrl.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, r) }

func (q *fairQueue) AddAfter(r ctrl.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, r)
}

func (q *fairQueue) AddRateLimited(r ctrl.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, r)
}

func (q *fairQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...ctrl.Request) {
	lane := laneOf(ptr.Deref(o.Priority, 0))
	for _, r := range requests {
		switch {
		case o.RateLimited:
			q.turns.delay(r, lane)
			q.TypedRateLimitingInterface.AddRateLimited(r)
		case o.After > 0:
			q.turns.delay(r, min(lane, Due)) // what can wait is not ahead of new decisions
			q.TypedRateLimitingInterface.AddAfter(r, o.After)
		default:
			q.turns.want(r, lane)
			q.ready.Add(r)
		}
	}
}

// GetWithPriority reports a shutdown even while requests wait, because the next process reconciles them.
func (q *fairQueue) GetWithPriority() (r ctrl.Request, priority int, shutdown bool) {
	r, shutdown = q.Get()
	return r, q.turns.laneOfRunning(r), shutdown || q.ShuttingDown()
}

func (q *fairQueue) Done(r ctrl.Request) {
	q.turns.done(r)
	q.TypedRateLimitingInterface.Done(r)
}

// laneOf returns the lane for requests of that priority: first, Due, 0 or last.
func laneOf(priority int) int {
	switch {
	case priority > Due:
		return first
	case priority > 0:
		return Due
	case priority < 0:
		return last
	}
	return 0
}

// turns orders ready requests: the next one belongs to the namespace that has the fewest workers, and among those to
// the one that has used the least worker time. So slow or many requests delay their own namespace.
type turns struct {
	clock clock.PassiveClock
	// serial means that a namespace has one worker at most.
	serial bool
	mu     sync.Mutex
	// delayed holds the best lane of each request's pending delays. The request gets it when the first of them is over,
	// also if it is waiting by then. Adding it before does not give it the lane: with thousands of decisions that end some
	// day, a changed policy would come before everything else.
	// wanted holds the lanes of requests about to be added, maybe once they no longer run; waiting those of ready ones.
	delayed, wanted, waiting map[ctrl.Request]int
	running                  map[ctrl.Request]run
	// shares holds the namespaces with waiting or running requests, and those that have used more than least.
	shares map[string]*share
	// least is the time used by the waiting namespace that has used the least. A namespace that returns starts with it, so
	// that idle time earns no credit.
	least time.Duration
}

// run is when a worker got a request, and from which lane.
type run struct {
	began time.Time
	lane  int
}

// share holds the requests of a namespace, and its use of the workers.
type share struct {
	// lanes hold the waiting requests. A request that was moved to another lane leaves an outdated entry.
	lanes            map[int][]ctrl.Request
	waiting, running int
	used             time.Duration
}

// want notes the lane of a request that is about to be added, unless it has a better one. A request that is ready
// already moves there.
func (t *turns) want(r ctrl.Request, lane int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if is, ready := t.waiting[r]; ready {
		if lane > is {
			t.place(r, lane)
		}
	} else {
		raise(t.wanted, r, lane)
	}
}

// delay notes the lane of a request that is about to be delayed, unless it has a better one.
func (t *turns) delay(r ctrl.Request, lane int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	raise(t.delayed, r, lane)
}

// wantDelayed calls want for a request whose delay is over.
func (t *turns) wantDelayed(r ctrl.Request) {
	t.mu.Lock()
	lane := t.delayed[r]
	delete(t.delayed, r)
	t.mu.Unlock()
	t.want(r, lane)
}

// raise notes the lane of a request, unless it has a better one.
func raise(lanes map[ctrl.Request]int, r ctrl.Request, lane int) {
	if is, known := lanes[r]; !known || lane > is {
		lanes[r] = lane
	}
}

// place puts the request into that lane of its namespace.
func (t *turns) place(r ctrl.Request, lane int) {
	s := t.shares[r.Namespace]
	t.waiting[r] = lane
	s.lanes[lane] = append(s.lanes[lane], r)
}

// Push implements workqueue.Queue.
func (t *turns) Push(r ctrl.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shares[r.Namespace]
	if s == nil {
		s = &share{lanes: map[int][]ctrl.Request{}}
		t.shares[r.Namespace] = s
	}
	if s.waiting == 0 {
		s.used = max(s.used, t.least)
	}
	s.waiting++
	t.place(r, t.wanted[r])
	delete(t.wanted, r)
}

// Touch implements workqueue.Queue. It does nothing: want has moved the request.
func (t *turns) Touch(ctrl.Request) {}

// Len implements workqueue.Queue. It leaves out the requests of blocked namespaces. No other worker has to be woken for
// them later: the one whose request blocks the namespace asks for its next request then.
func (t *turns) Len() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.shares {
		if !t.blocked(s) {
			n += s.waiting
		}
	}
	return n
}

// blocked reports whether the namespace's waiting requests have to wait for a running one.
func (t *turns) blocked(s *share) bool { return t.serial && s.running > 0 }

// Pop implements workqueue.Queue.
func (t *turns) Pop() ctrl.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.next()
	r, lane := s.take(t.waiting)
	delete(t.waiting, r)
	if s.waiting--; s.waiting == 0 {
		clear(s.lanes) // all entries left are outdated
	}
	s.running++
	t.running[r] = run{t.clock.Now(), lane}
	return r
}

// next returns the namespace whose turn it is, and drops those for which a new entry would be the same.
func (t *turns) next() (next *share) {
	var least *share
	for namespace, s := range t.shares {
		if s.waiting == 0 {
			if s.running == 0 && s.used <= t.least {
				delete(t.shares, namespace)
			}
			continue
		}
		if least == nil || s.used < least.used {
			least = s
		}
		if t.blocked(s) {
			continue
		}
		if next == nil || s.running < next.running || s.running == next.running && s.used < next.used {
			next = s
		}
	}
	t.least = max(t.least, least.used)
	return next
}

// take removes and returns the next request and its lane, given the lanes of the waiting requests.
func (s *share) take(waiting map[ctrl.Request]int) (ctrl.Request, int) {
	for _, lane := range [...]int{first, Due, 0, last} {
		next := slices.IndexFunc(s.lanes[lane], func(r ctrl.Request) bool {
			is, waits := waiting[r]
			return waits && is == lane
		})
		if next >= 0 {
			r := s.lanes[lane][next]
			s.lanes[lane] = s.lanes[lane][next+1:]
			return r, lane
		}
		delete(s.lanes, lane) // all entries are outdated
	}
	return ctrl.Request{}, 0 // never, as long as s.waiting is right
}

// laneOfRunning returns the lane that a running request came from.
func (t *turns) laneOfRunning(r ctrl.Request) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running[r].lane
}

// maxDebt bounds how long a namespace waits for others after its requests hung, as during an outage of the API server.
const maxDebt = 10 * time.Second

// done adds the time that a worker spent on the request to what its namespace has used.
func (t *turns) done(r ctrl.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shares[r.Namespace]
	s.running--
	s.used = min(s.used+t.clock.Since(t.running[r].began), max(s.used, t.least+maxDebt))
	delete(t.running, r)
}
