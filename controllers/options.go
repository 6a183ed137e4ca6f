package controllers

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

const (
	// reconcileTimeout bounds one reconcile, even if the API server is slow.
	reconcileTimeout = 2 * time.Minute
	// cacheSyncTimeout bounds how long a controller takes to start its watches. The manager has filled the caches before
	// that, however long it took.
	cacheSyncTimeout = 10 * time.Minute
	// firstRetry is the pause after the first failed reconcile of an object. It doubles with each further failure.
	firstRetry = 5 * time.Millisecond
	// maxRetry bounds that pause. The default of controller-runtime, 1000 s, would delay what failed during an outage
	// until a quarter of an hour after its end.
	maxRetry = time.Minute
)

// Options returns the options of a controller with that many workers.
func Options(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		ReconciliationTimeout:   reconcileTimeout,
		CacheSyncTimeout:        cacheSyncTimeout,
		RateLimiter:             NewRateLimiter(),
		NewQueue:                watch.NewFairQueue,
	}
}

// NewRateLimiter returns the backoff of one controller's failed reconciles. Controllers must not share one, because it
// counts failures by the object's name alone.
func NewRateLimiter() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, maxRetry)
}
