package api_test

import (
	"strconv"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func (a answer) number(name string) int {
	a.t.Helper()
	n, err := strconv.Atoi(a.header.Get(name))
	if err != nil {
		a.t.Errorf("the header %s: %v", name, err)
	}
	return n
}

// limited returns a caller whose key may send that many requests per minute, once the facade has
// observed the limit.
func limited(o *organization, requestsPerMinute int) *caller {
	o.t.Helper()
	c := o.key("ci")
	o.limit(requestsPerMinute)
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(c.get("/v1/findings").header.Get("X-Ratelimit-Limit")).To(Equal(strconv.Itoa(requestsPerMinute)))
	})
	return c
}

// Every request counts and reports the remaining quota, whatever its answer.
func TestEveryRequestOfAKeyIsCounted(t *testing.T) {
	o := newOrganization(t)
	c := limited(o, 50_000)
	before := c.get("/v1/findings").number("X-Ratelimit-Remaining")
	for _, r := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/v2/repos", 200},
		{"HEAD", "/v1/findings", 200},
		{"OPTIONS", "/v1/findings", 204},
		{"GET", "/v1/findings?size=0", 400},
		{"GET", "/nowhere", 404},
		{"DELETE", "/v1/findings", 405},
		{"GET", "/openapi.json", 200},
		{"GET", "/docs", 200},
	} {
		a := c.do(r.method, r.path, "").wants(r.status, r.method+" "+r.path)
		before--
		if got := a.number("X-Ratelimit-Remaining"); got != before {
			t.Errorf("%s %s: %d requests are left, want %d", r.method, r.path, got, before)
		}
		if reset := a.number("X-Ratelimit-Reset"); reset < 1 || reset > 60 {
			t.Errorf("%s %s: the reset is in %d s", r.method, r.path, reset)
		}
	}
}

// Callers without a valid key are counted by address, as reported by the trusted proxy.
func TestCallersWithoutAKeyAreLimitedByAddress(t *testing.T) {
	guesser, other := newCaller(t, facade, "guess"), newCaller(t, facade, "guess")
	limit := guesser.get("/v1/findings").wants(401, "no valid key").number("X-Ratelimit-Limit")
	harness.Same(t, "the limit", 600, limit)
	for range limit - 1 {
		guesser.get("/v1/findings").wants(401, "within the limit")
	}
	guesser.get("/v1/findings").wantsError(429, "Rate limit exceeded", "guessing keys is limited")
	guesser.get("/openapi.json").wants(429, "the contract too")
	other.get("/v1/findings").wants(401, "another address")
	c := newOrganization(t).key("ci")
	c.address = guesser.address
	c.get("/v1/findings").wants(200, "a valid key from the same address")
}
