package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
	"github.com/appsec-dev/findings-operator/controllers"
	"github.com/appsec-dev/findings-operator/controllers/apikey"
	"github.com/appsec-dev/findings-operator/controllers/cursorkeys"
	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/controllers/findingtrend"
	"github.com/appsec-dev/findings-operator/controllers/organization"
	"github.com/appsec-dev/findings-operator/controllers/project"
	"github.com/appsec-dev/findings-operator/controllers/repository"
	"github.com/appsec-dev/findings-operator/controllers/retention"
	"github.com/appsec-dev/findings-operator/controllers/review"
	"github.com/appsec-dev/findings-operator/controllers/reviewissue"
	"github.com/appsec-dev/findings-operator/controllers/scan"
	"github.com/appsec-dev/findings-operator/controllers/triageoperation"
	"github.com/appsec-dev/findings-operator/controllers/triagepolicy"
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

// controllerSetups returns all controllers, one per line. A package that needs more than the manager gets it here, in
// its Settings. Each call creates the state that its controllers share, so take all controllers of a manager from one.
func (o *controllerOptions) controllerSetups() []controllerSetup {
	implied := finding.NewImplied()
	if !o.impliedStatuses {
		implied = nil
	}
	emptying := review.NewEmptying()
	return []controllerSetup{
		{"apikey", 2, apikey.Settings{Namespace: o.namespace}.SetupWithManager},
		// Few workers, so that writes by scanners and users take precedence on a busy API server.
		{"finding", 2, finding.Settings{Implied: implied}.SetupWithManager},
		{"findingtrend", 1, findingtrend.Settings{}.SetupWithManager},
		{"organization", 2, organization.SetupWithManager},
		{"project", 4, project.SetupWithManager},
		{"repository", 2, repository.SetupWithManager},
		{"retention", 2, retention.Settings{Rate: o.retentionRate, Implied: implied, Emptying: emptying}.SetupWithManager},
		{"review", 2, review.Settings{Emptying: emptying}.SetupWithManager},
		{"reviewissue", 4, reviewissue.SetupWithManager},
		{"scan", 2, scan.Settings{Implied: implied}.SetupWithManager},
		{"triageoperation", 2, triageoperation.SetupWithManager},
		{"triagepolicy", 2, triagepolicy.SetupWithManager},
		{"webhookdelivery", 4, o.webhooks.SetupWithManager},
		{"webhookendpoint", 2, webhookendpoint.Settings{MaxPending: o.webhookMaxPending}.SetupWithManager},
	}
}

const (
	// defaultLease is the Lease that the controllers' leader holds. The chart names it after the release, and passes no
	// name for a release named findings.
	defaultLease = "findings-controller"
	// shutdownTimeout is how long running reconciles may take to finish.
	shutdownTimeout = 20 * time.Second
	// minRetentionRate ensures that a deletion gets its turn within the time that controllers.Options give a reconcile.
	minRetentionRate = 0.1
)

// controllerOptions are the flags of `findings-operator controller` and what follows from them.
type controllerOptions struct {
	commonOptions

	leaderElect       bool
	leaderElectionID  string
	metricsAddress    string
	probeAddress      string
	concurrency       map[string]int
	webhookAllowCIDR  []string
	webhookDenyCIDR   []string
	webhookNAT64      []string
	webhookMaxPending int
	impliedStatuses   bool
	cursorKeysSecret  string
	retentionRate     float32

	// leases connects to the API server of the Lease and of the cursor keys, kinds to that of the kinds.
	leases, kinds *rest.Config
	// webhooks holds the parsed ranges of addresses.
	webhooks webhookdelivery.Settings
}

func newControllerCommand() *cobra.Command {
	o := &controllerOptions{}
	command := &cobra.Command{
		Use:   "controller",
		Short: "Run the controllers",
		Long: `Run the controllers of all kinds.

They record in the status of each object what they observe, send webhooks, and remove objects
after their retention. More than one replica needs --leader-elect: one leads, and another takes
over when it stops. With --findings-kubeconfig the Lease stays in the cluster of --kubeconfig.

/metrics is served on one port, /healthz and /readyz on another.`,
		Example: `  # Against the cluster of a kubeconfig file, without leader election
  findings-operator controller --kubeconfig ./kubeconfig`,
		Args: flagerror.NoArguments(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			o.logger() // the logger is global, so it is set here and not in run
			return o.run(cmd.Context(), metrics.Registry)
		},
	}
	o.addFlags(command.Flags())
	return command
}

func (o *controllerOptions) addFlags(flags *pflag.FlagSet) {
	o.commonOptions.addFlags(flags)
	flags.BoolVar(&o.leaderElect, "leader-elect", false,
		"reconcile only while holding the Lease --leader-election-id in --namespace; required for more than one replica")
	flags.StringVar(&o.leaderElectionID, "leader-election-id", defaultLease,
		"name of the Lease of --leader-elect; operators of different findings planes in one namespace need different ones")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":9090", "address of /metrics, over HTTP; 0 turns it off")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":9091",
		"address of /healthz and /readyz; 0 turns them off")
	flags.StringToIntVar(&o.concurrency, "concurrency", nil,
		"how many objects are reconciled at a time, by controller; defaults: "+o.defaultConcurrency())
	flags.Lookup("concurrency").DefValue = "" // help would end with "(default [])"
	flags.StringArrayVar(&o.webhookAllowCIDR, "webhook-allow-cidr", nil,
		"range of addresses that are not public and that webhooks may be sent to, for example 10.1.0.0/16; repeatable")
	flags.StringArrayVar(&o.webhookDenyCIDR, "webhook-deny-cidr", nil,
		"range of addresses that webhooks may not be sent to, even if they are public or in --webhook-allow-cidr: the\n"+
			"pods and Services of a cluster that gives them global addresses, for example 2001:db8:1::/48; repeatable")
	flags.StringArrayVar(&o.webhookNAT64, "webhook-nat64-prefix", nil,
		"prefix of 96 bits of the network's NAT64, if it is not 64:ff9b::/96: webhooks are sent to its addresses only if\n"+
			"the IPv4 address in them is public or in --webhook-allow-cidr, for example 2001:db8:64::/96; repeatable")
	flags.BoolVar(&o.impliedStatuses, "implied-statuses", true,
		"store no status for a finding that is open and unchanged since its creation, if every webhook endpoint has a\n"+
			"delivery of its finding.created or gets one after its backlog: imports cost the API server half the writes,\n"+
			"and Ready and observedGeneration are absent meanwhile; false for tools that wait for every finding to be Ready")
	flags.StringVar(&o.cursorKeysSecret, "cursor-keys-secret", "",
		"Secret in --namespace that is mounted as the apiserver's --cursor-keys-dir; if it does not exist,\n"+
			"it is created with a random key")
	flags.IntVar(&o.webhookMaxPending, "webhook-max-pending", webhookendpoint.DefaultMaxPending,
		"how many deliveries may be pending for a webhook endpoint before only single decisions become further ones,\n"+
			"until fewer than half as many are pending; with more than twice as many pending not even decisions do,\n"+
			"until no more than this many are. What is held back is sent later, unless the endpoint is disabled meanwhile")
	flags.Float32Var(&o.retentionRate, "retention-rate", retention.DefaultRate,
		"how many objects retention removes per second, over all organizations; at least 0.1")
	flags.SetNormalizeFunc(formerNames)
}

// formerNames accepts the former names of the log flags.
func formerNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "zap-log-level":
		name = "log-level"
	case "zap-encoder":
		name = "log-format"
	}
	return pflag.NormalizedName(name)
}

func (o *controllerOptions) defaultConcurrency() string {
	var out []string
	for _, c := range o.controllerSetups() {
		out = append(out, fmt.Sprintf("%s=%d", c.name, c.workers))
	}
	return strings.Join(out, ",")
}

// complete validates the flags and reads the kubeconfig files.
func (o *controllerOptions) complete() error {
	if err := o.validate(); err != nil {
		return err
	}
	var err error
	if o.leases, err = o.local(v1alpha1.ControllerFieldManager); err != nil {
		return err
	}
	o.kinds, err = o.plane(v1alpha1.ControllerFieldManager)
	return err
}

func parseRanges(flag string, texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix.Addr().Is4In6() { // dialled addresses never have this form
			return nil, fmt.Errorf("%s %q is not a range of addresses such as 10.1.0.0/16 or fd00::/8", flag, text)
		}
		out = append(out, prefix)
	}
	return out, nil
}

// validate also parses the ranges of addresses.
func (o *controllerOptions) validate() error {
	var badAllowed, badDenied, badNAT64 error
	o.webhooks.Allowed, badAllowed = parseRanges("--webhook-allow-cidr", o.webhookAllowCIDR)
	o.webhooks.Denied, badDenied = parseRanges("--webhook-deny-cidr", o.webhookDenyCIDR)
	o.webhooks.NAT64, badNAT64 = parseRanges("--webhook-nat64-prefix", o.webhookNAT64)
	errs := []error{o.commonOptions.validate(), badAllowed, badDenied, badNAT64}
	for _, prefix := range o.webhooks.NAT64 {
		if prefix.Addr().Is4() || prefix.Bits() != 96 {
			errs = append(errs, fmt.Errorf("--webhook-nat64-prefix %q is not a prefix such as 2001:db8:64::/96", prefix))
		}
	}
	if invalid := validation.IsDNS1123Subdomain(o.leaderElectionID); len(invalid) > 0 {
		errs = append(errs, fmt.Errorf("--leader-election-id %q is not a valid name of a Lease: %s", o.leaderElectionID,
			strings.Join(invalid, "; ")))
	}
	known := map[string]bool{}
	for _, c := range o.controllerSetups() {
		known[c.name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(o.concurrency)) {
		if !known[name] {
			errs = append(errs, fmt.Errorf("--concurrency: there is no controller %q; the controllers are %s", name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		}
		if n := o.concurrency[name]; n < 1 {
			errs = append(errs, fmt.Errorf("--concurrency %s=%d: at least 1 is needed", name, n))
		}
	}
	if o.webhookMaxPending < 1 {
		errs = append(errs, fmt.Errorf("--webhook-max-pending %d: at least 1 is needed", o.webhookMaxPending))
	}
	if !(o.retentionRate >= minRetentionRate) { // also refuses NaN
		errs = append(errs, fmt.Errorf("--retention-rate %v: at least %v is needed", o.retentionRate, minRetentionRate))
	}
	return errors.Join(errs...)
}

// run runs the controllers until the context ends, and returns once they have stopped.
func (o *controllerOptions) run(ctx context.Context, registerer prometheus.Registerer) error {
	if err := controllers.AwaitAPIServer(ctx, o.kinds); err != nil {
		return err
	}
	mgr, err := o.manager(registerer)
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	if err := controllers.FillCache(ctx, mgr.GetCache()); err != nil {
		return err
	}
	for _, c := range o.controllerSetups() {
		workers := c.workers
		if n, ok := o.concurrency[c.name]; ok {
			workers = n
		}
		if err := c.setup(ctx, mgr, controllers.Options(workers)); err != nil {
			return fmt.Errorf("set up the controller %q: %w", c.name, err)
		}
	}
	if err := o.addCursorKeys(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// addCursorKeys adds the controller that creates the Secret of cursor keys, in the cluster that the facade runs in.
func (o *controllerOptions) addCursorKeys(mgr ctrl.Manager) error {
	if o.cursorKeysSecret == "" {
		return nil
	}
	maker, err := cursorkeys.New(o.leases, o.namespace, o.cursorKeysSecret, mgr.GetLogger().WithName("cursorkeys"))
	if err != nil {
		return err
	}
	return mgr.Add(maker)
}

func (o *controllerOptions) manager(registerer prometheus.Registerer) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	informers, err := controllers.NewInformers(o.kinds)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(o.kinds, manager.Options{
		Scheme:                  scheme,
		Cache:                   informers.Use(controllers.CacheOptions()),
		Client:                  client.Options{FieldOwner: v1alpha1.ControllerFieldManager},
		Metrics:                 metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:  o.probeAddress,
		GracefulShutdownTimeout: new(shutdownTimeout),

		LeaderElection:          o.leaderElect,
		LeaderElectionID:        o.leaderElectionID,
		LeaderElectionNamespace: o.namespace,
		LeaderElectionConfig:    o.leases,
		// The process exits when the manager has stopped, so another replica may take over at once.
		LeaderElectionReleaseOnCancel: true,

		Controller: config.Controller{
			// The names below only need to be unique per manager; a process may run several.
			SkipNameValidation: new(true),
		},
	})
	if err != nil {
		return nil, err
	}
	if err := informers.Register(mgr, registerer); err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, addReadiness(mgr)
}
