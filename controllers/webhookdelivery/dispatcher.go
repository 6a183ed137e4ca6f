package webhookdelivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// limits bound what a dispatcher runs at a time.
type limits struct {
	// overall bounds the work for endpoints that are not known to fail, failing that for those
	// that are, and slow the work that takes its time: each is apart from the others, so that no
	// number of endpoints that hang leaves no room for one that answers.
	overall, failing, slow int
	// perEndpoint bounds the work for one endpoint of which the last attempt succeeded. Any
	// other has one piece of work at a time, until it has proved itself.
	perEndpoint int
	// slowAfter is when work counts as slow.
	slowAfter time.Duration
	// grace is how long work at hand may take to come to an end when the dispatcher is stopped.
	grace time.Duration
}

// standing is what is known of an endpoint.
type standing int

const (
	// standingUnknown: nothing was sent to it yet, or nothing is known of how it went.
	standingUnknown standing = iota
	// standingProven: the last attempt succeeded.
	standingProven
	// standingFailing: the last attempt failed.
	standingFailing
)

// lane is what a piece of work counts against.
type lane int

const (
	laneOverall lane = iota
	laneFailing
	laneSlow
	laneCount
)

// queue is what there is to do for one endpoint.
type queue struct {
	waiting  []types.NamespacedName
	running  int
	standing standing
}

// job is a piece of work that has begun.
type job struct {
	delivery, endpoint types.NamespacedName
	lane               lane
	over               bool
}

// dispatcher runs work apart from the reconciles that ask for it: a few at a time for each
// endpoint, in order, endpoints in turn. A slow endpoint holds up its own work and no other's.
type dispatcher struct {
	limits
	clock clock.WithDelayedExecution
	// work is what is done for a delivery. It says how the endpoint stands after it.
	work func(ctx context.Context, delivery types.NamespacedName) (standing, error)
	// done is called after it, when the delivery is no longer busy. Its context ends when the
	// dispatcher is stopped.
	done func(ctx context.Context, delivery types.NamespacedName, err error)

	mu sync.Mutex
	// ctx is that of the work, stop that of Start; nil until that, and ctx after it has returned.
	ctx, stop context.Context
	// busy are the deliveries that wait or are worked on.
	busy map[types.NamespacedName]struct{}
	// queues are those of the endpoints for which something waits or is worked on.
	queues map[types.NamespacedName]*queue
	// turns are the endpoints for which something waits, the next one in front.
	turns []types.NamespacedName
	// used counts the work at hand by what it counts against.
	used  [laneCount]int
	group sync.WaitGroup
}

func newDispatcher(l limits, c clock.WithDelayedExecution) *dispatcher {
	return &dispatcher{
		limits: l,
		clock:  c,
		busy:   map[types.NamespacedName]struct{}{},
		queues: map[types.NamespacedName]*queue{},
	}
}

// Start lets work begin, until the context ends. It returns when all that was begun has come to
// an end or the grace is over; what has not begun is dropped.
func (d *dispatcher) Start(ctx context.Context) error {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	d.mu.Lock()
	d.ctx, d.stop = working, ctx
	d.dispatch()
	d.mu.Unlock()

	<-ctx.Done()
	d.mu.Lock()
	d.ctx = nil
	d.mu.Unlock()
	grace := time.AfterFunc(d.grace, cancel)
	defer grace.Stop()
	d.group.Wait()
	return nil
}

// isBusy reports whether the delivery waits or is worked on.
func (d *dispatcher) isBusy(delivery types.NamespacedName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, busy := d.busy[delivery]
	return busy
}

// hasRoom reports whether work for the endpoint would begin at once.
func (d *dispatcher) hasRoom(endpoint types.NamespacedName, known standing) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queues[endpoint]
	if q == nil {
		q = &queue{standing: known}
	}
	return d.ctx != nil && len(q.waiting) == 0 && d.mayBegin(q)
}

// submit asks for work on the delivery, unless it is busy already. What is known of the endpoint
// counts where nothing newer is known here.
func (d *dispatcher) submit(delivery, endpoint types.NamespacedName, known standing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, busy := d.busy[delivery]; busy {
		return
	}
	d.busy[delivery] = struct{}{}
	q := d.queues[endpoint]
	if q == nil {
		q = &queue{standing: known}
		d.queues[endpoint] = q
	}
	if len(q.waiting) == 0 {
		d.turns = append(d.turns, endpoint)
	}
	q.waiting = append(q.waiting, delivery)
	d.dispatch()
}

// laneOf is what the endpoint's next piece of work counts against.
func laneOf(q *queue) lane {
	if q.standing == standingFailing {
		return laneFailing
	}
	return laneOverall
}

// mayBegin reports whether the limits let one more piece of work begin. The lock is held.
//
// More than one at a time for an endpoint comes out of the first half: the other is for those
// that have none.
func (d *dispatcher) mayBegin(q *queue) bool {
	bounds := [laneCount]int{laneOverall: d.overall, laneFailing: d.failing}
	in := laneOf(q)
	if d.used[in] >= bounds[in] {
		return false
	}
	return q.running == 0 || (q.standing == standingProven && q.running < d.perEndpoint && 2*d.used[in] < d.overall)
}

// dispatch begins whatever may begin. The lock is held.
func (d *dispatcher) dispatch() {
	for d.ctx != nil {
		i := slices.IndexFunc(d.turns, func(endpoint types.NamespacedName) bool { return d.mayBegin(d.queues[endpoint]) })
		if i < 0 {
			return
		}
		endpoint := d.turns[i]
		q := d.queues[endpoint]
		j := &job{delivery: q.waiting[0], endpoint: endpoint, lane: laneOf(q)}
		d.turns = slices.Delete(d.turns, i, i+1)
		if q.waiting = q.waiting[1:]; len(q.waiting) > 0 {
			d.turns = append(d.turns, endpoint)
		}
		q.running++
		d.used[j.lane]++
		working, stop := d.ctx, d.stop
		d.group.Go(func() { d.run(working, stop, j) })
	}
}

func (d *dispatcher) run(ctx, stop context.Context, j *job) {
	timer := d.clock.AfterFunc(d.slowAfter, func() { d.slowDown(j) })
	after, err := d.work(ctx, j.delivery)
	timer.Stop()
	d.end(j, after)
	// Last, and not before the delivery is free: whoever hears of it may submit it again.
	d.done(stop, j.delivery, err)
}

// slowDown makes room where work takes its time: of the endpoint nothing good is known any
// longer, and its work counts with that of others like it, as long as they are not too many.
func (d *dispatcher) slowDown(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j.over {
		return
	}
	if q := d.queues[j.endpoint]; q.standing == standingProven {
		q.standing = standingUnknown
	}
	if j.lane == laneOverall && d.used[laneSlow] < d.slow {
		d.used[j.lane]--
		j.lane = laneSlow
		d.used[laneSlow]++
		d.dispatch()
	}
}

func (d *dispatcher) end(j *job, after standing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j.over = true
	delete(d.busy, j.delivery)
	d.used[j.lane]--
	q := d.queues[j.endpoint]
	if after != standingUnknown {
		q.standing = after
	}
	if q.running--; q.running == 0 && len(q.waiting) == 0 {
		delete(d.queues, j.endpoint)
	}
	d.dispatch()
}
