package webhookdelivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/appsec-dev/findings-operator/internal/safely"
)

// limits bounds the concurrent work of a dispatcher.
type limits struct {
	// overall bounds the jobs for endpoints that are not known to fail, failing those for endpoints that are, and slow the
	// jobs that exceed slowAfter. The limits are separate, so that endpoints that hang leave room for others.
	// Organizations share each of them; see mayUse.
	overall, failing, slow int
	// perEndpoint bounds the jobs for one endpoint whose last attempt succeeded. Other endpoints get one job at a time,
	// until an attempt succeeds. One urgent job may be added.
	perEndpoint int
	// slowAfter is when a job counts as slow.
	slowAfter time.Duration
	// grace is how long running jobs may take to end when the dispatcher stops.
	grace time.Duration
}

// health is what the last attempts tell about an endpoint.
type health int

const (
	// healthUnknown means that no attempt was made yet, or that its outcome is unknown.
	healthUnknown health = iota
	// healthProven means that the last attempt succeeded.
	healthProven
	// healthFailing means that the last attempt failed.
	healthFailing
	// healthUnsendable means that no delivery can be sent, because the endpoint's secret cannot be read or used. The
	// endpoint's queue pauses, and the health is unknown after that.
	healthUnsendable
)

// lane is the limit that a job counts against.
type lane int

const (
	laneOverall lane = iota
	laneFailing
	laneSlow
	laneCount
)

// urgentRun is how many urgent jobs in a row may begin before another one: a script that decides without a pause delays
// the other work of its endpoint, but does not block it forever.
const urgentRun = 8

// queue holds the work for one endpoint.
type queue struct {
	// urgent deliveries begin before waiting ones, but at most urgentRun in a row.
	urgent, waiting []types.NamespacedName
	// urgentInARow counts the urgent jobs since the last other one.
	urgentInARow int
	running      int
	health       health
	// paused means that no job begins; see pause.
	paused bool
}

func (q *queue) isEmpty() bool { return len(q.urgent)+len(q.waiting) == 0 }

// isNextUrgent reports whether the next delivery is urgent.
func (q *queue) isNextUrgent() bool {
	return len(q.urgent) > 0 && (q.urgentInARow < urgentRun || len(q.waiting) == 0)
}

// take removes and returns the next delivery.
func (q *queue) take() (next types.NamespacedName) {
	if q.isNextUrgent() {
		next, q.urgent = q.urgent[0], q.urgent[1:]
		q.urgentInARow++
		return next
	}
	next, q.waiting = q.waiting[0], q.waiting[1:]
	q.urgentInARow = 0
	return next
}

// share identifies the part of a lane that the endpoints of one namespace use.
type share struct {
	namespace string
	lane      lane
}

// job is the running work for a delivery.
type job struct {
	delivery, endpoint types.NamespacedName
	lane               lane
	over               bool
}

func (j *job) share() share { return share{j.endpoint.Namespace, j.lane} }

// dispatcher runs work outside of the reconciles that submit it: a few jobs at a time per endpoint, urgent ones first
// and the others in order. Organizations leave room for each other, and the endpoints of each take turns.
type dispatcher struct {
	limits
	clock clock.WithDelayedExecution
	// work does the work for a delivery, and returns the endpoint's resulting health.
	work func(ctx context.Context, delivery types.NamespacedName) (health, error)
	// done is called after work, with its context, when the delivery is no longer busy.
	done func(ctx context.Context, delivery types.NamespacedName, err error)

	mu sync.Mutex
	// ctx is the context of the work. It is nil until Start, and again after Start's context has ended.
	ctx context.Context
	// busy holds the deliveries that wait or run.
	busy map[types.NamespacedName]struct{}
	// queues holds the queues of endpoints with waiting or running work, and of those that pause.
	queues map[types.NamespacedName]*queue
	// turns holds the endpoints with waiting work, in the order of their turns.
	turns []types.NamespacedName
	// used counts the running jobs per lane, and shares those of each namespace.
	used   [laneCount]int
	shares map[share]int
	group  sync.WaitGroup
}

func newDispatcher(l limits, c clock.WithDelayedExecution) *dispatcher {
	return &dispatcher{
		limits: l,
		clock:  c,
		busy:   map[types.NamespacedName]struct{}{},
		queues: map[types.NamespacedName]*queue{},
		shares: map[share]int{},
	}
}

// Start runs work until the context ends. It then drops the waiting work, and waits for running jobs, which are
// canceled after the grace period.
func (d *dispatcher) Start(ctx context.Context) error {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	d.mu.Lock()
	d.ctx = working
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

// isBusy reports whether the delivery waits or runs.
func (d *dispatcher) isBusy(delivery types.NamespacedName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, busy := d.busy[delivery]
	return busy
}

// hasRoom reports whether work for the endpoint would begin at once.
func (d *dispatcher) hasRoom(endpoint types.NamespacedName, given health, urgent bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queues[endpoint]
	if q == nil {
		q = &queue{health: given}
	}
	isNext := len(q.urgent) == 0 && (urgent || len(q.waiting) == 0)
	return d.ctx != nil && isNext && d.mayBegin(endpoint, q, urgent)
}

// submit queues work on the delivery, unless it is busy already: ahead of the endpoint's other work if urgent. The
// given health applies only if the dispatcher has none for the endpoint.
func (d *dispatcher) submit(delivery, endpoint types.NamespacedName, given health, urgent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, busy := d.busy[delivery]; busy {
		return
	}
	d.busy[delivery] = struct{}{}
	q := d.queues[endpoint]
	if q == nil {
		q = &queue{health: given}
		d.queues[endpoint] = q
	}
	if q.isEmpty() {
		d.turns = append(d.turns, endpoint)
	}
	if urgent {
		q.urgent = append(q.urgent, delivery)
	} else {
		q.waiting = append(q.waiting, delivery)
	}
	d.dispatch()
}

// laneOf returns the lane of the endpoint's next job.
func laneOf(q *queue) lane {
	if q.health == healthFailing {
		return laneFailing
	}
	return laneOverall
}

// mayBegin reports whether the limits allow another job for the endpoint. The lock is held.
//
// One urgent job may begin beyond the endpoint's limit, so that it does not wait for a slow receiver to answer.
func (d *dispatcher) mayBegin(endpoint types.NamespacedName, q *queue, urgent bool) bool {
	maxRunning := d.perEndpoint
	if urgent {
		maxRunning++
	}
	allowed := q.running == 0 || (q.health == healthProven && q.running < maxRunning)
	return allowed && !q.paused && d.mayUse(share{endpoint.Namespace, laneOf(q)})
}

// mayUse reports whether the namespace may use another place in the lane: only while more than it uses are free. So
// places remain for organizations with fewer, and a few organizations cannot shut out the others. The lock is held.
func (d *dispatcher) mayUse(s share) bool {
	bounds := [laneCount]int{laneOverall: d.overall, laneFailing: d.failing, laneSlow: d.slow}
	return bounds[s.lane]-d.used[s.lane] > d.shares[s]
}

// use adds n to the places that the namespace uses in the lane. The lock is held.
func (d *dispatcher) use(s share, n int) {
	d.used[s.lane] += n
	d.shares[s] += n
	if d.shares[s] == 0 {
		delete(d.shares, s)
	}
}

// dispatch starts all jobs that may start. The lock is held.
func (d *dispatcher) dispatch() {
	for d.ctx != nil {
		i := slices.IndexFunc(d.turns, func(endpoint types.NamespacedName) bool {
			q := d.queues[endpoint]
			return d.mayBegin(endpoint, q, q.isNextUrgent())
		})
		if i < 0 {
			return
		}
		endpoint := d.turns[i]
		q := d.queues[endpoint]
		j := &job{delivery: q.take(), endpoint: endpoint, lane: laneOf(q)}
		d.turns = slices.Delete(d.turns, i, i+1)
		if !q.isEmpty() {
			d.turns = append(d.turns, endpoint)
		}
		q.running++
		d.use(j.share(), 1)
		working := d.ctx
		d.group.Go(func() { d.run(working, j) })
	}
}

func (d *dispatcher) run(ctx context.Context, j *job) {
	timer := d.clock.AfterFunc(d.slowAfter, func() { d.slowDown(j) })
	var after health
	err := safely.Func(func() (err error) {
		after, err = d.work(ctx, j.delivery)
		return err
	})()
	timer.Stop()
	d.end(j, after)
	// Call done last, when the delivery is no longer busy, because done may submit it again.
	d.done(ctx, j.delivery, err)
}

// slowDown handles a job that has become slow: the endpoint is no longer proven, and the job moves to the slow lane if
// that has room for its organization.
func (d *dispatcher) slowDown(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j.over {
		return
	}
	if q := d.queues[j.endpoint]; q.health == healthProven {
		q.health = healthUnknown
	}
	if j.lane == laneOverall && d.mayUse(share{j.endpoint.Namespace, laneSlow}) {
		d.use(j.share(), -1)
		j.lane = laneSlow
		d.use(j.share(), 1)
		d.dispatch()
	}
}

func (d *dispatcher) end(j *job, after health) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j.over = true
	delete(d.busy, j.delivery)
	d.use(j.share(), -1)
	q := d.queues[j.endpoint]
	q.running--
	switch after {
	case healthUnknown:
	case healthUnsendable:
		d.pause(j.endpoint, q)
	default:
		q.health = after
	}
	d.forget(j.endpoint, q)
	d.dispatch()
}

// pause lets no job of the endpoint begin for errorDelay: each would cost as much as an attempt, and send nothing. The
// lock is held.
func (d *dispatcher) pause(endpoint types.NamespacedName, q *queue) {
	q.health = healthUnknown
	if q.paused {
		return
	}
	q.paused = true
	d.clock.AfterFunc(errorDelay, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		q.paused = false
		d.forget(endpoint, q)
		d.dispatch()
	})
}

// forget removes the queue unless it is still needed. The lock is held.
func (d *dispatcher) forget(endpoint types.NamespacedName, q *queue) {
	if q.running == 0 && q.isEmpty() && !q.paused {
		delete(d.queues, endpoint)
	}
}
