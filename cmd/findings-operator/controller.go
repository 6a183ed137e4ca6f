package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers"
	"github.com/appsec-dev/findings-operator/controllers/apikey"
	"github.com/appsec-dev/findings-operator/controllers/cursorkeys"
	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/controllers/organization"
	"github.com/appsec-dev/findings-operator/controllers/project"
	"github.com/appsec-dev/findings-operator/controllers/repository"
	"github.com/appsec-dev/findings-operator/controllers/retention"
	"github.com/appsec-dev/findings-operator/controllers/review"
	"github.com/appsec-dev/findings-operator/controllers/reviewissue"
	"github.com/appsec-dev/findings-operator/controllers/scan"
	"github.com/appsec-dev/findings-operator/controllers/webhookdelivery"
	"github.com/appsec-dev/findings-operator/controllers/webhookendpoint"
)

// controllerSetup adds one controller to the manager.
type controllerSetup struct {
	// name as in --concurrency.
	name string
	// workers is the default number of objects reconciled at a time.
	workers int
	setup   func(context.Context, ctrl.Manager, controller.Options) error
}

// controllerSetups are all controllers, a line each. A package that needs more than the
// manager is given it here, by a closure over the options.
func (o *controllerOptions) controllerSetups() []controllerSetup {
	return []controllerSetup{
		{"apikey", 2, func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
			return apikey.SetupWithManager(ctx, mgr, options, o.namespace)
		}},
		// Few, so that what scanners and people write comes first on a busy API server.
		{"finding", 2, finding.SetupWithManager},
		{"organization", 2, organization.SetupWithManager},
		{"project", 4, project.SetupWithManager},
		{"repository", 2, repository.SetupWithManager},
		{"retention", 2, func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
			return retention.SetupWithManager(ctx, mgr, options, retention.Settings{Rate: o.retentionRate})
		}},
		{"review", 2, review.SetupWithManager},
		{"reviewissue", 4, reviewissue.SetupWithManager},
		{"scan", 2, scan.SetupWithManager},
		{"webhookdelivery", 4, func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
			return webhookdelivery.SetupWithManager(ctx, mgr, options, webhookdelivery.Settings{Allowed: o.webhookAllowed})
		}},
		{"webhookendpoint", 2, func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
			return webhookendpoint.SetupWithManager(ctx, mgr, options, webhookendpoint.Settings{MaxPending: o.webhookMaxPending})
		}},
	}
}

const (
	// leaseName is the Lease that the controllers' leader holds.
	leaseName = "findings-controller"
	// reconcileTimeout bounds one reconcile, however slow the API server is.
	reconcileTimeout = 2 * time.Minute
	// cacheSyncTimeout is what the first list of all findings, 100,000 or more, may take.
	cacheSyncTimeout = 10 * time.Minute
	// shutdownTimeout is what reconciles at work get to come to an end.
	shutdownTimeout = 20 * time.Second
	// leastRetentionRate lets one removal wait for its turn within reconcileTimeout.
	leastRetentionRate = 0.1
	// readinessTimeout bounds the look at the caches: they have either synced or not.
	readinessTimeout = time.Second
)

// controllerOptions are the flags of `findings-operator controller` and what follows from them.
type controllerOptions struct {
	kubeconfig         string
	findingsKubeconfig string
	namespace          string
	leaderElect        bool
	metricsAddress     string
	probeAddress       string
	concurrency        map[string]int
	webhookAllowCIDR   []string
	webhookMaxPending  int
	cursorKeysSecret   string
	retentionRate      float32
	zap                zap.Options

	// local is the API server of the Lease, plane that of the kinds: mostly the same one.
	local, plane *rest.Config
	// webhookAllowed is webhookAllowCIDR, read.
	webhookAllowed []netip.Prefix
	// sharedProcess is set by tests that run several managers in one process, where the names
	// of controllers in metrics cannot be unique.
	sharedProcess bool
}

func newControllerCommand() *cobra.Command {
	o := &controllerOptions{}
	command := &cobra.Command{
		Use:   "controller",
		Short: "Run the controllers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			// Loggers belong to the process, so they are set here and not in run.
			logger := zap.New(zap.UseFlagOptions(&o.zap))
			ctrl.SetLogger(logger)
			klog.SetLogger(logger)
			return o.run(cmd.Context())
		},
	}
	o.addFlags(command.Flags())
	return command
}

func (o *controllerOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Path of a kubeconfig file. Default: KUBECONFIG, else the service account of the pod.")
	flags.StringVar(&o.findingsKubeconfig, "findings-kubeconfig", "",
		"Path of a kubeconfig file for the API server where the kinds live, if that is another. Leader election stays with --kubeconfig.")
	flags.StringVar(&o.namespace, "namespace", "findings-system", "The operator's own namespace.")
	flags.BoolVar(&o.leaderElect, "leader-elect", false,
		"Work only while holding the Lease "+leaseName+" in --namespace. Needed to run more than one replica.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":9090", "Address of /metrics, over HTTP; 0 turns it off.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":9091", "Address of /healthz and /readyz; 0 turns them off.")
	flags.StringToIntVar(&o.concurrency, "concurrency", nil,
		"Objects reconciled at a time, by controller. Default: "+o.defaultConcurrency()+".")
	flags.StringArrayVar(&o.webhookAllowCIDR, "webhook-allow-cidr", nil,
		"Range of addresses that webhooks may be sent to though it is not public, for example 10.1.0.0/16. Repeatable.")
	flags.StringVar(&o.cursorKeysSecret, "cursor-keys-secret", "",
		"Secret in --namespace, to be mounted as the apiserver's --cursor-keys-dir, that is made with a random key where it is not there.")

	flags.IntVar(&o.webhookMaxPending, "webhook-max-pending", webhookendpoint.DefaultMaxPending,
		"Above how many waiting deliveries no more are made for a webhook endpoint. What happens is recorded, and sent once less than half as many wait.")

	flags.Float32Var(&o.retentionRate, "retention-rate", retention.DefaultRate,
		"How many objects that are kept no longer are removed a second, for all organizations together.")

	o.zap.TimeEncoder = zapcore.RFC3339TimeEncoder
	logging := flag.NewFlagSet("logging", flag.ContinueOnError)
	o.zap.BindFlags(logging)
	flags.AddGoFlagSet(logging)
}

func (o *controllerOptions) defaultConcurrency() string {
	var out []string
	for _, c := range o.controllerSetups() {
		out = append(out, fmt.Sprintf("%s=%d", c.name, c.workers))
	}
	return strings.Join(out, ",")
}

// complete reads the ranges and the kubeconfig files.
func (o *controllerOptions) complete() error {
	for _, text := range o.webhookAllowCIDR {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--webhook-allow-cidr %q is no range of addresses like 10.1.0.0/16 or fd00::/8", text)
		}
		o.webhookAllowed = append(o.webhookAllowed, prefix)
	}
	var err error
	if o.local, err = loadConfig(o.kubeconfig); err != nil {
		return fmt.Errorf("find the API server (give --kubeconfig, or run in a pod): %w", err)
	}
	o.plane = o.local
	if o.findingsKubeconfig == "" {
		return nil
	}
	if o.plane, err = loadConfig(o.findingsKubeconfig); err != nil {
		return fmt.Errorf("read --findings-kubeconfig: %w", err)
	}
	return nil
}

func loadConfig(path string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	// The API server shares itself out by Priority and Fairness; client-go's own default of five
	// requests a second would make an import of 10,000 findings take half an hour.
	cfg.QPS = -1
	cfg.UserAgent = rest.DefaultKubernetesUserAgent() + "/" + v1alpha1.ControllerFieldManager
	return cfg, nil
}

func (o *controllerOptions) validate() error {
	var errs []error
	if problems := validation.IsDNS1123Label(o.namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--namespace %q is no namespace: %s", o.namespace, strings.Join(problems, "; ")))
	}
	known := map[string]bool{}
	for _, c := range o.controllerSetups() {
		known[c.name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(o.concurrency)) {
		if !known[name] {
			errs = append(errs, fmt.Errorf("--concurrency names no controller %q; there are %s", name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		}
		if n := o.concurrency[name]; n < 1 {
			errs = append(errs, fmt.Errorf("--concurrency %s=%d: at least 1 is needed", name, n))
		}
	}
	if o.webhookMaxPending < 1 {
		errs = append(errs, fmt.Errorf("--webhook-max-pending %d: at least 1 is needed", o.webhookMaxPending))
	}
	if o.retentionRate < leastRetentionRate {
		errs = append(errs, fmt.Errorf("--retention-rate %v: at least %v is needed", o.retentionRate, leastRetentionRate))
	}
	return errors.Join(errs...)
}

// run keeps the controllers at work until the context ends, and returns once they have stopped.
func (o *controllerOptions) run(ctx context.Context) error {
	mgr, err := o.manager()
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	for _, c := range o.controllerSetups() {
		options := controller.Options{
			MaxConcurrentReconciles: c.workers,
			ReconciliationTimeout:   reconcileTimeout,
			CacheSyncTimeout:        cacheSyncTimeout,
		}
		if n, ok := o.concurrency[c.name]; ok {
			options.MaxConcurrentReconciles = n
		}
		if err := c.setup(ctx, mgr, options); err != nil {
			return fmt.Errorf("set up the controller %q: %w", c.name, err)
		}
	}
	if err := o.addCursorKeys(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// registerer takes metrics whose names tests that share a process could not register twice.
func (o *controllerOptions) registerer() prometheus.Registerer {
	if o.sharedProcess {
		return prometheus.NewRegistry()
	}
	return metrics.Registry
}

// addCursorKeys has the Secret of cursor keys made, in the cluster that the facade runs in.
func (o *controllerOptions) addCursorKeys(mgr ctrl.Manager) error {
	if o.cursorKeysSecret == "" {
		return nil
	}
	maker, err := cursorkeys.New(o.local, o.namespace, o.cursorKeysSecret, mgr.GetLogger().WithName("cursorkeys"))
	if err != nil {
		return err
	}
	return mgr.Add(maker)
}

func (o *controllerOptions) manager() (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	informers, err := controllers.NewInformers(o.plane)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(o.plane, manager.Options{
		Scheme:                  scheme,
		Cache:                   informers.Use(controllers.CacheOptions()),
		Client:                  client.Options{FieldOwner: v1alpha1.ControllerFieldManager},
		Metrics:                 metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:  o.probeAddress,
		GracefulShutdownTimeout: ptr.To(shutdownTimeout),

		LeaderElection:          o.leaderElect,
		LeaderElectionID:        leaseName,
		LeaderElectionNamespace: o.namespace,
		LeaderElectionConfig:    o.local,
		// Nothing is done after the manager has stopped but to exit, so another may take over at once.
		LeaderElectionReleaseOnCancel: true,

		Controller: config.Controller{
			// A replica in waiting keeps its caches full, so that it can take over at once.
			EnableWarmup:       ptr.To(true),
			SkipNameValidation: ptr.To(o.sharedProcess),
		},
	})
	if err != nil {
		return nil, err
	}
	if err := informers.Register(mgr, o.registerer()); err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("caches", cachesSynced(mgr))
}

// cachesSynced is ready once the controllers can see everything.
func cachesSynced(mgr ctrl.Manager) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), readinessTimeout)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches have not synced yet")
		}
		return nil
	}
}
