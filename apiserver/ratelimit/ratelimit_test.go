package ratelimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// inBubble runs a test with a fake clock that advances only when the test waits.
func inBubble(t *testing.T, test func(t *testing.T, l *Limiter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newInMemory(t)) })
}

// pass advances the clock of a bubble, at once.
func pass(d time.Duration) { <-time.After(d) }

func newInMemory(t *testing.T) *Limiter {
	t.Helper()
	l, err := New(Options{})
	harness.Must(t, err)
	return l
}

func TestAWindowOpensWithTheFirstRequestAndEndsAfter60Seconds(t *testing.T) {
	inBubble(t, func(t *testing.T, l *Limiter) {
		pass(17*time.Second + 300*time.Millisecond)
		caller := Key("a", 2)
		want := []Decision{
			{Allowed: true, Limit: 2, Remaining: 1, Reset: 60},
			{Allowed: true, Limit: 2, Remaining: 0, Reset: 60},
			{Limit: 2, Reset: 60},
		}
		for i, w := range want {
			harness.Same(t, fmt.Sprintf("request %d", i+1), w, l.Take(t.Context(), caller))
		}
		pass(Window - time.Millisecond)
		if got := l.Take(t.Context(), caller); got.Allowed || got.Reset != 1 {
			t.Errorf("a millisecond before the end: %+v", got)
		}
		pass(2 * time.Millisecond)
		harness.Same(t, "after the end", want[0], l.Take(t.Context(), caller))
	})
}

// A caller that waits as long as it is told is admitted, and no caller is told to wait a second more than
// needed.
func TestRetryAfterIsNeverShort(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		before := time.Duration(rapid.IntRange(0, 999).Draw(rt, "ms before the window opens")) * time.Millisecond
		within := time.Duration(rapid.IntRange(0, 59_999).Draw(rt, "ms into the window")) * time.Millisecond
		var refused, after Decision
		synctest.Test(t, func(t *testing.T) {
			l := newInMemory(t)
			caller := Key("a", 1)
			pass(before)
			l.Take(t.Context(), caller)
			pass(within)
			refused = l.Take(t.Context(), caller)
			pass(time.Duration(refused.Reset) * time.Second)
			after = l.Take(t.Context(), caller)
		})
		if refused.Allowed {
			rt.Fatalf("second request: %+v", refused)
		}
		if !after.Allowed {
			rt.Fatalf("waited %d s as told, then: %+v", refused.Reset, after)
		}
		if tooLong := time.Duration(refused.Reset)*time.Second - (Window - within); tooLong >= time.Second {
			rt.Fatalf("told to wait %s too long", tooLong)
		}
	})
}

func TestExactlyTheLimitIsAllowedUnderConcurrency(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 60).Draw(rt, "limit")
		requests := rapid.IntRange(0, 120).Draw(rt, "requests")
		clients := rapid.IntRange(1, 8).Draw(rt, "clients")
		l := newInMemory(t)
		decisions := takeConcurrently(t, []*Limiter{l}, Key("a", limit), requests, clients)
		checkOneWindow(rt, decisions, limit)
	})
}

// checkOneWindow checks the decisions of one window, in any order.
func checkOneWindow(t harness.T, decisions []Decision, limit int) {
	remaining := map[int]int{}
	allowed := 0
	for _, d := range decisions {
		if d.Limit != limit || d.Remaining < 0 || d.Reset < 1 || d.Reset > 60 {
			t.Errorf("limit %d: out of range: %+v", limit, d)
		}
		if !d.Allowed {
			if d.Remaining != 0 {
				t.Errorf("refused with %+v", d)
			}
			continue
		}
		allowed++
		remaining[d.Remaining]++
	}
	harness.Same(t, fmt.Sprintf("limit %d: allowed of %d", limit, len(decisions)), min(limit, len(decisions)), allowed)
	for left, times := range remaining {
		harness.Same(t, fmt.Sprintf("requests that were told that %d remain", left), 1, times)
	}
}

// takeConcurrently distributes requests over limiters and goroutines.
func takeConcurrently(t *testing.T, limiters []*Limiter, caller Caller, requests, clients int) []Decision {
	t.Helper()
	decisions := make([]Decision, requests)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < requests; i = int(next.Add(1)) - 1 {
				decisions[i] = limiters[i%len(limiters)].Take(t.Context(), caller)
			}
		})
	}
	wg.Wait()
	return decisions
}

func TestCallersAreCountedApart(t *testing.T) {
	l := newInMemory(t)
	callers := map[string]Caller{
		"a key":                                  Key("uid", 1),
		"another key":                            Key("uid2", 1),
		"an address":                             Address(netip.MustParseAddr("192.0.2.1")),
		"another address":                        Address(netip.MustParseAddr("192.0.2.2")),
		"an IPv6 network":                        Address(netip.MustParseAddr("2001:db8::1")),
		"the next IPv6 network":                  Address(netip.MustParseAddr("2001:db8:0:1::1")),
		"no address":                             Address(netip.Addr{}),
		"a key that is named as an address is":   Key("address:192.0.2.1/32", 1),
		"a key with a name that ends in another": Key("key:uid", 1),
	}
	for name, caller := range callers {
		if got := l.Take(t.Context(), caller); got.Remaining != got.Limit-1 {
			t.Errorf("%s has been counted before: %+v", name, got)
		}
	}
}

func TestOneClientIsOneCaller(t *testing.T) {
	cases := map[string]struct{ first, second, reason string }{
		"IPv6":   {"2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", "a client has a /64 to choose from"},
		"zone":   {"fe80::1%eth0", "fe80::1%eth1", "a zone is no other client"},
		"mapped": {"192.0.2.9", "::ffff:192.0.2.9", "an IPv4 client is the same over a dual-stack listener"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newInMemory(t)
			l.Take(t.Context(), Address(netip.MustParseAddr(c.first)))
			got := l.Take(t.Context(), Address(netip.MustParseAddr(c.second)))
			harness.Same(t, c.reason, DefaultRequestsPerMinute-2, got.Remaining)
		})
	}
}

func TestAChangedLimitHoldsAtOnce(t *testing.T) {
	l := newInMemory(t)
	l.Take(t.Context(), Key("a", 1))
	if got := l.Take(t.Context(), Key("a", 1)); got.Allowed {
		t.Fatalf("limit 1: %+v", got)
	}
	if got := l.Take(t.Context(), Key("a", 10)); !got.Allowed || got.Remaining != 7 {
		t.Errorf("raised to 10 after two requests: %+v", got)
	}
	if got := l.Take(t.Context(), Key("a", 2)); got.Allowed || got.Limit != 2 || got.Remaining != 0 {
		t.Errorf("lowered to 2 after three requests: %+v", got)
	}
}

func TestNoLimitDeclaredIsTheDefault(t *testing.T) {
	l := newInMemory(t)
	for _, declared := range []int{0, -5} {
		harness.Same(t, fmt.Sprint(declared, " declared"), DefaultRequestsPerMinute, l.Take(t.Context(), Key(fmt.Sprint(declared), declared)).Limit)
	}
}

func TestNobodyIsToldToWaitForLessThanASecondOrMoreThanAWindow(t *testing.T) {
	cases := map[string]struct {
		reason string
		left   time.Duration
		want   int
	}{
		"just opened":        {"no window is longer than 60 s", Window, 60},
		"half through":       {"rounded up", 30*time.Second + time.Millisecond, 31},
		"the last second":    {"never zero: a client would come back at once", time.Millisecond, 1},
		"over":               {"a counter that ended while the answer was made", -10 * time.Second, 1},
		"a window of others": {"nobody waits longer than a window", time.Hour, 60},
	}
	for name, c := range cases {
		harness.Same(t, name+": "+c.reason, c.want, secondsLeft(c.left, Window))
	}
}

func TestADecisionIsToldInHeaders(t *testing.T) {
	header := http.Header{}
	Decision{Allowed: true, Limit: 600, Remaining: 599, Reset: 60}.SetHeaders(header)
	want := http.Header{"X-Ratelimit-Limit": {"600"}, "X-Ratelimit-Remaining": {"599"}, "X-Ratelimit-Reset": {"60"}}
	harness.Same(t, "allowed", want, header)
	Decision{Limit: 600, Reset: 7}.SetHeaders(header)
	want = http.Header{
		"X-Ratelimit-Limit": {"600"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"7"}, "Retry-After": {"7"},
	}
	harness.Same(t, "refused", want, header)
}

func TestWindowsThatAreOverAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, l *Limiter) {
		for i := range 100 {
			l.Take(t.Context(), Key(fmt.Sprint(i), 1))
		}
		pass(Window)
		l.Take(t.Context(), Key("another", 1))
		harness.Same(t, "counters that are kept", 1, len(l.memory.windows))
	})
}

func TestAFloodOfAddressesTakesABoundedNumberOfCounters(t *testing.T) {
	l := newInMemory(t)
	early := Address(netip.MustParseAddr("192.0.2.1"))
	l.Take(t.Context(), early)
	for i := range 4 * maxAddresses {
		l.Take(t.Context(), Address(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(i >> 16), byte(i >> 8), byte(i), 7})))
	}
	if got := len(l.memory.windows); got > maxAddresses+overflowCounters {
		t.Errorf("%d counters for %d addresses, want at most %d", got, 4*maxAddresses, maxAddresses+overflowCounters)
	}
	harness.Same(t, "left to an address from before the flood", DefaultRequestsPerMinute-2, l.Take(t.Context(), early).Remaining)
	harness.Same(t, "left to a key, against which the flood does not count", 4, l.Take(t.Context(), Key("uid", 5)).Remaining)
}

// Else a sender with many addresses could choose those that share the counter of another client.
func TestNobodyCanTellWhichAddressesShareACounter(t *testing.T) {
	assigned := func(a *addresses) (ids []string) {
		for n := range byte(16) {
			ids = append(ids, a.overflowID(netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, n}), 32)))
		}
		return ids
	}
	a := newAddresses(0, Window)
	ids := assigned(a)
	harness.Same(t, "counters in one replica", ids, assigned(a))
	if slices.Equal(ids, assigned(newAddresses(0, Window))) {
		t.Error("another replica assigns the same counters, so everybody can compute them")
	}
}

func TestAddressesAreForgottenAfterTheirWindow(t *testing.T) {
	a := newAddresses(2, Window)
	network := func(n byte) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, n}), 32)
	}
	start := time.Unix(1_000_000_000, 0)
	steps := []struct {
		reason string
		after  time.Duration
		n      byte
		want   bool
	}{
		{"there is room", 0, 1, true},
		{"there is room", 0, 2, true},
		{"two are known", 0, 3, false},
		{"it is one of them", 30 * time.Second, 1, true},
		{"a window later there is room", 61 * time.Second, 3, true},
		{"it may have a counter yet", 62 * time.Second, 2, true},
		{"two are known, and this one is from the window before", 63 * time.Second, 1, true},
		{"two are known", 64 * time.Second, 4, false},
		{"two windows later nothing is left", 200 * time.Second, 4, true},
		{"two windows later nothing is left", 200 * time.Second, 5, true},
		{"two windows later nothing is left", 200 * time.Second, 1, false},
	}
	for _, s := range steps {
		harness.Same(t, fmt.Sprintf("after %s, address %d: %s", s.after, s.n, s.reason), s.want, a.admit(network(s.n), start.Add(s.after)))
	}
}

func TestMetricsCountOutcomes(t *testing.T) {
	registry := prometheus.NewRegistry()
	l, err := New(Options{Registerer: registry})
	harness.Must(t, err)
	for range 3 {
		l.Take(t.Context(), Key("a", 2))
	}
	const want = `
# HELP findings_ratelimit_redis_in_use 1 if the last request was counted in Redis, or if there was none and Redis is configured; 0 if in memory.
# TYPE findings_ratelimit_redis_in_use gauge
findings_ratelimit_redis_in_use 0
# HELP findings_ratelimit_requests_total Requests counted against a rate limit, by outcome (allowed, blocked) and by where they were counted (redis, memory).
# TYPE findings_ratelimit_requests_total counter
findings_ratelimit_requests_total{outcome="allowed",store="memory"} 2
findings_ratelimit_requests_total{outcome="allowed",store="redis"} 0
findings_ratelimit_requests_total{outcome="blocked",store="memory"} 1
findings_ratelimit_requests_total{outcome="blocked",store="redis"} 0
`
	err = testutil.GatherAndCompare(registry, strings.NewReader(want), "findings_ratelimit_requests_total", "findings_ratelimit_redis_in_use")
	harness.NoError(t, "metrics", err)
	gomega.NewWithT(t).Expect(func() { _, _ = New(Options{Registerer: registry}) }).To(gomega.Panic(),
		"a second limiter on the same registry would hide the first one's metrics")
}

// Without requests a replica must not report that Redis is away.
func TestRedisIsInUseUntilItFailsToCountARequest(t *testing.T) {
	l, err := New(Options{RedisURLFile: urlFile(t, "redis://127.0.0.1:1/0")})
	harness.Must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	if !isShared(l) {
		t.Error("Redis counts as away before the first request")
	}
	if l.Take(t.Context(), Key("a", 2)); isShared(l) {
		t.Error("Redis counts as used though nobody listens at its address")
	}
}

func TestAFaultyRedisURLIsRefusedWithoutItsPassword(t *testing.T) {
	write := func(url string) string { return urlFile(t, url) }
	cases := map[string]Options{
		"scheme":       {RedisURLFile: write("http://user:hunter2@localhost")},
		"port":         {RedisURLFile: write("redis://user:x:hunter2@localhost:port")},
		"not a URL":    {RedisURLFile: write("user:hunter2@localhost:6379")},
		"percent":      {RedisURLFile: write("redis://user:hunter2%zz@localhost")},
		"option":       {RedisURLFile: write("redis://localhost/?hunter2=1")},
		"empty file":   {RedisURLFile: write("\n")},
		"missing file": {RedisURLFile: filepath.Join(t.TempDir(), "none")},
	}
	for name, options := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := New(options); err == nil {
				t.Error("accepted")
			} else if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

// urlFile writes a URL to a file, as an operator mounts it.
func urlFile(t *testing.T, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "url")
	harness.Must(t, os.WriteFile(file, []byte(url), 0o600))
	return file
}

func TestTheURLCannotLengthenTheTimeouts(t *testing.T) {
	url := "redis://localhost/?read_timeout=9s&write_timeout=9s&dial_timeout=9s&pool_timeout=9s&max_retries=9&pool_size=7"
	options, err := redisOptions(urlFile(t, url), logr.Discard())
	harness.Must(t, err)
	got := []any{options.ReadTimeout, options.WriteTimeout, options.DialTimeout, options.PoolTimeout, options.MaxRetries, options.ContextTimeoutEnabled, options.PoolSize}
	want := []any{redisTimeout, redisTimeout, redisDialTimeout, redisTimeout, -1, true, 7}
	harness.Same(t, "result", want, got)
}

// New connections are still made to the server of the start, which must not learn the password of another.
func TestOnlyTheServerOfTheStartGetsARotatedPassword(t *testing.T) {
	for url, want := range map[string]string{
		"redis://u:new@old:6379":     "new",
		"redis://u:new@old:6379/3":   "new",
		"redis://u:new@new:6379":     "first",
		"redis://u:new@old:6380":     "first",
		"rediss://u:new@old:6379":    "first",
		"unix://u:new@/run/old:6379": "first",
	} {
		var log harness.Buffer
		file := urlFile(t, "redis://u:first@old:6379")
		options, err := redisOptions(file, harness.ErrorLogger(&log))
		harness.Must(t, err)
		harness.Must(t, os.WriteFile(file, []byte(url), 0o600))
		for range 2 {
			_, got, err := options.CredentialsProviderContext(t.Context())
			harness.Must(t, err)
			harness.Same(t, "the password after the URL became "+url, want, got)
		}
		lines := 1
		if url == "redis://u:new@old:6379" {
			lines = 0
		}
		harness.Same(t, "lines about a restart: "+url, lines, strings.Count(log.String(), "Restart the REST API"))
		for _, next := range []string{"redis://u:second@old:6379", "redis://u:new@new:6379", "no URL"} {
			harness.Must(t, os.WriteFile(file, []byte(next), 0o600))
			_, got, err := options.CredentialsProviderContext(t.Context())
			harness.Must(t, err)
			harness.Same(t, "the password after the URL became "+next, "second", got)
		}
	}
}

// Otherwise nobody learns of it before the next restart, which fails.
func TestAURLThatCanNoLongerBeReadIsLoggedOnce(t *testing.T) {
	const good, bad = "redis://u:first@old:6379", "redis://u:100%@old:6379"
	var log harness.Buffer
	file := urlFile(t, good)
	options, err := redisOptions(file, harness.ErrorLogger(&log))
	harness.Must(t, err)
	for _, step := range []struct {
		url   string
		lines int
	}{{good, 0}, {bad, 1}, {bad, 1}, {good, 1}, {bad, 2}} {
		harness.Must(t, os.WriteFile(file, []byte(step.url), 0o600))
		_, password, err := options.CredentialsProviderContext(t.Context())
		harness.Must(t, err)
		harness.Same(t, "the password that stays in use", "first", password)
		harness.Same(t, "lines so far", step.lines, strings.Count(log.String(), "A replica that starts now would fail"))
	}
	harness.Contains(t, "the log", log.String(), file, errRedisURL.Error())
	harness.Lacks(t, "the log, which holds no secret", log.String(), "100%")
}
