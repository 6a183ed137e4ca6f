package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/version"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
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

// require marks flags of the command as required.
func require(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the command has no such flag
		}
	}
}

// connect returns a session, which explains errors, and a client for imports. It refuses a namespace whose name cannot
// belong to an organization.
func (c cli) connect(ctx context.Context) (*session, *importer.Client, error) {
	session, err := c.open()
	if err != nil {
		return nil, nil, err
	}
	if err := session.checkOrganization(ctx); err != nil {
		return nil, nil, err
	}
	imports, err := importer.NewClient(session.config)
	return session, imports, err
}

// explainImport adds advice to an import's error: which role allows it, or that the namespace does not exist.
func (s *session) explainImport(ctx context.Context, err error, what string) error {
	if _, refused := errors.AsType[*importer.RefusedError](err); refused || kube.IsNotFound(err) {
		if missing := s.checkPlace(context.WithoutCancel(ctx)); missing != nil {
			return errors.Join(missing, err)
		}
	}
	if kube.IsQuotaExceeded(err) {
		return err // the import's error already explains its quota
	}
	explained := s.explain(err, need{what: what, role: roleScanner})
	if kube.LacksField(err) {
		return fmt.Errorf("%w\nWhat is already written is kept", explained)
	}
	return explained
}

func checkConcurrency(n int) error {
	if n < 1 || n > 256 {
		return fmt.Errorf("--concurrency is %d and must be from 1 to 256", n)
	}
	return nil
}

func checkTimeout(timeout time.Duration) error {
	if timeout <= 0 {
		return fmt.Errorf("--timeout is %s and must be greater than 0s", timeout)
	}
	return nil
}

// checkSourceRoot refuses a root that would have no effect.
func checkSourceRoot(root string) error {
	if root != "" && !sarif.IsRoot(root) {
		return fmt.Errorf("--source-root is %q and must be an absolute path such as \"$PWD\", or a file:// URI", root)
	}
	return nil
}

// checkProject refuses what cannot be the name of an object, such as a full name as for --repository.
func checkProject(name string) error {
	if len(content.IsPathSegmentName(name)) > 0 {
		return fmt.Errorf("--project is %q and must be the name of a Project, for example api: "+
			"see kubectl get projects.appsec.dev -n NAMESPACE", name)
	}
	return nil
}

// checkFolder refuses a folder outside of the repository: without its first part it would be another folder.
func checkFolder(folder string) error {
	if provision.Leaves(folder) {
		return fmt.Errorf("--project-path is %q and must be a folder in the repository, for example services/api", folder)
	}
	return nil
}

// Values of --output for summaries, and for summaries of many objects.
var (
	summaryFormats = []string{outputJSON, outputYAML}
	bulkFormats    = []string{outputJSON, outputYAML, outputName}
)

// addSummaryOutput adds --output for a summary that is printed in one of the formats, or as text.
func addSummaryOutput(cmd *cobra.Command, output *string, formats []string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "format of the summary: "+alternatives(formats)+"; default: text")
	completeWords(cmd, "output", formats)
}

// checkOutput accepts the formats, and none for text.
func checkOutput(output string, formats []string) error {
	if output != "" && !slices.Contains(formats, output) {
		return fmt.Errorf("--output is %q and must be %s", output, alternatives(formats))
	}
	return nil
}
