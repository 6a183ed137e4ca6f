package attack

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers"
	"github.com/appsec-dev/findings-operator/controllers/apikey"
	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/controllers/organization"
	"github.com/appsec-dev/findings-operator/controllers/project"
	"github.com/appsec-dev/findings-operator/controllers/repository"
	"github.com/appsec-dev/findings-operator/controllers/review"
	"github.com/appsec-dev/findings-operator/controllers/reviewissue"
	"github.com/appsec-dev/findings-operator/controllers/scan"
	"github.com/appsec-dev/findings-operator/controllers/webhookdelivery"
	"github.com/appsec-dev/findings-operator/controllers/webhookendpoint"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	// patience bounds whatever is waited for.
	patience = 2 * time.Minute
	interval = 20 * time.Millisecond
	// buildTimeout is for a machine that compiles everything for the first time.
	buildTimeout = 10 * time.Minute
	// plenty is the rate limit of organizations whose attacks are not about limits.
	plenty = 1_000_000
	// allowedReceiver is the one address of this machine that webhooks may be sent to.
	allowedReceiver = "127.77.0.1"
)

// programs is for whoever has built what is to be attacked in another way.
var programs = flag.String("programs", "", "folder with findings-operator and kubectl-findings; without it they are built")

// deployment is the service on a cluster of its own.
type deployment struct {
	env    *testenv.Environment
	admin  client.Client
	facade *facade
	// folder holds the programs and what they are given.
	folder string
	stops  []func() error
}

// startDeployment returns what has been started also beside an error.
func startDeployment() (d *deployment, err error) {
	d = &deployment{}
	if d.folder, err = os.MkdirTemp("", "attack-"); err != nil {
		return d, err
	}
	d.atEnd(func() error { return os.RemoveAll(d.folder) })
	if err := d.build(); err != nil {
		return d, err
	}
	if d.env, err = testenv.Start(); err != nil {
		return d, err
	}
	d.atEnd(d.env.Stop)
	d.admin = d.env.Client
	if err := d.startControllers(); err != nil {
		return d, err
	}
	d.facade, err = d.startFacade()
	return d, err
}

func (d *deployment) atEnd(stop func() error) { d.stops = append(d.stops, stop) }

func (d *deployment) stop() error {
	var errs []error
	for i := len(d.stops) - 1; i >= 0; i-- {
		errs = append(errs, d.stops[i]())
	}
	return errors.Join(errs...)
}

// build builds what is attacked. Without the race detector, whose memory is not the service's.
func (d *deployment) build() error {
	if *programs != "" {
		return os.CopyFS(d.folder, os.DirFS(*programs))
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "go", "build", "-o", d.folder+"/", "./cmd/findings-operator", "./cmd/kubectl-findings")
	command.Dir = testenv.RepositoryRoot()
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build what is attacked: %w\n%s", err, output)
	}
	return nil
}

// startControllers runs the controllers in this process, where names of receivers are resolved
// as the tests say.
func (d *deployment) startControllers() error {
	config, err := d.env.Controller(context.Background())
	if err != nil {
		return err
	}
	mgr, err := d.manager(config)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	d.atEnd(func() error {
		stop()
		return <-ended
	})
	return nil
}

func (d *deployment) manager(plane *rest.Config) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(plane, ctrl.Options{
		Scheme:     d.env.Scheme,
		Cache:      controllers.CacheOptions(),
		Client:     client.Options{FieldOwner: v1alpha1.ControllerFieldManager},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, err
	}
	receivers := netip.PrefixFrom(netip.MustParseAddr(allowedReceiver), 32)
	for _, setup := range []func(context.Context, ctrl.Manager, controller.Options) error{
		func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
			return apikey.SetupWithManager(ctx, mgr, options, testenv.SystemNamespace)
		},
		finding.SetupWithManager, organization.SetupWithManager, project.SetupWithManager, repository.SetupWithManager,
		review.SetupWithManager, reviewissue.SetupWithManager, scan.SetupWithManager,
		func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
			return webhookdelivery.SetupWithManager(ctx, mgr, options, webhookdelivery.Settings{Allowed: []netip.Prefix{receivers}})
		},
		func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
			return webhookendpoint.SetupWithManager(ctx, mgr, options, webhookendpoint.Settings{MaxPending: webhookendpoint.DefaultMaxPending})
		},
	} {
		if err := setup(context.Background(), mgr, controller.Options{MaxConcurrentReconciles: 4}); err != nil {
			return nil, err
		}
	}
	return mgr, nil
}

// kubeconfig writes a file for config.
func (d *deployment) kubeconfig(name string, config *rest.Config) (string, error) {
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(d.folder, name+".kubeconfig")
	return path, os.WriteFile(path, content, 0o600)
}

func freeAddresses(n int) ([]string, error) {
	var addresses []string
	for range n {
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// Open until all are known, so that no two are the same.
		defer listener.Close() //nolint:errcheck,revive // nothing was written
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}
