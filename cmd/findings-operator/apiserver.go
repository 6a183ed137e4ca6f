package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/internal/clientaddress"
)

// leastDataStaleness lets a bookmark be missed.
const leastDataStaleness = 2 * time.Minute

// apiserverOptions are the flags of `findings-operator apiserver`.
type apiserverOptions struct {
	kubeconfig         string
	findingsKubeconfig string
	bindAddress        string
	healthBindAddress  string
	namespace          string
	cursorKeysDir      string
	keyStaleness       time.Duration
	dataStaleness      time.Duration
	tlsCertFile        string
	tlsPrivateKeyFile  string
	redisURLFile       string
	trustedProxies     []string
	otlpEndpoint       string
	traceSampleRatio   float64
	logLevel           string
	logFormat          string

	// config reaches the API server where the kinds live.
	config *rest.Config
	log    *slog.Logger
	// proxies are the networks of trustedProxies.
	proxies []netip.Prefix
}

func newAPIServerCommand() *cobra.Command {
	o := &apiserverOptions{}
	command := &cobra.Command{
		Use:   "apiserver",
		Short: "Serve the REST API",
		Long: `Serve the REST API of findings.

Findings are read from a model in memory that a watch on the Kubernetes API feeds; what
clients decide about them is written there. Any number of replicas may run side by side:
give them the same --cursor-keys-dir, so that each continues the others' lists.

/healthz, /readyz and /metrics are served on a port of their own, without an API key.
SIGTERM and SIGINT end the server once it has answered the requests that have begun.`,
		Example: `  # Against the cluster of a kubeconfig file, on port 9000
  findings-operator apiserver --kubeconfig ./kubeconfig --bind-address :9000`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			if err := o.complete(); err != nil {
				return err
			}
			return o.run(command.Context())
		},
	}
	o.addFlags(command.Flags())
	return command
}

func (o *apiserverOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig file; without it $KUBECONFIG, ~/.kube/config, or the pod's service account")
	flags.StringVar(&o.findingsKubeconfig, "findings-kubeconfig", "",
		"kubeconfig file of the API server where the kinds live, if that is another; --kubeconfig is then not used")
	flags.StringVar(&o.bindAddress, "bind-address", ":8080", "address that the REST API listens on")
	flags.StringVar(&o.healthBindAddress, "health-bind-address", ":8081", "address that health and metrics listen on")
	flags.StringVar(&o.namespace, "namespace", "findings-system", "namespace of the operator, where the public signing keys are")
	flags.StringVar(&o.cursorKeysDir, "cursor-keys-dir", "",
		"folder of the keys that authenticate cursors, each a file of 32 or more random bytes; the file\n"+
			"whose name sorts last signs. Without it the key is made anew at each start, and cursors end with it")
	flags.DurationVar(&o.keyStaleness, "key-staleness", time.Minute,
		"how old what is known of API keys may become before requests are refused")
	flags.DurationVar(&o.dataStaleness, "data-staleness", 10*time.Minute,
		"how long nothing may be heard of a kind before requests that rest on it are refused; from 90s on\n"+
			"answers carry x-data-age")
	flags.StringVar(&o.tlsCertFile, "tls-cert-file", "",
		"file of the certificate that the REST API is served with; without it, plain HTTP. A renewed one is used without a restart")
	flags.StringVar(&o.tlsPrivateKeyFile, "tls-private-key-file", "", "file of the private key of --tls-cert-file")
	flags.StringVar(&o.redisURLFile, "redis-url-file", "",
		"file with the URL of the Redis in which replicas share the counters of rate limits; without it each counts for itself")
	flags.StringSliceVar(&o.trustedProxies, "trusted-proxies", nil,
		"networks of the proxies in front, such as 10.0.0.0/8, whose X-Forwarded-For is believed; they hold no clients")
	flags.StringVar(&o.otlpEndpoint, "otlp-endpoint", "",
		"URL of an OpenTelemetry collector that takes OTLP over HTTP, such as http://collector:4318; without it nothing is traced")
	flags.Float64Var(&o.traceSampleRatio, "trace-sample-ratio", 0.1,
		"share of requests that are traced, from 0 to 1; one that comes with a traceparent follows its flag")
	flags.StringVar(&o.logLevel, "log-level", "info", "least severe messages that are logged: debug, info, warn or error")
	flags.StringVar(&o.logFormat, "log-format", "json", "form of the log on standard error: json or text")
}

func (o *apiserverOptions) validate() error {
	var problems []error
	if o.bindAddress == o.healthBindAddress && !strings.HasSuffix(o.bindAddress, ":0") {
		problems = append(problems, errors.New("--bind-address and --health-bind-address must differ"))
	}
	if o.namespace == "" {
		problems = append(problems, errors.New("--namespace must not be empty"))
	}
	if o.keyStaleness < time.Second {
		problems = append(problems, errors.New("--key-staleness must be at least 1s"))
	}
	if o.dataStaleness < leastDataStaleness {
		problems = append(problems, fmt.Errorf("--data-staleness must be at least %s: where nothing changes, the API server says so once a minute", leastDataStaleness))
	}
	if (o.tlsCertFile == "") != (o.tlsPrivateKeyFile == "") {
		problems = append(problems, errors.New("--tls-cert-file and --tls-private-key-file go together"))
	}
	proxies, err := clientaddress.ParseTrusted(o.trustedProxies)
	if err != nil {
		problems = append(problems, fmt.Errorf("--trusted-proxies: %w", err))
	}
	o.proxies = proxies
	if err := tracing.CheckEndpoint(o.otlpEndpoint); err != nil {
		problems = append(problems, fmt.Errorf("--otlp-endpoint %w", err))
	}
	if !(o.traceSampleRatio >= 0 && o.traceSampleRatio <= 1) { // so that NaN is none
		problems = append(problems, errors.New("--trace-sample-ratio must be from 0 to 1"))
	}
	if err := new(slog.LevelVar).UnmarshalText([]byte(o.logLevel)); err != nil {
		problems = append(problems, fmt.Errorf("--log-level must be debug, info, warn or error, not %q", o.logLevel))
	}
	if o.logFormat != "json" && o.logFormat != "text" {
		problems = append(problems, fmt.Errorf("--log-format must be json or text, not %q", o.logFormat))
	}
	return errors.Join(problems...)
}

func (o *apiserverOptions) complete() error {
	var level slog.LevelVar
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return err
	}
	handlerOptions := &slog.HandlerOptions{Level: &level}
	var handler slog.Handler = slog.NewJSONHandler(os.Stderr, handlerOptions)
	if o.logFormat == "text" {
		handler = slog.NewTextHandler(os.Stderr, handlerOptions)
	}
	o.log = slog.New(handler)
	klog.SetSlogLogger(o.log)                        // client-go's
	ctrllog.SetLogger(logr.FromSlogHandler(handler)) // that of the certificate's watch

	if err := noticeDeadConnections(); err != nil {
		return err
	}
	path := cmp.Or(o.findingsKubeconfig, o.kubeconfig)
	config, err := loadConfig(path)
	if err != nil {
		return fmt.Errorf("find the API server (give --kubeconfig, or run in a pod): %w", err)
	}
	config.UserAgent = rest.DefaultKubernetesUserAgent() + "/" + v1alpha1.APIFieldManager
	o.config = config
	return nil
}

// noticeDeadConnections has client-go give up a connection to the API server after 15 s over which
// nothing comes, in place of 45: until then it shows nothing new and every write on it fails.
// client-go knows no other way to be told than the environment, where an operator's word stands.
func noticeDeadConnections() error {
	for name, seconds := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "5", "HTTP2_PING_TIMEOUT_SECONDS": "10"} {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, seconds); err != nil {
			return err
		}
	}
	return nil
}

func (o *apiserverOptions) run(ctx context.Context) error {
	server, err := apiserver.New(apiserver.Options{
		Config:            o.config,
		BindAddress:       o.bindAddress,
		HealthBindAddress: o.healthBindAddress,
		Namespace:         o.namespace,
		CursorKeysDir:     o.cursorKeysDir,
		KeyStaleness:      o.keyStaleness,
		DataStaleness:     o.dataStaleness,
		TLSCertFile:       o.tlsCertFile,
		TLSKeyFile:        o.tlsPrivateKeyFile,
		TrustedProxies:    o.proxies,
		RedisURLFile:      o.redisURLFile,
		TraceEndpoint:     o.otlpEndpoint,
		TraceSampleRatio:  o.traceSampleRatio,
		Log:               o.log,
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
