package reconcile

import (
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/appsec-dev/findings-operator/test/testenv"
)

// clientless is a manager without an API server.
type clientless struct{ ctrl.Manager }

func (clientless) GetClient() client.Client                       { return nil }
func (clientless) GetAPIReader() client.Reader                    { return nil }
func (clientless) GetEventRecorder(string) recorder.EventRecorder { return nil }

func TestTheClockOfControllersIsNotFarAheadOfTheAPIServers(t *testing.T) {
	server := time.Now().Add(-72 * time.Hour)
	testenv.SetServerTime(t, server)
	if ahead := NewBase(clientless{}).Clock.Now().Sub(server); ahead > 10*time.Minute {
		t.Errorf("it is ahead by %s", ahead)
	}
}
