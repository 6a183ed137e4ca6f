package reconcile

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/internal/apitime"
)

// Base holds what every controller needs from its manager.
type Base struct {
	Client client.Client
	// Live reads from the API server, for decisions that must not depend on the cache. Secrets are read only with
	// it, so that no cache holds a token or private key.
	Live client.Reader
	// Recorder drops what exceeds the bound of NewRecorder.
	Recorder events.EventRecorder
	// Clock decides what is due. It may be set back, so durations are measured with the time package.
	Clock clock.PassiveClock
}

// NewBase returns the Base for a manager. Its Clock is never far ahead of the API server's, because what the
// controllers end, withdraw or delete by it does not come back once the clock is right.
func NewBase(mgr ctrl.Manager) Base {
	return Base{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Recorder: NewRecorder(mgr),
		Clock:    apitime.Clock{},
	}
}
