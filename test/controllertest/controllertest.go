// Package controllertest runs controllers for tests.
package controllertest

import (
	"context"
	"testing"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// Setup adds a controller to a manager.
type Setup func(context.Context, ctrl.Manager, controller.Options) error

// Start runs a manager with those controllers, as the service account and with the cache that they
// have in a cluster, until the test ends or the function returned is called.
func Start(t testing.TB, env *testenv.Environment, setups ...Setup) (stop func()) {
	t.Helper()
	identity, err := env.Controller(t.Context())
	harness.Must(t, err)
	mgr, err := ctrl.NewManager(identity, manager.Options{
		Scheme:  env.Scheme,
		Cache:   controllers.CacheOptions(),
		Client:  client.Options{FieldOwner: v1alpha1.ControllerFieldManager},
		Metrics: metricsserver.Options{BindAddress: "0"},
		// A test process runs several managers.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatalf("make a manager: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	for _, setup := range setups {
		if err := setup(ctx, mgr, controller.Options{MaxConcurrentReconciles: 4}); err != nil {
			cancel()
			t.Fatalf("set up a controller: %v", err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager stopped with %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}
