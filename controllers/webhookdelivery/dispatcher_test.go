package webhookdelivery

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// bench runs a dispatcher whose work waits to be released, and notes what ran.
type bench struct {
	*dispatcher
	began    chan types.NamespacedName
	release  chan struct{}
	finished sync.WaitGroup
}

func newBench(t *testing.T, l limits) *bench {
	t.Helper()
	b := &bench{dispatcher: newDispatcher(l), began: make(chan types.NamespacedName, 100), release: make(chan struct{}, 100)}
	b.work = func(ctx context.Context, delivery types.NamespacedName) error {
		b.began <- delivery
		select {
		case <-b.release:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	b.done = func(context.Context, types.NamespacedName, error) { b.finished.Done() }
	return b
}

func (b *bench) ask(endpoint string, n int) {
	b.finished.Add(1)
	b.submit(types.NamespacedName{Name: fmt.Sprintf("%s-%d", endpoint, n)}, types.NamespacedName{Name: endpoint})
}

func (b *bench) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = b.Start(ctx) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

func TestEndpointsTakeTurnsWithinTheLimits(t *testing.T) {
	b := newBench(t, limits{overall: 3, perEndpoint: 2})
	for n := range 3 {
		b.ask("a", n)
	}
	b.ask("b", 0)
	b.ask("c", 0)
	b.run(t)
	first := map[string]bool{}
	for range 3 {
		first[(<-b.began).Name] = true
	}
	for _, want := range []string{"a-0", "b-0", "c-0"} {
		if !first[want] {
			t.Errorf("%s was not among the first: %v", want, first)
		}
	}
	if b.hasRoom(types.NamespacedName{Name: "d"}) {
		t.Error("there is room above the overall limit")
	}
	for range 5 {
		b.release <- struct{}{}
	}
	b.finished.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.busy)+len(b.waiting)+len(b.turns)+len(b.running)+b.total != 0 {
		t.Errorf("something is left: %+v %+v %+v %+v %d", b.busy, b.waiting, b.turns, b.running, b.total)
	}
}

func TestADeliveryIsWorkedOnOnceAtATime(t *testing.T) {
	b := newBench(t, limits{overall: 9, perEndpoint: 9})
	b.run(t)
	b.ask("a", 0)
	delivery := <-b.began
	b.submit(delivery, types.NamespacedName{Name: "a"})
	b.ask("a", 1)
	if other := <-b.began; other == delivery {
		t.Error("it was begun twice")
	}
	if !b.isBusy(delivery) {
		t.Error("it is not busy")
	}
	b.release <- struct{}{}
	b.release <- struct{}{}
	b.finished.Wait()
	if b.isBusy(delivery) {
		t.Error("it is still busy")
	}
}

func TestAStopEndsWorkOnceTheGraceIsOver(t *testing.T) {
	b := newBench(t, limits{overall: 1, perEndpoint: 1, grace: time.Millisecond})
	stop := b.run(t)
	b.ask("a", 0)
	<-b.began
	b.submit(types.NamespacedName{Name: "never"}, types.NamespacedName{Name: "a"})
	stop()
	b.finished.Wait()
	select {
	case delivery := <-b.began:
		t.Errorf("%s was begun after the stop", delivery)
	default:
	}
}
