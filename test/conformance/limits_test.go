package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// window is the length of a limit's window, in seconds.
const window = 60

// limits are the values of an answer's three headers.
type limits struct{ limit, remaining, reset int }

func (a answer) limits() limits {
	a.t.Helper()
	return limits{a.number("X-Ratelimit-Limit"), a.number("X-Ratelimit-Remaining"), a.number("X-Ratelimit-Reset")}
}

// keyWithLimit returns a key with its own limit, of which keyOf has used one request.
func (o *organization) keyWithLimit(name string, requestsPerMinute int32) *caller {
	o.t.Helper()
	return o.keyOf(builder.APIKey(name).Mutate(func(k *v1alpha1.APIKey) {
		k.Spec.RateLimit = &v1alpha1.RateLimit{RequestsPerMinute: &requestsPerMinute}
	}))
}

// useUp sends requests until the limit is reached, and returns the first refused answer.
func (c *caller) useUp(most int) answer {
	c.t.Helper()
	for range most + 1 {
		if a := c.get("/v1/findings?size=1"); a.Status == 429 {
			return a
		}
	}
	c.t.Fatalf("%d requests were not refused", most+1)
	return answer{}
}

// refused sends a request, and repeats it while it is allowed: a replica that cannot reach the shared counter counts
// locally for a while, so each of two replicas allows that many more requests.
func (c *caller) refused(e endpoint, most int) answer {
	c.t.Helper()
	var a answer
	for range 2*most + 1 {
		if a = c.do(e.method, e.path, e.body); a.Status == 429 {
			break
		}
	}
	return a
}

func TestRateLimit_IsInEveryAnswer(t *testing.T) {
	o := sampleOrganization(t)
	reader := o.key("reader", v1alpha1.ScopeReposRead)
	for _, a := range []answer{
		o.get("/v1/findings"), o.get("/v1/findings?size=0"), o.get("/nowhere"), o.do("DELETE", "/v1/findings", ""),
		o.patch("/v1/findings/f-none", `{"user_status":"open"}`), o.patch("/v1/findings/f-none", `x`), reader.get("/v1/findings"),
		o.do("HEAD", "/v1/findings", ""), o.do("OPTIONS", "/v1/findings", ""), anonymous(t).get("/v1/findings"), anonymous(t).get("/openapi.json"),
	} {
		got := a.limits()
		if got.limit < 1 || got.remaining < 0 || got.remaining > got.limit || got.reset < 1 || got.reset > window {
			t.Errorf("%s: %d: got %+v", a.request, a.Status, got)
		}
	}
}

func TestRateLimit_Is600ByDefault(t *testing.T) {
	o := emptyOrganization(t, 0)
	harness.Same(t, "x-ratelimit-limit", 600, o.get("/v1/findings").limits().limit)
}

func TestRateLimit_IsTheOrganizationsUnlessTheKeyHasItsOwn(t *testing.T) {
	o := emptyOrganization(t, 1234)
	harness.Same(t, "x-ratelimit-limit", 1234, o.get("/v1/findings").limits().limit)
	for limit, name := range map[int32]string{77: "lower", 4321: "higher"} {
		harness.Same(t, "x-ratelimit-limit", int(limit), o.keyWithLimit(name, limit).get("/v1/findings").limits().limit)
	}
}

func TestRateLimit_AChangedLimitHoldsForRunningKeys(t *testing.T) {
	o := sampleOrganization(t)
	c := o.keyWithLimit("changed", 50)
	o.patchResource(c.apiKey, `{"spec":{"rateLimit":{"requestsPerMinute":500}}}`)
	harness.Eventually(t, func(g Gomega) { g.Expect(c.get("/v1/findings").Header.Get("X-Ratelimit-Limit")).To(Equal("500")) })
}

// A replica to which Redis has just answered too late counts locally for a moment, so it is enough if one of a few
// keys counts down.
func TestRateLimit_RemainingCountsDown(t *testing.T) {
	const tries = 5
	o := sampleOrganization(t)
	for try := range tries {
		wrong := countsDown(o.keyWithLimit("counted", 1000))
		if wrong == "" {
			return
		}
		if t.Log(wrong); try == tries-1 {
			t.Error("no key counts down")
		}
	}
}

func countsDown(c *caller) (wrong string) {
	last := c.get("/v1/findings").limits()
	for range 5 {
		got := c.get("/v1/findings").limits()
		if got.remaining != last.remaining-1 && got.reset <= last.reset {
			return fmt.Sprintf("remaining went from %d to %d", last.remaining, got.remaining)
		}
		last = got
	}
	return ""
}

func TestRateLimit_RequestsBeyondItAreBlocked(t *testing.T) {
	o := sampleOrganization(t)
	c := o.keyWithLimit("beyond", 5)
	a := c.useUp(5).wantsError(429, "Rate limit exceeded", "the sixth request")
	if got := a.limits(); got.limit != 5 || got.remaining != 0 {
		t.Errorf("got %+v", got)
	}
	if wait := a.number("Retry-After"); wait < 1 || wait > window || wait < a.limits().reset-1 {
		t.Errorf("retry-after is %d, x-ratelimit-reset %d", wait, a.limits().reset)
	}
}

func TestRateLimit_BlocksEveryEndpointOfTheKey(t *testing.T) {
	o := sampleOrganization(t)
	c := o.keyWithLimit("every-endpoint", 3)
	c.useUp(3)
	for _, e := range append(slices.Clone(endpoints), endpoint{method: "GET", path: "/nowhere"}) {
		c.refused(e, 3).wantsError(429, "Rate limit exceeded", "any endpoint").wantsCode("rate_limited")
	}
}

func TestRateLimit_IsAKeysOwn(t *testing.T) {
	o := sampleOrganization(t)
	o.keyWithLimit("busy", 3).useUp(3)
	o.keyWithLimit("idle", 3).get("/v1/findings").wants(200, "another key of the organization")
}

func TestRateLimit_RefusedRequestsWriteNothing(t *testing.T) {
	o := sampleOrganization(t)
	c := o.keyWithLimit("writes-nothing", 3)
	c.useUp(3)
	c.patch("/v1/findings/f-bare", `{"user_status":"muted"}`).wants(429, "blocked")
	harness.Same(t, "the finding's user status", v1alpha1.UserStatusOpen, o.storedFinding("f-bare").Spec.Triage.UserStatus)
}

// This takes a minute: only waiting shows that the window ends when the headers say, and that
// further requests do not extend it. It waits while the other tests run.
func TestRateLimit_EndsWithTheWindowThoughBlockedRequestsGoOn(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a minute")
	}
	c := sampleOrganization(t).keyWithLimit("window", 3)
	windowEnd := time.Now().Add(time.Duration(c.useUp(3).number("Retry-After")) * time.Second)
	ended := make(chan error, 1)
	go func() { ended <- c.blockedUntil(windowEnd) }()
	t.Parallel()
	harness.Must(t, <-ended)
	a := c.get("/v1/findings").wants(200, "after the seconds of retry-after")
	harness.Same(t, "what remains in a new window", 2, a.limits().remaining)
}

// blockedUntil sends requests until shortly before that time, which must all be refused, and returns at that time.
func (c *caller) blockedUntil(end time.Time) error {
	for time.Until(end) > 3*time.Second {
		a, err := c.Do(c.t.Context(), http.MethodGet, "/v1/findings", "")
		if err != nil {
			return err
		}
		if a.Status != http.StatusTooManyRequests {
			return fmt.Errorf("within the window: got %d, want 429", a.Status)
		}
		harness.Pause(c.t.Context(), 2*time.Second)
	}
	harness.Pause(c.t.Context(), time.Until(end))
	return c.t.Context().Err()
}

func TestRateLimit_AnAddressCannotBeChosenByTheClient(t *testing.T) {
	c := anonymous(t)
	harness.Same(t, "x-ratelimit-limit", 600, c.get("/v1/findings").limits().limit)
	for name, prefix := range map[string]string{"X-Forwarded-For": "", "X-Real-IP": "", "Forwarded": "for="} {
		// Two chosen addresses would have two windows, in each of which equally much remains until equally late.
		one := c.get("/v1/findings", apiclient.Header(name, prefix+"203.0.113.7")).limits()
		another := c.get("/v1/findings", apiclient.Header(name, prefix+"203.0.113.8")).limits()
		if another.remaining >= one.remaining && another.reset <= one.reset {
			t.Errorf("with %s: %d requests remain for one address, and then %d for another", name, one.remaining, another.remaining)
		}
	}
}
