package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/version"
)

// connectionFlags select the API server and the organization.
type connectionFlags struct {
	*genericclioptions.ConfigFlags
	organization string
	// flags holds them, and which were given.
	flags *pflag.FlagSet
}

// cli holds what each command needs: the streams of its process, and the flags that select the API server.
type cli struct {
	streams    genericiooptions.IOStreams
	kubeconfig *connectionFlags
}

// newConnectionFlags returns the flags of kubectl. Warnings of the API server are written to errOut, each once.
func newConnectionFlags(errOut io.Writer) *connectionFlags {
	flags := genericclioptions.NewConfigFlags(true)
	return &connectionFlags{ConfigFlags: flags.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		apitime.Observe(config)
		config.UserAgent = program + "/" + version.String()
		config.WarningHandler = rest.NewWarningWriter(errOut, rest.WarningWriterOptions{Deduplicate: true})
		return config
	})}
}

const flagOrganization = "organization"

// AddFlags adds kubectl's own flags, and --organization as an alternative to --namespace.
func (f *connectionFlags) AddFlags(flags *pflag.FlagSet) {
	f.flags = flags
	f.ConfigFlags.AddFlags(flags)
	flags.StringVar(&f.organization, flagOrganization, "",
		"the organization to work in; short for --namespace "+v1alpha1.NamespacePrefix+"ORGANIZATION")
}

// namespace returns the namespace that the flags name, or else that of the kubeconfig's context.
func (f *connectionFlags) namespace() (string, error) {
	if f.organization == "" {
		namespace, _, err := f.ToRawKubeConfigLoader().Namespace()
		return namespace, err
	}
	namespace := v1alpha1.NamespacePrefix + f.organization
	if given := *f.Namespace; given != "" && given != namespace {
		return "", fmt.Errorf("--organization %s means --namespace %s, but --namespace is %s: omit one of them",
			f.organization, namespace, given)
	}
	return namespace, nil
}

// defaultServer is where the client library connects to if nothing names an API server.
const defaultServer = "http://localhost:8080"

// ToRESTConfig returns how to connect to the API server that a kubeconfig, a flag or KUBERNETES_MASTER names. In a pod
// without any of them, it is the pod's own.
func (f *connectionFlags) ToRESTConfig() (*rest.Config, error) {
	config, err := f.ConfigFlags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return f.choose(config, f.ofPod)
}

// choose returns config, or that of the pod, or an error if no API server was chosen. The library's default would be
// dangerous: at its default address something else may answer, such as the REST API of `make run`, and in a pod it uses
// the pod's own API server if a kubeconfig names none, which would import the findings into another cluster.
func (f *connectionFlags) choose(config *rest.Config, ofPod func() (*rest.Config, error)) (*rest.Config, error) {
	loader := f.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	master := os.Getenv("KUBERNETES_MASTER")
	if err != nil || f.server(raw) != "" || config.Host == master {
		return config, err
	}
	if master != "" {
		return nil, fmt.Errorf("KUBERNETES_MASTER is %s, but in a pod the client library takes the pod's own API server: "+
			"give --server %[1]s, or unset KUBERNETES_MASTER", withoutPassword(master))
	}
	if f.leavesAllToPod(raw) {
		if config.Host != defaultServer {
			return config, nil
		}
		if pod, err := ofPod(); err == nil && pod.Host != defaultServer {
			pod.Timeout, pod.Impersonate = config.Timeout, config.Impersonate
			pod.Proxy, pod.DisableCompression = config.Proxy, config.DisableCompression
			return pod, nil
		}
	}
	return nil, fmt.Errorf("no API server is chosen, because there is no kubeconfig with a current context (%s): "+
		"set KUBECONFIG, --kubeconfig or --server, or choose a context with --context (for make run: source .run/env)",
		strings.Join(loader.ConfigAccess().GetLoadingPrecedence(), ", "))
}

// leavesAllToPod reports whether there is neither a kubeconfig nor a certificate to replace the pod's service account.
func (f *connectionFlags) leavesAllToPod(raw clientcmdapi.Config) bool {
	return *f.KubeConfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" &&
		clientcmdapi.IsConfigEmpty(&raw) && *f.CertFile == "" && *f.KeyFile == ""
}

// server returns the API server that the kubeconfig or a flag names; may be empty.
func (f *connectionFlags) server(raw clientcmdapi.Config) string {
	cluster, server := *f.ClusterName, *f.APIServer
	if context := raw.Contexts[cmp.Or(*f.Context, raw.CurrentContext)]; context != nil {
		cluster = cmp.Or(cluster, context.Cluster)
	}
	if named := raw.Clusters[cluster]; named != nil {
		server = cmp.Or(server, named.Server)
	}
	return server
}

// ofPod returns how the pod connects to its own API server. The library returns it only without flags such as
// --request-timeout and --as.
func (f *connectionFlags) ofPod() (*rest.Config, error) {
	flags := genericclioptions.NewConfigFlags(false).WithWrapConfigFn(f.WrapConfigFn)
	flags.BearerToken, flags.CAFile = f.BearerToken, f.CAFile
	return flags.ToRESTConfig()
}

// choosing holds the flags that choose the API server and the user, except --token.
var choosing = []string{
	"kubeconfig", "context", "cluster", "user", "server", "tls-server-name", "insecure-skip-tls-verify",
	"certificate-authority", "client-certificate", "client-key", "proxy-url", "as", "as-uid", "as-group", "as-user-extra",
}

// chosen returns the flags of choosing that were given, as they are written in a shell. Commands are printed, and CI
// keeps what is printed, so they contain no secret: a token is left to be filled in.
func (f *connectionFlags) chosen() []string {
	var arguments []string
	f.flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && flag.Name == "token" {
			arguments = append(arguments, "--token=TOKEN")
		}
		if !flag.Changed || !slices.Contains(choosing, flag.Name) {
			return
		}
		values := []string{flag.Value.String()}
		if several, are := flag.Value.(pflag.SliceValue); are {
			values = several.GetSlice()
		}
		for _, value := range values {
			if flag.Name == "server" || flag.Name == "proxy-url" {
				value = withoutPassword(value)
			}
			arguments = append(arguments, quoted(runtime.GOOS, "--"+flag.Name+"="+value))
		}
	})
	return arguments
}
