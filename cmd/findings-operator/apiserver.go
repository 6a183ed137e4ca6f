package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/apiserver/uploads"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
	"github.com/appsec-dev/findings-operator/internal/clientaddress"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// minKeyStaleness tolerates a few slow lists of the keys, which begin once a second.
const minKeyStaleness = 5 * time.Second

// minDataStaleness tolerates one missed bookmark.
const minDataStaleness = 3 * time.Minute

// apiserverOptions are the flags of `findings-operator apiserver`.
type apiserverOptions struct {
	commonOptions
	apiserver.Options

	trustedProxies []string
	uploadMiB      int64
}

func newAPIServerCommand() *cobra.Command {
	o := &apiserverOptions{}
	command := &cobra.Command{
		Use:   "apiserver",
		Short: "Serve the REST API",
		Long: `Serve the REST API of findings.

Findings are read from memory, which watches on the Kubernetes API keep up to date; clients'
decisions are written to the Kubernetes API. Any number of replicas may run side by side:
give them the same --cursor-keys-dir, so that each continues the others' lists. The public
signing keys are read from --namespace. With --findings-kubeconfig, --kubeconfig is not used.

/healthz, /readyz and /metrics are served on a separate port, without an API key.
On SIGTERM and SIGINT the server answers the requests that have begun, then ends.`,
		Example: `  # Against the cluster of a kubeconfig file, on port 9000
  findings-operator apiserver --kubeconfig ./kubeconfig --bind-address :9000`,
		Args: flagerror.NoArguments(""),
		RunE: func(command *cobra.Command, _ []string) error {
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
	o.commonOptions.addFlags(flags)
	flags.StringVar(&o.BindAddress, "bind-address", ":8080", "address that the REST API listens on")
	flags.StringVar(&o.HealthBindAddress, "health-bind-address", ":8081", "address that health and metrics listen on")
	flags.StringVar(&o.CursorKeysDir, "cursor-keys-dir", "",
		"folder with the keys that authenticate cursors, each a file of 32 or more random bytes; the file\n"+
			"whose name sorts last signs, and only it and the one before it verify. Without it a new key is made\n"+
			"at each start, and earlier cursors become invalid")
	flags.DurationVar(&o.KeyStaleness, "key-staleness", tokens.DefaultKeyStaleness,
		"how old the API key data may become before requests are refused; at least 5s. With more than 1m, a replica\n"+
			"that has lost the API server may refuse re-signed tokens while the signing key is rotated")
	flags.DurationVar(&o.DataStaleness, "data-staleness", apiserver.DefaultDataStaleness,
		"how long nothing may be received about a kind before requests that depend on it are refused; at least 3m.\n"+
			"From 2m30s on answers carry x-data-age")
	flags.StringVar(&o.TLSCertFile, "tls-cert-file", "",
		"certificate file for TLS; without it, plain HTTP. A renewed certificate is used without a restart")
	flags.StringVar(&o.TLSKeyFile, "tls-private-key-file", "", "private key file of --tls-cert-file")
	flags.StringVar(&o.RedisURLFile, "redis-url-file", "",
		"file with the URL of the Redis in which replicas share their rate limits; without it each replica counts by itself")
	flags.StringSliceVar(&o.trustedProxies, "trusted-proxies", nil,
		"networks of the proxies whose X-Forwarded-For is trusted, for example 10.0.0.0/8; they must contain no clients")
	flags.StringVar(&o.TraceEndpoint, "otlp-endpoint", "",
		"URL of an OpenTelemetry collector that accepts OTLP over HTTP, for example http://collector:4318; without it nothing is traced")
	flags.Float64Var(&o.TraceSampleRatio, "trace-sample-ratio", 0.1,
		"share of requests that are traced, from 0 to 1; for a request with a traceparent header, the header's flag decides")
	flags.BoolVar(&o.Console, "console", false,
		"serve the console, web pages for triage, at /console/; its sessions are encrypted with the keys of\n"+
			"--cursor-keys-dir; without that flag they end when the process ends")
	flags.IntVar(&o.Uploads.Total, "uploads", uploads.DefaultLimits.Total,
		"how many uploads of scan results may be under way at a time")
	flags.IntVar(&o.Uploads.PerOrganization, "uploads-per-organization", uploads.DefaultLimits.PerOrganization,
		"how many of them may belong to one organization")
	flags.Int64Var(&o.uploadMiB, "uploads-mib", uploads.DefaultLimits.Bytes>>20,
		"how many MiB of decompressed SARIF all of them together may hold; a larger file is refused. Allow three times that in memory")
}

func (o *apiserverOptions) validate() error {
	problems := []error{o.commonOptions.validate()}
	if o.BindAddress == o.HealthBindAddress && !strings.HasSuffix(o.BindAddress, ":0") {
		problems = append(problems, errors.New("--bind-address and --health-bind-address must differ"))
	}
	if o.KeyStaleness < minKeyStaleness {
		problems = append(problems,
			fmt.Errorf("--key-staleness must be at least %s: the keys are listed once a second, and a list takes time", minKeyStaleness))
	}
	if o.DataStaleness < minDataStaleness {
		problems = append(problems,
			fmt.Errorf("--data-staleness must be at least %s: if nothing changes, the API server may send nothing for up to two minutes", minDataStaleness))
	}
	if (o.TLSCertFile == "") != (o.TLSKeyFile == "") {
		problems = append(problems, errors.New("--tls-cert-file and --tls-private-key-file go together"))
	}
	if strings.Contains(o.RedisURLFile, "://") { // the error of opening it would repeat a password in it
		problems = append(problems, errors.New("--redis-url-file must name a file that contains the URL, and is a URL"))
	}
	proxies, err := clientaddress.ParseTrusted(o.trustedProxies)
	if err != nil {
		problems = append(problems, fmt.Errorf("--trusted-proxies: %w", err))
	}
	o.TrustedProxies = proxies
	if err := tracing.CheckEndpoint(o.TraceEndpoint); err != nil {
		problems = append(problems, fmt.Errorf("--otlp-endpoint %w", err))
	}
	if !(o.TraceSampleRatio >= 0 && o.TraceSampleRatio <= 1) { // also refuses NaN
		problems = append(problems, errors.New("--trace-sample-ratio must be from 0 to 1"))
	}
	if o.Uploads.Total < 1 || o.Uploads.PerOrganization < 1 || o.uploadMiB < 1 {
		problems = append(problems, errors.New("--uploads, --uploads-per-organization and --uploads-mib must be at least 1"))
	}
	return errors.Join(problems...)
}

// complete validates the flags, reads the kubeconfig file and sets the options that no flag sets directly.
func (o *apiserverOptions) complete() error {
	if err := o.validate(); err != nil {
		return err
	}
	o.Namespace, o.Uploads.Bytes = o.namespace, o.uploadMiB<<20
	o.Log = o.logger()
	if err := noticeDeadConnections(); err != nil {
		return err
	}
	var err error
	o.Config, err = o.plane(v1alpha1.APIFieldManager)
	return err
}

// noticeDeadConnections makes client-go drop a connection to the API server after 15 s without data instead of 45:
// until then the process sees no changes and every write on it fails. client-go only reads this setting from the
// environment. Values set by the operator take precedence.
func noticeDeadConnections() error {
	for name, seconds := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "5",
		"HTTP2_PING_TIMEOUT_SECONDS": "10"} {
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
	server, err := apiserver.New(o.Options)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
