// Package controllertest runs controllers for tests.
package controllertest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers"
)

// Setup adds a controller to a manager.
type Setup func(context.Context, ctrl.Manager, controller.Options) error

// Start runs a manager with those controllers, with the cache that the real one has, until the
// test ends or the function returned is called.
func Start(t testing.TB, cfg *rest.Config, scheme *runtime.Scheme, setups ...Setup) (stop func()) {
	t.Helper()
	mgr, err := ctrl.NewManager(cfg, manager.Options{
		Scheme:  scheme,
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
