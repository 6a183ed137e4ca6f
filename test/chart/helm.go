// Package chart tests the chart with helm itself, on a real API server. There is no kubelet, so no
// pods run.
package chart

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// Folder returns the chart's folder.
func Folder() string {
	return filepath.Join(harness.Root(), "charts", "findings-operator")
}

// Helm runs helm with a temporary home, and returns its output.
func Helm(t testing.TB, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), tool(t, "helm"), arguments...)
	command.Env = helmEnv(t.TempDir())
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("helm %v: %w\n%s", arguments, err, stderr.String())
	}
	return stdout.String(), nil
}

// helmEnv returns the environment of a helm whose home is the folder.
func helmEnv(home string) []string {
	return append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home,
		// A test must not use a cluster of this machine's user.
		"KUBECONFIG="+filepath.Join(home, "kubeconfig"))
}

// tool returns the path of a program that hack/helm builds.
func tool(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(harness.Root(), "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("bin/%s is not there: run `make helm` first", name)
	}
	return path
}

// rendered are the texts that Render has read, by the arguments: helm takes most of the time of a test.
var rendered sync.Map

// Render returns the objects of `helm template`, including tests and other hooks. The caller may change them.
func Render(t testing.TB, release, namespace string, arguments ...string) []*unstructured.Unstructured {
	t.Helper()
	arguments = append([]string{"template", release, Folder(), "--namespace", namespace}, arguments...)
	key := strings.Join(arguments, "\x00")
	text, known := rendered.Load(key)
	if !known {
		out, err := Helm(t, arguments...)
		harness.Must(t, err)
		rendered.Store(key, out)
		text = out
	}
	return Decode(t, text.(string))
}

// Decode reads the documents of a stream of YAML.
func Decode(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := testenv.Objects(strings.NewReader(text))
	harness.Must(t, err)
	return objects
}

// Release is an installation of the chart in a test's API server.
type Release struct {
	Name, Namespace string

	env        *testenv.Environment
	kubeconfig string
}

// NewRelease returns a release that is not installed yet; its namespace must exist.
func NewRelease(t testing.TB, env *testenv.Environment, name, namespace string) *Release {
	t.Helper()
	return &Release{Name: name, Namespace: namespace, env: env, kubeconfig: testenv.WriteKubeconfig(t, env.Config,
		namespace)}
}

// Helm runs a helm command against the release's API server, in its namespace.
func (r *Release) Helm(t testing.TB, arguments ...string) (string, error) {
	t.Helper()
	return Helm(t, append(arguments, "--kubeconfig", r.kubeconfig, "--namespace", r.Namespace)...)
}

// KillUpgrade begins an upgrade and kills helm once the upgrade is recorded.
func (r *Release) KillUpgrade(t testing.TB) {
	t.Helper()
	home := t.TempDir()
	helm := harness.NewProcess(home, "helm", tool(t, "helm"), "upgrade", r.Name, Folder(), "--wait", // no pods run
		"--kubeconfig", r.kubeconfig, "--namespace", r.Namespace)
	helm.Env = helmEnv(home)
	harness.Must(t, helm.Start())
	r.env.Kubectl(t, r.Namespace, "wait", "--for=create", "secret/sh.helm.release.v1."+r.Name+".v2", "--timeout=1m")
	helm.Kill()
}

// Install installs the chart, with additional helm arguments.
func (r *Release) Install(t testing.TB, arguments ...string) {
	t.Helper()
	_, err := r.Helm(t, append([]string{"install", r.Name, Folder()}, arguments...)...)
	harness.Must(t, err)
}

// Controller returns a config with a token of the release's own service account of the controllers,
// which has the rights that the chart grants.
func (r *Release) Controller(ctx context.Context) (*rest.Config, error) {
	return r.env.ServiceAccount(ctx, r.Namespace, r.Name+"-controller")
}

// Facade returns a config with a token of the release's own service account of the REST facade.
func (r *Release) Facade(ctx context.Context) (*rest.Config, error) {
	return r.env.ServiceAccount(ctx, r.Namespace, r.Name+"-api")
}
