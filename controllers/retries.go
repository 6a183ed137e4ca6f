package controllers

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// firstRetry is the pause after the first failed reconcile of an object; it doubles with each further failure.
	firstRetry = 5 * time.Millisecond
	// longestRetry bounds that pause. The default of controller-runtime, 1000 s, would keep what failed during an outage
	// waiting for a quarter of an hour after its end.
	longestRetry = time.Minute
)

// NewRateLimiter returns the pauses before failed reconciles of one controller are repeated. Controllers must not share
// one: it counts failures by the object's name alone.
func NewRateLimiter() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, longestRetry)
}
