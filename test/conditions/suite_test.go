// Package conditions_test holds every kind to the same manners: which conditions it has, that its
// page and its controller agree on them, and what they tell people. It knows no kind by name but
// where it tries what keeps one from being ready: the scheme says which there are.
package conditions_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// patience is how long a condition may take on a busy machine.
const patience = 2 * time.Minute

// kinds are those of the scheme that are objects of ours, in order.
func kinds(t *testing.T) []string {
	t.Helper()
	own := reflect.TypeFor[v1alpha1.Finding]().PkgPath()
	object := reflect.TypeFor[client.Object]()
	var out []string
	for kind, goType := range testenv.NewScheme().KnownTypes(v1alpha1.GroupVersion) {
		if goType.PkgPath() == own && reflect.PointerTo(goType).Implements(object) {
			out = append(out, kind)
		}
	}
	if len(out) < 10 {
		t.Fatalf("the scheme has only %v", out)
	}
	slices.Sort(out)
	return out
}

// resource is what kubectl calls the kind.
func resource(t *testing.T, kind string) string {
	t.Helper()
	mapping, err := env.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: v1alpha1.GroupName, Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	return mapping.Resource.Resource
}

// read returns a file of the repository.
func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{testenv.RepositoryRoot()}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func eventually(t *testing.T, assertions func(g Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(assertions).WithContext(t.Context()).
		WithTimeout(patience).WithPolling(100 * time.Millisecond).Should(Succeed())
}

// create makes objects as an administrator.
func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := env.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// kubectl runs the real one as an administrator.
func kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), testenv.Binary(t, "kubectl"),
		append([]string{"--kubeconfig=" + testenv.WriteKubeconfig(t, env.Config, "default")}, arguments...)...) //nolint:gosec // the project's own binary
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return string(output)
}

// operator builds the real program, with all of its controllers.
func operator(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "findings-operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/findings-operator")
	build.Dir = testenv.RepositoryRoot()
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build findings-operator: %v\n%s", err, output)
	}
	return binary
}

// controllers are `findings-operator controller` in a process of its own.
type controllers struct {
	metrics string
	stop    func()
}

// start runs the controllers as the service account that they have in a cluster, until stop is
// called or the test ends. Receivers on this machine may be sent to.
func start(t *testing.T, binary string) *controllers {
	t.Helper()
	config, err := env.Controller(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &controllers{metrics: freeAddress(t)}
	//nolint:gosec // just built
	command := exec.CommandContext(context.Background(), binary, "controller",
		"--kubeconfig="+testenv.WriteKubeconfig(t, config, testenv.SystemNamespace),
		"--namespace="+testenv.SystemNamespace,
		"--metrics-bind-address="+c.metrics, "--health-probe-bind-address=0",
		"--webhook-allow-cidr=127.0.0.0/8")
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	c.stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil || t.Failed() {
			t.Logf("the controllers ended with %v and said last:\n%s", err, log.String()[max(0, log.Len()-2000):])
		}
	}
	t.Cleanup(c.stop)
	return c
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nobody called
	return listener.Addr().String()
}

// samples returns the values of a metric by the label "controller" or "name".
func (c *controllers) samples(ctx context.Context, metric string) (map[string]int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.metrics+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for line := range strings.Lines(string(body)) {
		labels, found := strings.CutPrefix(line, metric+"{")
		if !found {
			continue
		}
		labels, number, _ := strings.Cut(labels, "} ")
		_, name, _ := strings.Cut(labels, `controller="`)
		name, _, _ = strings.Cut(name, `"`)
		var value float64
		if _, err := fmt.Sscan(number, &value); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		out[name] += int(value)
	}
	return out, nil
}

// waitUntilIdle waits until each kind's controller has looked at something and none is at work.
func (c *controllers) waitUntilIdle(t *testing.T, kinds []string) {
	t.Helper()
	eventually(t, func(g Gomega) {
		done, err := c.samples(t.Context(), "controller_runtime_reconcile_total")
		g.Expect(err).NotTo(HaveOccurred())
		for _, kind := range kinds {
			g.Expect(done[strings.ToLower(kind)]).To(BeNumerically(">", 0), "reconciles of %s", kind)
		}
		for _, metric := range []string{"workqueue_depth", "controller_runtime_active_workers"} {
			busy, err := c.samples(t.Context(), metric)
			g.Expect(err).NotTo(HaveOccurred())
			for name, n := range busy {
				g.Expect(n).To(BeZero(), "%s of %s", metric, name)
			}
		}
	})
}
