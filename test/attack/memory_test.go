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
	stop    func()
}

func follow(t *testing.T, f *facade) *gauge {
	t.Helper()
	return startGauge(t, f.memory, f.Running)
}

// followControllers is follow for the controllers, which run in this process together with the tests.
func followControllers(t *testing.T) *gauge {
	t.Helper()
	runtime.GC()
	return startGauge(t, func(context.Context) (float64, error) {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapInuse + stats.StackInuse), nil
	}, func() bool { return true })
}

func startGauge(t *testing.T, memory func(context.Context) (float64, error), running func() bool) *gauge {
	t.Helper()
	before, err := memory(t.Context())
	harness.Must(t, err)
	g := &gauge{memory: memory, running: running, before: before}
	g.stop = harness.Background(t, func(ctx context.Context) error {
		for harness.Pause(ctx, 5*interval) {
			if now, err := memory(ctx); err == nil {
				g.peak.Store(max(g.peak.Load(), int64(now)))
			}
		}
		return nil
	})
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
	t.Logf("%s: memory has grown by at most %.1f MiB", what, grown/(1<<20))
	attempt(t, class, g.running() && grown <= most, "%s: memory has grown by %.0f MiB, want at most %.0f", what, grown/(1<<20), most/(1<<20))
}

// bystander is a legitimate client that keeps sending requests during an attack.
type bystander struct {
	stop           func()
	served, failed atomic.Int64
	last           atomic.Value
}

// standBy starts a bystander. Its requests must be answered within patience.
func standBy(t *testing.T, client *http.Client, base string, o *tenant) *bystander {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/v1/findings?size=10", http.NoBody)
	harness.Must(t, err)
	request.Header.Set("Authorization", "Bearer "+o.token)
	b := &bystander{}
	b.stop = harness.Background(t, func(ctx context.Context) error {
		for going := true; going; going = harness.Pause(ctx, interval) {
			status, _, err := harness.Answer(client, request.WithContext(ctx))
			switch {
			case ctx.Err() != nil:
			case err != nil:
				b.fail(err)
			case status != http.StatusOK:
				b.fail(fmt.Errorf("status %d", status))
			default:
				b.served.Add(1)
			}
		}
		return nil
	})
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
		if !harness.Pause(t.Context(), interval) { // it must also be served after the attack
			return
		}
	}
	b.stop()
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
