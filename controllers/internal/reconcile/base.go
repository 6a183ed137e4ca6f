package reconcile

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Base is what every controller has of its manager.
type Base struct {
	Client client.Client
	// Live reads from the API server itself, where a decision must not rest on the cache. Secrets are read with it
	// alone, so that no token and no private key is kept in a cache.
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
}

// NewBase returns that of a manager.
func NewBase(mgr ctrl.Manager) Base {
	return Base{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		Clock:    clock.RealClock{},
	}
}
