package reconcile

import (
	"cmp"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const (
	// eventBurst is how many Events a namespace may get at once, eventRate how many per second from then on. The API
	// server keeps each for an hour, and no quota counts them.
	eventBurst = 200
	eventRate  = rate.Limit(1)
	// eventRefill is how long a namespace that has used up its burst must send nothing to get all of it back.
	eventRefill = eventBurst * time.Second
	// droppedInterval is how often the log reports that a namespace's Events are dropped.
	droppedInterval = 10 * time.Minute
)

// NewRecorder returns a recorder that bounds the Events of each namespace, and of each cluster-scoped object: one
// change by a tenant may affect tens of thousands of its objects. It drops Events beyond the bound, and logs that.
// Recorders do not share a bound.
func NewRecorder(mgr ctrl.Manager) events.EventRecorder {
	return newRecorder(mgr.GetEventRecorder(v1alpha1.ControllerFieldManager), clock.RealClock{})
}

func newRecorder(to events.EventRecorder, clock clock.PassiveClock) *boundedRecorder {
	return &boundedRecorder{to: to, clock: clock, allowances: map[allowanceKey]*allowance{}, swept: clock.Now()}
}

type boundedRecorder struct {
	to    events.EventRecorder
	clock clock.PassiveClock

	mu         sync.Mutex
	allowances map[allowanceKey]*allowance
	// swept is when full allowances were last removed.
	swept time.Time
}

// allowanceKey is a namespace, or the name of a cluster-scoped object.
type allowanceKey struct{ namespace, name string }

// allowance is how many Events may be sent now.
type allowance struct {
	*rate.Limiter
	logged rate.Sometimes
}

// Eventf implements events.EventRecorder.
func (r *boundedRecorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string,
	args ...any) {
	key := keyOf(regarding)
	if a := r.allowanceOf(key); !a.AllowN(r.clock.Now(), 1) {
		a.logged.Do(func() {
			ctrl.Log.WithName("events").Info("Events are dropped: too many objects change",
				"of", cmp.Or(key.namespace, key.name), "reason", reason)
		})
		return
	}
	r.to.Eventf(regarding, related, eventType, reason, action, note, args...)
}

func keyOf(regarding runtime.Object) allowanceKey {
	object, err := meta.Accessor(regarding)
	switch {
	case err != nil:
		return allowanceKey{}
	case object.GetNamespace() != "":
		return allowanceKey{namespace: object.GetNamespace()}
	}
	return allowanceKey{name: object.GetName()}
}

// allowanceOf returns the allowance for the key. It periodically drops full ones: a new one starts full.
func (r *boundedRecorder) allowanceOf(key allowanceKey) *allowance {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.clock.Now(); now.Sub(r.swept) >= eventRefill {
		r.swept = now
		maps.DeleteFunc(r.allowances, func(_ allowanceKey, a *allowance) bool { return a.TokensAt(now) >= eventBurst })
	}
	a := r.allowances[key]
	if a == nil {
		a = &allowance{rate.NewLimiter(eventRate, eventBurst), rate.Sometimes{Interval: droppedInterval}}
		r.allowances[key] = a
	}
	return a
}
