package handlers

import (
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAnEndIsRefusedByTheClockOfTheServer(t *testing.T) {
	for _, c := range []struct {
		clock   string
		server  time.Duration // from the local clock
		end     time.Duration
		refused bool
	}{
		{"the local clock is ahead", -4 * time.Minute, -2 * time.Minute, false},
		{"the local clock is behind", 10 * time.Minute, 5 * time.Minute, true},
	} {
		testenv.SetServerTime(t, time.Now().Add(c.server))
		end := time.Now().Add(c.end).UTC().Format(time.RFC3339)
		_, ofDecision := endOf(end)
		_, ofPolicy := policySpecOf(&openapi.TriagePolicyRequest{Match: "true", ValidUntil: &end})
		for what, err := range map[string]error{"a decision": ofDecision, "a policy": ofPolicy} {
			if (err != nil) != c.refused {
				t.Errorf("%s: the end of %s: %v", c.clock, what, err)
			}
		}
	}
}
