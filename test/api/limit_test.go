package api_test

import (
	"fmt"
	"strconv"
	"testing"

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

// Callers without a valid key are counted by address, as reported by the trusted proxy.
func TestCallersWithoutAKeyAreLimitedByAddress(t *testing.T) {
	guesser, other := newCaller(t, facade, "guess"), newCaller(t, facade, "guess")
	limit := guesser.get("/v1/findings").wants(401, "no valid key").number("X-Ratelimit-Limit")
	harness.Same(t, "the limit", 600, limit)
	for i := range limit - 1 {
		guesser.token = fmt.Sprint("guess-", i) // with another key it is no other caller
		guesser.get("/v1/findings").wants(401, "within the limit")
	}
	guesser.get("/v1/findings").wantsError(429, "Rate limit exceeded", "guessing keys is limited")
	guesser.get("/openapi.json").wants(429, "the contract too")
	other.get("/v1/findings").wants(401, "another address")
	c := newOrganization(t).key("ci")
	c.address = guesser.address
	c.get("/v1/findings").wants(200, "a valid key from the same address")
}
