// Package api tests the REST API: the real server with its real router, on a real kube-apiserver,
// with the rights of its own service account.
package api_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// patience bounds every wait of a test. client-go may wait 30 seconds before it retries a lost API server, so it is
// well above that.
const patience = harness.Patience

var (
	env *testenv.Environment
	// facade is the server that tests share; each test has its own organizations in it.
	facade *server
	// controller writes in place of the controllers.
	controller client.Client
	signingKey tokens.SigningKey
)

func TestMain(m *testing.M) {
	harness.AtATime(6) // all that are parallel: they mostly wait
	harness.Main(m, start)
}

func start(ctx context.Context, stops *harness.Stops) (err error) {
	klog.SetLogger(logr.Discard())
	if env, err = testenv.Start(stops); err != nil {
		return err
	}
	config, err := env.Controller(ctx)
	if err != nil {
		return err
	}
	if controller, err = env.NewClient(config); err != nil {
		return err
	}
	if err := publishSigningKey(ctx); err != nil {
		return err
	}
	if config, err = env.Facade(ctx); err != nil {
		return err
	}
	if facade, err = newServer(config, apiserver.Options{}); err != nil {
		return err
	}
	stops.Add(facade.stop)
	return facade.waitUntilReady(ctx)
}

func publishSigningKey(ctx context.Context) error {
	signingKey = tokens.GenerateSigningKey()
	data, err := tokens.EncodeKeySet(signingKey.Public())
	if err != nil {
		return err
	}
	return env.Client.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: testenv.SystemNamespace, Name: tokens.SigningKeysConfigMap},
		Data:       data,
	})
}

// server is a running facade.
type server struct {
	*apiserver.Server
	stop func() error
}

// newServer starts a facade on its own ports.
func newServer(config *rest.Config, options apiserver.Options) (*server, error) {
	options.Config = config
	options.BindAddress = "127.0.0.1:0"
	options.HealthBindAddress = "127.0.0.1:0"
	options.Namespace = testenv.SystemNamespace
	options.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	started, err := apiserver.New(options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- started.Run(ctx) }()
	return &server{Server: started, stop: func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			return errors.New("the server did not stop")
		}
	}}, nil
}

// url returns the URL of a path of the REST API.
func (s *server) url(path string) string { return "http://" + s.Address() + path }

func (s *server) waitUntilReady(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		status, _, err := s.health(ctx, "/readyz")
		return status == http.StatusOK, err
	})
}

// health sends a request to the port of health and metrics.
func (s *server) health(ctx context.Context, path string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.HealthAddress()+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	status, content, err := harness.Answer(nil, request)
	return status, string(content), err
}
