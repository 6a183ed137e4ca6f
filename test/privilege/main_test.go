// Package privilege tries that the operator's service accounts may do what they do, and nothing
// else: both processes go through their life on the chart's own roles and policies, and the API
// server's audit log says what that took.
package privilege

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/chart"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	// No name is the one that the manifests have, so that a policy that goes by a name is tried too.
	releaseName = "lean"
	namespace   = "lean-system"

	// patience is how long a condition may take on a busy machine.
	patience = 2 * time.Minute
	interval = 50 * time.Millisecond
)

var (
	env *testenv.Environment
	// scratch is a folder that goes when the tests are done. It holds the binaries.
	scratch string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if err := setUp(); err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(err, tearDown()))
		return 1
	}
	code := m.Run()
	if err := tearDown(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func setUp() (err error) {
	if scratch, err = os.MkdirTemp("", "privilege"); err != nil {
		return err
	}
	build := exec.CommandContext(context.Background(), "go", "build", "-o", scratch+"/", "./cmd/findings-operator", "./cmd/kubectl-findings")
	build.Dir = testenv.RepositoryRoot()
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the binaries: %w\n%s", err, out)
	}
	policy := filepath.Join(scratch, "audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	env, err = testenv.StartBare(
		"--audit-policy-file="+policy,
		"--audit-log-path="+auditLog(),
		// What is answered is in the log.
		"--audit-log-mode=blocking",
		// Not on by itself, but on in distributions: who blocks an owner's removal needs update on its finalizers.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
	)
	return err
}

func tearDown() error {
	var errs []error
	if env != nil {
		errs = append(errs, env.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(scratch))...)
}

// install installs the chart, once for all tests.
func install(t *testing.T) *chart.Release {
	t.Helper()
	release := chart.NewRelease(t, env, releaseName, namespace)
	if err := env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return release // installed by another test
	}
	release.Install(t)
	for _, list := range []client.ObjectList{
		&v1alpha1.OrganizationList{}, &v1alpha1.APIKeyList{}, &v1alpha1.RepositoryList{}, &v1alpha1.ProjectList{},
		&v1alpha1.ScanList{}, &v1alpha1.FindingList{}, &v1alpha1.ReviewList{}, &v1alpha1.ReviewIssueList{},
		&v1alpha1.WebhookEndpointList{}, &v1alpha1.WebhookDeliveryList{},
	} {
		eventually(t, func(g Gomega) { g.Expect(env.Client.List(t.Context(), list)).To(Succeed()) })
	}
	return release
}

// process is one of the operator's.
type process struct {
	command *exec.Cmd
	log     bytes.Buffer
	ended   chan error
}

// start runs the operator as the Deployment of the component does, but for the addresses and
// what a pod would have mounted.
func start(t *testing.T, deployment string, config *rest.Config, arguments ...string) *process {
	t.Helper()
	health := freeAddress(t)
	given := append(deployedArguments(t, deployment), "--kubeconfig="+testenv.WriteKubeconfig(t, config, namespace))
	given = append(given, arguments...)
	if deployment == "api" {
		given = append(given, "--health-bind-address="+health)
	} else {
		given = append(given, "--metrics-bind-address=0", "--health-probe-bind-address="+health)
	}
	p := &process{command: exec.Command(filepath.Join(scratch, "findings-operator"), given...), ended: make(chan error, 1)} //nolint:gosec,noctx // built above; stop ends it
	p.command.Stdout, p.command.Stderr = &p.log, &p.log
	must(t, p.command.Start())
	go func() { p.ended <- p.command.Wait() }()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("%s said last:\n%s", deployment, p.log.String()[max(0, p.log.Len()-6000):])
		}
	})
	eventually(t, func(g Gomega) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+health+"/readyz", http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := http.DefaultClient.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(response.StatusCode).To(Equal(http.StatusOK))
	})
	return p
}

// stop ends the process as a cluster does.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("%v ended: %v", p.command.Args[1], err)
		}
		p.ended <- nil
	case <-time.After(patience):
		t.Errorf("%v does not end", p.command.Args[1])
		_ = p.command.Process.Kill()
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close() //nolint:errcheck // nothing was written
	return listener.Addr().String()
}

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
