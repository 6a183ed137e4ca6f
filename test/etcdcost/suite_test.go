// Package etcdcost counts what a finding's life costs etcd: how often it is written in each
// step and by whom, by the API server's own metrics, and how many bytes that is, by etcd's own.
// docs/performance-etcd.md is what it measured last:
//
//	go test ./test/etcdcost -count=1 -findings 50 -report "$PWD/docs/performance-etcd.md"
package etcdcost

import (
	"bytes"
	"context"
	"flag"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/testenv"
)

var (
	findings = flag.Int("findings", 10, "how many findings to take through each step")
	built    = flag.String("operator", "", "whole path of a findings-operator that is built already; without it one is built")
	report   = flag.String("report", "", "whole path of a Markdown file to write what was counted into")
)

var env *testenv.Environment

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	testenv.Main(m, &env)
}

const (
	// patience is how long a condition may take on a busy machine.
	patience = 3 * time.Minute
	// interval is not short: each look reads all metrics of the API server, megabytes.
	interval = 500 * time.Millisecond
	// quiet is how long nothing is written once all is done. The longest that a controller waits
	// before it writes, to gather what else happens, is two seconds.
	quiet = 2500 * time.Millisecond
)

func eventually(t *testing.T, assertions func(g Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(assertions).WithContext(t.Context()).WithTimeout(patience).WithPolling(interval).Should(Succeed())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		must(t, env.Client.Create(t.Context(), object))
	}
}

// operator is the real program.
func operator(t *testing.T) string {
	t.Helper()
	if *built != "" {
		return *built
	}
	binary := filepath.Join(t.TempDir(), "findings-operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/findings-operator")
	build.Dir = testenv.RepositoryRoot()
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build findings-operator: %v\n%s", err, output)
	}
	return binary
}

// start runs the operator until stop is called or the test ends, and returns once it is ready.
func start(t *testing.T, binary string, identity func(context.Context) (*rest.Config, error), arguments func(health string) []string) (stop func()) {
	t.Helper()
	config, err := identity(t.Context())
	must(t, err)
	health := freeAddress(t)
	given := append(arguments(health), "--kubeconfig="+testenv.WriteKubeconfig(t, config, testenv.SystemNamespace))
	command := exec.CommandContext(context.Background(), binary, given...) //nolint:gosec // just built
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	must(t, command.Start())
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended, which Wait tells
		if err := command.Wait(); err != nil || t.Failed() {
			t.Logf("%s ended with %v and said last:\n%s", given[0], err, log.String()[max(0, log.Len()-2000):])
		}
	}
	t.Cleanup(stop)
	eventually(t, func(g Gomega) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+health+"/readyz", http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := http.DefaultClient.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(response.StatusCode).To(Equal(http.StatusOK))
	})
	return stop
}

func startControllers(t *testing.T, binary string) (stop func()) {
	t.Helper()
	return start(t, binary, env.Controller, func(health string) []string {
		return []string{
			"controller", "--namespace=" + testenv.SystemNamespace, "--metrics-bind-address=0",
			"--health-probe-bind-address=" + health, "--webhook-allow-cidr=127.0.0.0/8",
		}
	})
}

// startFacade returns the address of the REST API.
func startFacade(t *testing.T, binary string) string {
	t.Helper()
	address := freeAddress(t)
	start(t, binary, env.Facade, func(health string) []string {
		return []string{"apiserver", "--bind-address=" + address, "--health-bind-address=" + health}
	})
	return "http://" + address
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close() //nolint:errcheck // nobody called
	return listener.Addr().String()
}
