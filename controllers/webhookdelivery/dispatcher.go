package webhookdelivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// limits bound what a dispatcher runs at a time.
type limits struct {
	overall, perEndpoint int
	// grace is how long work at hand may take to come to an end when the dispatcher is stopped.
	grace time.Duration
}

// dispatcher runs work apart from the reconciles that ask for it: a few at a time for each
// endpoint, in order, endpoints in turn. A slow endpoint holds up its own work and no other's.
type dispatcher struct {
	limits
	// work is what is done for a delivery.
	work func(ctx context.Context, delivery types.NamespacedName) error
	// done is called after it, when the delivery is no longer busy. Its context ends when the
	// dispatcher is stopped.
	done func(ctx context.Context, delivery types.NamespacedName, err error)

	mu sync.Mutex
	// ctx is that of the work, stop that of Start; nil until that, and ctx after it has returned.
	ctx, stop context.Context
	// busy are the deliveries that wait or are worked on.
	busy    map[types.NamespacedName]struct{}
	waiting map[types.NamespacedName][]types.NamespacedName
	// turns are the endpoints for which something waits, the next one in front.
	turns   []types.NamespacedName
	running map[types.NamespacedName]int
	total   int
	group   sync.WaitGroup
}

func newDispatcher(l limits) *dispatcher {
	return &dispatcher{
		limits:  l,
		busy:    map[types.NamespacedName]struct{}{},
		waiting: map[types.NamespacedName][]types.NamespacedName{},
		running: map[types.NamespacedName]int{},
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
func (d *dispatcher) hasRoom(endpoint types.NamespacedName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ctx != nil && d.total < d.overall && d.running[endpoint] < d.perEndpoint && len(d.waiting[endpoint]) == 0
}

// submit asks for work on the delivery, unless it is busy already.
func (d *dispatcher) submit(delivery, endpoint types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, busy := d.busy[delivery]; busy {
		return
	}
	d.busy[delivery] = struct{}{}
	if len(d.waiting[endpoint]) == 0 {
		d.turns = append(d.turns, endpoint)
	}
	d.waiting[endpoint] = append(d.waiting[endpoint], delivery)
	d.dispatch()
}

// dispatch begins whatever may begin. The lock is held.
func (d *dispatcher) dispatch() {
	for d.ctx != nil && d.total < d.overall {
		i := slices.IndexFunc(d.turns, func(endpoint types.NamespacedName) bool {
			return d.running[endpoint] < d.perEndpoint
		})
		if i < 0 {
			return
		}
		endpoint := d.turns[i]
		delivery := d.waiting[endpoint][0]
		d.turns = slices.Delete(d.turns, i, i+1)
		if rest := d.waiting[endpoint][1:]; len(rest) > 0 {
			d.waiting[endpoint] = rest
			d.turns = append(d.turns, endpoint)
		} else {
			delete(d.waiting, endpoint)
		}
		d.running[endpoint]++
		d.total++
		working, stop := d.ctx, d.stop
		d.group.Go(func() { d.run(working, stop, delivery, endpoint) })
	}
}

func (d *dispatcher) run(ctx, stop context.Context, delivery, endpoint types.NamespacedName) {
	err := d.work(ctx, delivery)
	d.mu.Lock()
	delete(d.busy, delivery)
	if d.running[endpoint]--; d.running[endpoint] == 0 {
		delete(d.running, endpoint)
	}
	d.total--
	d.dispatch()
	d.mu.Unlock()
	// Last, and not before the delivery is free: whoever hears of it may submit it again.
	d.done(stop, delivery, err)
}
