package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

const (
	// patience bounds the wait for an expected event; it is not an expectation of speed.
	patience = 30 * time.Second
	interval = 20 * time.Millisecond

	// maxDelay is the maximum delay of a request while Redis is down.
	maxDelay = 100 * time.Millisecond
)

// redisServer is a real Redis on its own loopback port.
type redisServer struct {
	t                      *testing.T
	dir, address, password string
	process                *harness.Process
}

// newRedis chooses the port of a Redis that is not running yet.
func newRedis(t *testing.T) *redisServer {
	t.Helper()
	needs.Program(t, "redis-server", "redis-server")
	return &redisServer{t: t, dir: t.TempDir(), address: harness.FreeAddress(t)}
}

// startRedis returns a Redis that answers.
func startRedis(t *testing.T) *redisServer {
	t.Helper()
	server := newRedis(t)
	server.start()
	return server
}

func (s *redisServer) start() {
	s.t.Helper()
	var flags []string
	if s.password != "" {
		flags = []string{"--requirepass", s.password}
	}
	s.process = harness.NewRedis(s.dir, "redis-server", s.address, flags...)
	harness.Must(s.t, s.process.Start())
	s.t.Cleanup(s.process.Kill)
	NewWithT(s.t).Eventually(func() error {
		return s.client().Ping(s.t.Context()).Err()
	}, patience, interval).Should(Succeed(), "redis-server does not answer, see %s", s.process.Log)
}

func (s *redisServer) url() string {
	return "redis://:" + s.password + "@" + s.address + "/0"
}

// client returns a client for the test's own checks, separate from the limiter's.
func (s *redisServer) client() *redis.Client {
	s.t.Helper()
	options, err := redis.ParseURL(s.url())
	harness.Must(s.t, err)
	client := redis.NewClient(options)
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

func (s *redisServer) limiter(options Options) *Limiter {
	s.t.Helper()
	if options.RedisURLFile == "" {
		options.RedisURLFile = urlFile(s.t, s.url())
	}
	l, err := New(options)
	harness.Must(s.t, err)
	s.t.Cleanup(func() { _ = l.Close() })
	return l
}

// isShared reports whether the last request was counted in Redis.
func isShared(l *Limiter) bool { return testutil.ToFloat64(l.metrics.redisInUse) == 1 }

// inMemorySoFar returns how many requests were counted in memory.
func inMemorySoFar(l *Limiter) float64 {
	return testutil.ToFloat64(l.metrics.requests.WithLabelValues("allowed", string(inMemory))) +
		testutil.ToFloat64(l.metrics.requests.WithLabelValues("blocked", string(inMemory)))
}

// untilShared waits until a limiter counts in Redis, with requests of a caller that no test uses.
func untilShared(t *testing.T, limiters ...*Limiter) {
	t.Helper()
	for _, l := range limiters {
		NewWithT(t).Eventually(func() bool {
			l.Take(t.Context(), Key("warm-up", 1_000_000))
			return isShared(l)
		}, patience, interval).Should(BeTrue(), "the limiter never counted in Redis")
	}
}

// sharing returns a Redis, and a limiter that counts in it.
func sharing(t *testing.T, options Options) (*redisServer, *Limiter) {
	t.Helper()
	server := startRedis(t)
	l := server.limiter(options)
	untilShared(t, l)
	return server, l
}

func TestTwoReplicasShareACounter(t *testing.T) {
	server := startRedis(t)
	replicas := []*Limiter{server.limiter(Options{}), server.limiter(Options{})}
	untilShared(t, replicas...)
	const limit = 60
	var decisions []Decision
	// On a machine that is too busy to answer in 50 ms a request is counted in memory, as it should be; such a
	// round proves nothing about sharing.
	round := 0
	NewWithT(t).Eventually(func() bool {
		round++
		before := inMemorySoFar(replicas[0]) + inMemorySoFar(replicas[1])
		decisions = takeConcurrently(t, replicas, Key(fmt.Sprint("round ", round), limit), 3*limit, 6)
		return inMemorySoFar(replicas[0])+inMemorySoFar(replicas[1]) == before
	}, patience, interval).Should(BeTrue(), "Redis was never fast enough")
	checkOneWindow(t, decisions, limit)
}

func TestReplicasShareTheCounterOfAnAddress(t *testing.T) {
	server := startRedis(t)
	replicas := []*Limiter{server.limiter(Options{}), server.limiter(Options{})}
	untilShared(t, replicas...)
	round := byte(0)
	NewWithT(t).Eventually(func() bool {
		round++
		address := Address(netip.AddrFrom4([4]byte{192, 0, 2, round}))
		replicas[0].Take(t.Context(), address)
		return replicas[1].Take(t.Context(), address).Remaining == DefaultRequestsPerMinute-2
	}, patience, interval).Should(BeTrue(), "no two requests were counted together")
}

// The content of Redis reveals nothing about keys and clients.
func TestRedisHoldsNoUIDAndNoAddress(t *testing.T) {
	server, l := sharing(t, Options{})
	client := server.client()
	for _, caller := range []Caller{Key("the-uid", 1), Address(netip.MustParseAddr("192.0.2.1"))} {
		before := client.DBSize(t.Context()).Val()
		NewWithT(t).Eventually(func() int64 {
			l.Take(t.Context(), caller)
			return client.DBSize(t.Context()).Val()
		}, patience, interval).Should(BeNumerically(">", before), "Redis never counted it")
	}
	harness.Lacks(t, "the keys in Redis", strings.Join(client.Keys(t.Context(), "*").Val(), "\n"), "the-uid", "192.0.2.1")
}

func TestTheWindowInRedisIsNeitherLengthenedNorToldShort(t *testing.T) {
	server, l := sharing(t, Options{})
	client := server.client()
	NewWithT(t).Eventually(func() bool {
		return !l.Take(t.Context(), Key("a", 1)).Allowed && isShared(l)
	}, patience, interval).Should(BeTrue(), "Redis never counted it")
	last := Window
	for range 50 {
		refused := l.Take(t.Context(), Key("a", 1))
		if !isShared(l) {
			continue
		}
		left, err := client.PTTL(t.Context(), redisKey(Key("a", 1).id)).Result()
		harness.Must(t, err)
		if left <= 0 || left > last {
			t.Fatalf("%s left of the window after %s", left, last)
		}
		if told := time.Duration(refused.Reset) * time.Second; refused.Allowed || told < left {
			t.Fatalf("told to wait %s with %s left: %+v", told, left, refused)
		}
		last = left
	}
}

// Redis keeps a key until the end of its last millisecond. A client that was told to wait 60 s must not find
// the key any more.
func TestAWindowInRedisIsOverWhenItIsToldToBe(t *testing.T) {
	server, l := sharing(t, Options{})
	client := server.client()
	for i := range 200 {
		l.Take(t.Context(), Key(fmt.Sprint(i), 1))
		if left := client.PTTL(t.Context(), redisKey(Key(fmt.Sprint(i), 1).id)).Val(); left >= Window {
			t.Fatalf("%s left of a window that has begun", left)
		}
	}
}

func TestAWindowInRedisEnds(t *testing.T) {
	server := startRedis(t)
	l, err := newLimiter(Options{RedisURLFile: urlFile(t, server.url())}, time.Second)
	harness.Must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	untilShared(t, l)
	g := NewWithT(t)
	for window := range 2 {
		g.Eventually(func() bool {
			return l.Take(t.Context(), Key("a", 1)).Allowed
		}, patience, interval).Should(BeTrue(), "window %d never opened", window)
	}
}

func TestScriptsThatRedisHasLostAreSentAgain(t *testing.T) {
	server, l := sharing(t, Options{})
	client := server.client()
	NewWithT(t).Eventually(func() float64 {
		harness.Must(t, client.ScriptFlush(t.Context()).Err())
		before := inMemorySoFar(l)
		takeConcurrently(t, []*Limiter{l}, Key("a", 100), 100, 8)
		return inMemorySoFar(l) - before
	}, patience, interval).Should(BeZero(), "requests failed for want of the script")
}

func TestACounterWithoutAnExpiryDoesNotBlockForEver(t *testing.T) {
	server, l := sharing(t, Options{})
	client := server.client()
	counter := redisKey(Key("a", 1).id)
	harness.Must(t, client.Set(t.Context(), counter, 1000, 0).Err())
	NewWithT(t).Eventually(func() time.Duration {
		l.Take(t.Context(), Key("a", 1))
		return client.PTTL(t.Context(), counter).Val()
	}, patience, interval).Should(And(BeNumerically(">", 0), BeNumerically("<=", Window)))
}

func TestAClientThatHangsUpIsCountedAndNoSignOfADeadRedis(t *testing.T) {
	_, l := sharing(t, Options{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	NewWithT(t).Eventually(func() float64 {
		before := inMemorySoFar(l)
		for range 2 * breakerFailures {
			l.Take(gone, Key("a", 100))
		}
		return inMemorySoFar(l) - before
	}, patience, interval).Should(BeZero(), "clients that hung up were taken for failures of Redis")
}

func TestARedisThatFreezesDelaysNobody(t *testing.T) {
	var log harness.Buffer
	server, l := sharing(t, Options{Logger: logTo(&log)})
	harness.Must(t, server.process.Freeze())
	checkRedisIsNotMissed(t, l)
	harness.Must(t, server.process.Thaw())
	untilShared(t, l)
	checkLog(t, &log)
}

func TestARedisThatIsDeadAtTheStartDelaysNobody(t *testing.T) {
	server := newRedis(t)
	var log harness.Buffer
	l := server.limiter(Options{Logger: logTo(&log)})
	checkRedisIsNotMissed(t, l)
	server.start()
	untilShared(t, l)
	checkLog(t, &log)
}

// A host that accepts connections but never answers is like a Redis that froze before its first answer.
func TestARedisThatIsMuteAtTheStartDelaysNobody(t *testing.T) {
	server := newRedis(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", server.address)
	harness.Must(t, err)
	l := server.limiter(Options{})
	checkRedisIsNotMissed(t, l)
	harness.Must(t, listener.Close())
	server.start()
	untilShared(t, l)
}

func TestARedisThatGoesAndComesBackDelaysNobody(t *testing.T) {
	var log harness.Buffer
	server, l := sharing(t, Options{Logger: logTo(&log)})
	server.process.Kill()
	checkRedisIsNotMissed(t, l)
	checkOneWindow(t, takeConcurrently(t, []*Limiter{l}, Key("a", 10), 20, 4), 10)
	server.start()
	untilShared(t, l)
	checkLog(t, &log)
}

func TestWhomRedisRefusedStaysRefusedWithoutRedis(t *testing.T) {
	server, l := sharing(t, Options{})
	caller := Key("a", 1)
	refused := l.Take(t.Context(), caller)
	for refused.Allowed { // Redis may be late for one of them
		refused = l.Take(t.Context(), caller)
	}
	server.process.Kill()
	for range 2 * breakerFailures {
		got := l.Take(t.Context(), caller)
		if got.Allowed || got.Reset > refused.Reset {
			t.Fatalf("refused with %+v, and then %+v", refused, got)
		}
	}
	if got := l.Take(t.Context(), Key("b", 1)); !got.Allowed {
		t.Errorf("another caller: %+v", got)
	}
}

// checkRedisIsNotMissed keeps a limiter busy while its Redis is down. A busy machine may be slow by itself, but not each
// time, so the bound must hold once in ten rounds. In no round may a request wait for a dial.
func checkRedisIsNotMissed(t *testing.T, l *Limiter) {
	t.Helper()
	var slowest time.Duration
	for range 10 {
		var late time.Duration
		slowest, late = slowestRequest(t, l)
		if slowest <= maxDelay {
			return
		}
		if most := redisDialTimeout/2 + 2*late; slowest > most {
			t.Fatalf("the slowest request took %s, want at most %s; timers were late by no more than %s", slowest, most, late)
		}
	}
	t.Errorf("the slowest request took %s, want at most %s", slowest, maxDelay)
}

// slowestRequest keeps a limiter busy through failures that open the breaker and some trials after that, and
// fails if a request is refused. It returns how long the slowest request took, and how late timers were
// meanwhile.
func slowestRequest(t *testing.T, l *Limiter) (slowest, late time.Duration) {
	t.Helper()
	const clients, limit = 8, 1_000_000
	jitter := measureJitter(t)
	var longest, refused, requests atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	enough := twoTrials(l)
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			// The limit is the highest that can be declared, so a refusal must be caused by Redis.
			for caller := Key(fmt.Sprint("client ", client), limit); !enough() && ctx.Err() == nil; <-tick.C {
				began := time.Now()
				decision := l.Take(ctx, caller)
				raise(&longest, time.Since(began))
				requests.Add(1)
				if !decision.Allowed || decision.Limit != limit {
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		t.Fatalf("Redis was not tried twice again: %v", err)
	}
	if n := refused.Load(); n > 0 {
		t.Errorf("%d requests were refused because Redis is away", n)
	}
	slowest, late = time.Duration(longest.Load()), jitter()
	t.Logf("%d requests, the slowest took %s; timers were late by %s", requests.Load(), slowest, late)
	return slowest, late
}

// twoTrials returns a function that reports whether Redis has failed, and then twice again once the breaker let a
// request try it. Requests that were under way when the breaker opened fail long before that.
func twoTrials(l *Limiter) (over func() bool) {
	var mu sync.Mutex
	before, at, times := testutil.ToFloat64(l.metrics.redisErrors), time.Time{}, 0
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		if failures := testutil.ToFloat64(l.metrics.redisErrors); failures > before {
			if time.Since(at) > breakerTimeout/2 {
				times++
			}
			before, at = failures, time.Now()
		}
		return times > 2 // the first time opened the breaker
	}
}

// measureJitter measures how late timers are on this machine; the returned function stops it and returns the
// maximum.
func measureJitter(t *testing.T) func() time.Duration {
	t.Helper()
	const wait = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	var worst atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			<-time.After(wait)
			raise(&worst, time.Since(began)-wait)
		}
	})
	return func() time.Duration {
		cancel()
		wg.Wait()
		return time.Duration(worst.Load())
	}
}

func raise(highest *atomic.Int64, to time.Duration) {
	for {
		now := highest.Load()
		if int64(to) <= now || highest.CompareAndSwap(now, int64(to)) {
			return
		}
	}
}

func logTo(log *harness.Buffer) logr.Logger {
	return funcr.New(func(_, line string) { fmt.Fprintln(log, line) }, funcr.Options{})
}

// checkLog expects exactly one line for each move from Redis to memory and back.
func checkLog(t *testing.T, log *harness.Buffer) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) < 2 || len(lines)%2 != 0 {
		t.Fatalf("want a line for each move to memory and back, got:\n%s", log)
	}
	for i, line := range lines {
		harness.Contains(t, fmt.Sprintf("line %d", i+1), line, []string{"does not answer", "Redis answers"}[i%2])
	}
}

func TestARotatedPasswordIsReadFromTheFile(t *testing.T) {
	server := newRedis(t)
	server.password = "before"
	server.start()
	file := filepath.Join(t.TempDir(), "url")
	write := func() {
		harness.Must(t, os.WriteFile(file, []byte(server.url()+"\n"), 0o600))
	}
	write()
	l := server.limiter(Options{RedisURLFile: file})
	untilShared(t, l)
	server.process.Kill()
	server.password = "after"
	server.start()
	checkRedisIsNotMissed(t, l) // it has the wrong password
	write()
	untilShared(t, l)
}

func TestAfterCloseRequestsAreCountedInMemory(t *testing.T) {
	_, l := sharing(t, Options{})
	harness.Must(t, l.Close())
	if got := l.Take(t.Context(), Key("a", 5)); got.Remaining != 4 || isShared(l) {
		t.Errorf("after Close: %+v", got)
	}
	if err := l.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
}
