// Package testenv starts a real kube-apiserver over a real etcd for tests, with this
// project's CRDs, roles and admission policies installed.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// SystemNamespace is the namespace of the operator's own service accounts.
const SystemNamespace = "findings-system"

// startTimeout bounds the waits of Start after the API server answers.
const startTimeout = 3 * time.Minute

// tokenSeconds is how long tokens of service accounts are valid: longer than any run.
const tokenSeconds = 24 * 3600

// Environment is a running API server.
type Environment struct {
	// Config is the config of a cluster administrator, without a client-side rate limit.
	Config *rest.Config
	// Client is that administrator's client; it reads from the API server, not from a cache.
	Client client.WithWatch
	// Scheme knows the built-in kinds and this project's.
	Scheme *kruntime.Scheme

	// ControlPlane holds the running processes.
	ControlPlane *harness.ControlPlane

	folder string
	// source is the folder of the repository whose config/ is installed.
	source string

	mutex sync.Mutex
	// operators holds the configs of the operator's own service accounts by name, once they are requested.
	operators map[string]*rest.Config
}

// NewScheme returns a scheme that knows the built-in kinds and this project's.
func NewScheme() *kruntime.Scheme {
	scheme := kruntime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// Main starts *env, runs the package's tests, and stops *env whatever their result. Call it from
// TestMain. Fuzz targets must not use *env.
func Main(m *testing.M, env **Environment) { run(m, env, Start) }

// MainBare is Main for tests that install all manifests themselves.
func MainBare(m *testing.M, env **Environment) { run(m, env, StartBare) }

func run(m *testing.M, env **Environment, start func(*harness.Stops, ...string) (*Environment, error)) {
	harness.Main(m, func(_ context.Context, stops *harness.Stops) (err error) {
		*env, err = start(stops)
		return err
	})
}

// Start starts etcd and kube-apiserver, the latter with the additional flags, and installs
// everything under config/; stops ends them.
func Start(stops *harness.Stops, flags ...string) (*Environment, error) {
	e, err := StartBare(stops, flags...)
	if err != nil {
		return nil, err
	}
	return e, e.install()
}

// StartBare is Start without installing anything.
func StartBare(stops *harness.Stops, flags ...string) (*Environment, error) {
	e, err := launch(harness.Root(), harness.CollectLess(), flags)
	if err == nil {
		stops.Add(e.Stop)
	}
	return e, err
}

// StartOf is Start with the config/ of another commit, whose tree is in the folder source, and with processes that run
// as they do elsewhere, to be measured, until the caller stops them.
func StartOf(source string, flags ...string) (*Environment, error) {
	e, err := launch(source, nil, flags)
	if err != nil {
		return nil, err
	}
	if err := e.install(); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// launch starts the processes with that environment. The files that are installed later are those of source.
func launch(source string, environment, flags []string) (*Environment, error) {
	folder, err := os.MkdirTemp("", "testenv-")
	if err != nil {
		return nil, err
	}
	e := &Environment{Scheme: NewScheme(), folder: folder, source: source}
	e.ControlPlane, err = harness.StartControlPlane(context.Background(), harness.ControlPlaneOptions{
		Folder: folder,
		// The data need not survive a crash of the machine.
		EtcdFlags:      []string{"--unsafe-no-fsync"},
		APIServerFlags: flags,
		Env:            environment,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the control plane: %w", err), e.Stop())
	}
	e.Config = e.ControlPlane.Admin
	if e.Client, err = e.NewClient(e.Config); err != nil {
		return nil, errors.Join(fmt.Errorf("make a client: %w", err), e.Stop())
	}
	return e, nil
}

// EtcdURL returns the address where etcd serves its clients and its metrics, without TLS.
func (e *Environment) EtcdURL() string { return "http://" + e.ControlPlane.EtcdAddress }

// Stop ends the API server and etcd, and removes their data.
func (e *Environment) Stop() error {
	return errors.Join(e.ControlPlane.Kill(), os.RemoveAll(e.folder))
}

func (e *Environment) install() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	_, err := envtest.InstallCRDs(e.Config, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(e.source, "config", "crd", "bases")}, ErrorIfPathMissing: true,
		Scheme: e.Scheme, MaxTime: startTimeout, PollInterval: 50 * time.Millisecond,
	})
	if err != nil {
		return fmt.Errorf("install the custom resources: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: SystemNamespace}}
	if err := e.Client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", SystemNamespace, err)
	}
	for _, folder := range []string{"rbac", "admission"} {
		if err := e.applyFolder(ctx, filepath.Join(e.source, "config", folder)); err != nil {
			return err
		}
	}
	if err := e.ApplyFile(ctx, filepath.Join(e.source, "config", "manager", "role.yaml")); err != nil {
		return err
	}
	if err := e.grantStatusUpdates(ctx); err != nil {
		return err
	}
	return e.waitForPolicies(ctx)
}

// applyFolder applies every YAML manifest of a folder except kustomization.yaml, in the order of
// the file names.
func (e *Environment) applyFolder(ctx context.Context, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		if err := e.ApplyFile(ctx, file); err != nil {
			return err
		}
	}
	return nil
}

// ApplyFile applies every document of a YAML file as the administrator.
func (e *Environment) ApplyFile(ctx context.Context, file string) error {
	content, err := os.Open(file) //nolint:gosec // a test names its own files
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // only read from
	objects, err := Objects(content)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	for _, object := range objects {
		apply := client.ApplyConfigurationFromUnstructured(object)
		if err := e.Client.Apply(ctx, apply, client.FieldOwner("testenv"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %q of %s: %w", object.GetKind(), object.GetName(), file, err)
		}
	}
	return nil
}

// Objects reads the documents of a stream of YAML, and skips empty ones.
func Objects(stream io.Reader) (objects []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(stream, 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// ServiceAccount returns a config with a real token of a service account, which it creates if it
// does not exist.
func (e *Environment) ServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := e.Client.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create service account %s/%s: %w", namespace, name, err)
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))},
	}
	if err := e.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("request a token of %s/%s: %w", namespace, name, err)
	}
	config := rest.AnonymousClientConfig(e.Config)
	config.BearerToken = request.Status.Token
	config.QPS = -1
	return config, nil
}

// WriteKubeconfig writes a kubeconfig file for config and returns its path.
func WriteKubeconfig(t testing.TB, config *rest.Config, namespace string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	harness.Must(t, harness.WriteKubeconfig(path, config, namespace))
	return path
}

// Binary returns the path of a control-plane binary, for example "kubectl".
func Binary(t testing.TB, name string) string {
	t.Helper()
	path, err := harness.ControlPlaneBinary(name)
	harness.Must(t, err)
	return path
}

// Kubectl runs kubectl as the administrator in the namespace and returns its output.
func (e *Environment) Kubectl(t testing.TB, namespace string, arguments ...string) string {
	t.Helper()
	output, err := TryKubectl(t, WriteKubeconfig(t, e.Config, namespace), arguments...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return output
}

// TryKubectl runs kubectl with the kubeconfig, and returns its output also with an error. The variable allows
// --applyset, an alpha feature that the tests of GitOps use.
func TryKubectl(t testing.TB, kubeconfig string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), Binary(t, "kubectl"),
		append([]string{"--kubeconfig=" + kubeconfig}, arguments...)...) //nolint:gosec // a test names its own arguments
	command.Env = append(os.Environ(), "KUBECTL_APPLYSET=true")
	output, err := command.CombinedOutput()
	return string(output), err
}
