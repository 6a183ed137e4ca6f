package controllers

import (
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

func TestWhatFailedDuringAnOutageIsRetriedWithinAMinuteOfItsEnd(t *testing.T) {
	limiter, request := NewRateLimiter(), ctrl.Request{}
	if first := limiter.When(request); first > time.Second {
		t.Errorf("the first pause is %s", first)
	}
	for range 100 {
		if pause := limiter.When(request); pause > time.Minute {
			t.Fatalf("a pause of %s", pause)
		}
	}
}
