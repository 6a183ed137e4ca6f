package reconcile

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Base holds what every controller needs from its manager.
type Base struct {
	Client client.Client
	// Live reads from the API server, for decisions that must not depend on the cache. Secrets are read only with
	// it, so that no cache holds a token or private key.
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
}

// NewBase returns the Base for a manager.
func NewBase(mgr ctrl.Manager) Base {
	return Base{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		Clock:    clock.RealClock{},
	}
}
