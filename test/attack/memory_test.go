package attack

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// memoryMetrics add up to the memory of the process in objects and stacks, garbage included, in
// bytes.
var memoryMetrics = []string{"go_memstats_heap_inuse_bytes", "go_memstats_stack_inuse_bytes"}

// gauge follows the memory of the attacked process.
type gauge struct {
	memory func(context.Context) (float64, error)
	// running reports whether the process still runs.
	running func() bool
	before  float64
	peak    atomic.Int64
	stop    context.CancelFunc
	done    chan struct{}
}

func follow(t *testing.T, f *facade) *gauge {
	t.Helper()
	return (&gauge{memory: f.tryMemory, running: f.Running, before: f.memory(t)}).start(t)
}

// followControllers is follow for the controllers, which run in this process together with the tests.
func followControllers(t *testing.T) *gauge {
	t.Helper()
	inUse := func(context.Context) (float64, error) {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapInuse + stats.StackInuse), nil
	}
	runtime.GC()
	before, err := inUse(t.Context())
	harness.Must(t, err)
	return (&gauge{memory: inUse, running: func() bool { return true }, before: before}).start(t)
}

func (g *gauge) start(t *testing.T) *gauge {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	g.stop, g.done = stop, make(chan struct{})
	go func() {
		defer close(g.done)
		for ctx.Err() == nil {
			if now, err := g.memory(ctx); err == nil {
				g.peak.Store(max(g.peak.Load(), int64(now)))
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * interval):
			}
		}
	}()
	return g
}

// bounded fails the test if the memory has grown by more than that many bytes at any time, or the attacked process
// has ended.
func (g *gauge) bounded(t *testing.T, class string, most float64, what string) {
	t.Helper()
	now, err := g.memory(t.Context())
	harness.Must(t, err)
	grown := max(float64(g.peak.Load()), now) - g.before
	g.stop()
	<-g.done
	t.Logf("%s: memory has grown by at most %.1f MiB", what, grown/(1<<20))
	attempt(t, class, g.running() && grown <= most, "%s: memory has grown by %.0f MiB, want at most %.0f", what, grown/(1<<20), most/(1<<20))
}

// bystander is a legitimate client that keeps sending requests during an attack.
type bystander struct {
	stop           context.CancelFunc
	done           chan struct{}
	served, failed atomic.Int64
	last           atomic.Value
}

// standBy starts a bystander. Its requests must be answered within patience.
func standBy(t *testing.T, client *http.Client, base string, o *tenant) *bystander {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	b := &bystander{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		for ctx.Err() == nil {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/findings?size=10", http.NoBody)
			if err != nil {
				b.fail(err)
				return
			}
			request.Header.Set("Authorization", "Bearer "+o.token)
			response, err := client.Do(request)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				b.fail(err)
			case response.StatusCode != http.StatusOK:
				b.fail(fmt.Errorf("status %d", response.StatusCode))
			default:
				b.served.Add(1)
			}
			if err == nil {
				response.Body.Close() //nolint:errcheck,gosec // the status is enough
			}
			select {
			case <-ctx.Done():
			case <-time.After(interval):
			}
		}
	}()
	return b
}

func (b *bystander) fail(err error) {
	b.failed.Add(1)
	b.last.Store(err.Error())
}

// leave ends the bystander, which must have been served all the time.
func (b *bystander) leave(t *testing.T, class, what string) {
	t.Helper()
	served := b.served.Load()
	for deadline := time.Now().Add(patience); b.served.Load() < served+2 && time.Now().Before(deadline) && b.failed.Load() == 0; {
		select { // it must also be served after the attack
		case <-time.After(interval):
		case <-t.Context().Done():
			return
		}
	}
	b.stop()
	<-b.done
	attempt(t, class, b.failed.Load() == 0 && b.served.Load() > 1, "%s: a bystander was served %d times and failed %d times, last with %v",
		what, b.served.Load(), b.failed.Load(), b.last.Load())
}

// statusOf reads the head of one answer.
func statusOf(conn net.Conn) (int, error) {
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	response.Body.Close() //nolint:errcheck,gosec // the status is enough
	return response.StatusCode, nil
}
