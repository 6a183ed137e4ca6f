// Package controllertest runs controllers for tests.
package controllertest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// Setup adds a controller to a manager.
type Setup func(context.Context, ctrl.Manager, controller.Options) error

// Start runs a manager with those controllers, with the service account and the cache that they
// have in a cluster, until the test ends or stop is called. It fails while tests share controllers.
func Start(t testing.TB, env *testenv.Environment, setups ...Setup) (stop func()) {
	t.Helper()
	failWhileShared(t)
	end, err := Run(env, setups...)
	harness.Must(t, err)
	stop = sync.OnceFunc(func() {
		if err := end(); err != nil {
			t.Errorf("the manager stopped with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Intercept wraps a setup so that the controller's calls to its client go through the functions.
func Intercept(setup Setup, calls interceptor.Funcs) Setup {
	return func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
		c := interceptor.NewClient(mgr.GetClient().(client.WithWatch), calls)
		return setup(ctx, intercepted{mgr, c}, options)
	}
}

type intercepted struct {
	ctrl.Manager
	client client.Client
}

func (m intercepted) GetClient() client.Client { return m.client }

// Places makes a namespace with the repository and the project of the builder's findings.
func Places(t *testing.T, env *testenv.Environment) (namespace string) {
	t.Helper()
	namespace = env.Namespace(t)
	env.Create(t, builder.Repository("repo").In(namespace).Build(), builder.Project("proj").In(namespace).Build())
	return namespace
}

// Run is Start outside of a test: the manager runs until stop is called.
func Run(env *testenv.Environment, setups ...Setup) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	identity, err := env.Controller(ctx)
	if err != nil {
		return nil, err
	}
	informers, err := controllers.NewInformers(identity)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(identity, manager.Options{
		Scheme: env.Scheme,
		Cache:  informers.Use(controllers.CacheOptions()),
		Client: client.Options{FieldOwner: v1alpha1.ControllerFieldManager},
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			return client.NewWithWatch(config, options) // for Intercept
		},
		Metrics: metricsserver.Options{BindAddress: "0"},
		// A test process runs several managers.
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("make a manager: %w", err)
	}
	if err := informers.Register(mgr, prometheus.NewRegistry()); err != nil {
		return nil, err
	}
	for _, setup := range setups {
		if err := setup(ctx, mgr, controllers.Options(4)); err != nil {
			return nil, fmt.Errorf("set up a controller: %w", err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() error {
		cancel()
		return <-done
	}, nil
}
