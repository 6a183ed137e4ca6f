package handlers

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestARequestThatGetsNoTurnIsAnsweredAsBusy(t *testing.T) {
	answer := problem.Of(Unavailable(fmt.Errorf("count: %w", slots.ErrBusy)))
	harness.Same(t, "the status", http.StatusTooManyRequests, answer.Status)
	harness.Same(t, "the time to try again", time.Second, answer.RetryAfter)
}
