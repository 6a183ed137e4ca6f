//go:build plane

package plane

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// theLease is the Lease of the leading controller.
var theLease = client.ObjectKey{Namespace: testenv.SystemNamespace, Name: "findings-controller"}

// plane holds the running processes.
type plane struct {
	*shell
	postgres, kine, server, manager, controllers, api *harness.Process
	// admin is a client of the plane's administrator.
	admin client.Client
}

// newPlane follows the page to its end. The controllers get the additional arguments.
func newPlane(t *testing.T, more ...string) *plane {
	t.Helper()
	p := prepare(t)
	p.postgres = p.startPostgres(t)
	p.run(t, "keys")
	p.run(t, "certificates")
	p.run(t, "database")
	p.startServers(t)
	p.run(t, "kubeconfigs")
	p.waitForServer(t)
	p.manager = p.start(t, "kube-controller-manager")
	p.run(t, "install")
	p.run(t, "plane tokens")
	p.connect(t)
	p.startOperator(t, more...)
	return p
}

// prepare finds the programs, creates a folder, and creates the account for the Lease in the
// workload cluster.
func prepare(t *testing.T) *plane {
	t.Helper()
	root := harness.Root()
	for program, make := range map[string]string{"kine": "hack/kine/build.sh", "findings-operator": "make build"} {
		if _, err := os.Stat(filepath.Join(root, "bin", program)); err != nil {
			needs.Missing(t, "bin/%s is not there: run %s", program, make)
		}
	}
	needs.Program(t, "openssl", "openssl")
	needs.Program(t, "psql", "postgresql-client")
	p := &plane{shell: &shell{page: readPage(t), folder: t.TempDir(),
		ports: freePorts(t, "2379", "2381", "5432", "6443", "8080", "8081", "9090", "9091")}}
	p.env = append(os.Environ(),
		"PATH="+strings.Join([]string{filepath.Join(root, "bin"), filepath.Join(root, "bin", "k8s"), os.Getenv("PATH")}, ":"),
		"PLANE="+filepath.Join(p.folder, "plane"), "KUBECONFIG=",
		"WORKLOAD="+workloadAccount(t))
	return p
}

// workloadAccount returns a kubeconfig of the account that has access only to the Lease.
func workloadAccount(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testenv.SystemNamespace}}
	harness.Must(t, client.IgnoreAlreadyExists(workload.Client.Create(t.Context(), namespace)))
	harness.Must(t, workload.ApplyFile(t.Context(), filepath.Join(harness.Root(), "config", "manager", "role.yaml")))
	config, err := workload.Controller(t.Context())
	harness.Must(t, err)
	return testenv.WriteKubeconfig(t, config, testenv.SystemNamespace)
}

// startServers starts kine and the API server.
func (p *plane) startServers(t *testing.T) {
	t.Helper()
	p.kine = p.start(t, "kine")
	p.server = p.start(t, "kube-apiserver")
}

func (p *plane) waitForServer(t *testing.T) {
	t.Helper()
	harness.Within(t, patience, func(g Gomega) {
		alive(p.kine)
		alive(p.server)
		_, err := p.quickly(t, "kubectl", "--kubeconfig="+p.kubeconfig("admin"), "get", "--raw", "/readyz")
		g.Expect(err).NotTo(HaveOccurred())
	})
}

func (p *plane) kubeconfig(who string) string {
	return filepath.Join(p.folder, "plane", who+".kubeconfig")
}

func (p *plane) connect(t *testing.T) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig("admin"))
	harness.Must(t, err)
	config.QPS = -1
	p.admin, err = client.New(config, client.Options{Scheme: testenv.NewScheme()})
	harness.Must(t, err)
}

// startOperator starts both processes, which may send webhooks to this machine.
func (p *plane) startOperator(t *testing.T, more ...string) {
	t.Helper()
	p.controllers = p.start(t, "controllers", append(more, "--webhook-allow-cidr=127.0.0.0/8")...)
	p.api = p.start(t, "api")
	p.waitForOperator(t)
}

func (p *plane) waitForOperator(t *testing.T) {
	t.Helper()
	harness.Must(t, p.controllers.AwaitReady(t.Context(), "http://127.0.0.1:"+p.ports["9091"]+"/readyz"))
	harness.Must(t, p.api.AwaitReady(t.Context(), "http://127.0.0.1:"+p.ports["8081"]+"/readyz"))
}

// renew renews the certificates as the page says.
func (p *plane) renew(t *testing.T) {
	t.Helper()
	for _, who := range []string{"admin", "controller-manager"} {
		config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig(who))
		harness.Must(t, err)
		if want := filepath.Join(p.folder, "plane", "pki", who+".crt"); config.CertFile != want || len(config.CertData) > 0 {
			t.Errorf("%s has its certificate from %q, want %q, which is renewed", p.kubeconfig(who), config.CertFile, want)
		}
	}
	expiry := p.run(t, "expiry")
	if !strings.HasPrefix(expiry, "notAfter=") {
		t.Errorf("the page shows %q as the certificate's end", expiry)
	}
	former := p.served(t)
	p.run(t, "certificates")
	for _, stops := range []*harness.Process{p.manager, p.server, p.kine} {
		harness.Must(t, stops.Stop())
	}
	p.startServers(t)
	p.waitForServer(t)
	p.manager = p.start(t, "kube-controller-manager")
	p.waitForOperator(t)
	if p.served(t).Equal(former) {
		t.Error("kube-apiserver serves its former certificate")
	}
}

// served returns the certificate that kube-apiserver serves.
func (p *plane) served(t *testing.T) *x509.Certificate {
	t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // only looked at
	connection, err := dialer.DialContext(t.Context(), "tcp", "127.0.0.1:"+p.ports["6443"])
	harness.Must(t, err)
	defer connection.Close() //nolint:errcheck // nothing is sent
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// counted matches the last line of the conformance suite.
var counted = regexp.MustCompile(`conformance of \S+: (\d+) tests, (\d+) passed, 0 failed, 0 not run`)

// TestThePageMakesAPlaneThatConforms follows the page, renews all certificates, and checks the result against the contract.
func TestThePageMakesAPlaneThatConforms(t *testing.T) {
	p := newPlane(t)
	p.renew(t)
	command := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-timeout=30m", "./test/conformance", //nolint:gosec // our own suite
		"-base-url=http://127.0.0.1:"+p.ports["8080"], "-kubeconfig="+p.kubeconfig("admin"), "-require-all")
	command.Dir = harness.Root()
	started := time.Now()
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("the conformance suite: %v\n%s", err, failures(string(output)))
	}
	count := counted.FindStringSubmatch(string(output))
	if count == nil || count[1] != count[2] || count[1] == "0" {
		t.Errorf("the conformance suite does not say that all its tests passed: %s", output[max(0, len(output)-1000):])
	} else {
		t.Logf("%s, in %.0f s", count[0], time.Since(started).Seconds())
	}

	t.Run("the kinds are in PostgreSQL", func(t *testing.T) {
		if got := p.query(t, "select count(distinct name) from kine where name like '/registry/appsec.dev/findings/%'"); got == "0" {
			t.Error("PostgreSQL holds no finding: where has the suite written to?")
		}
	})
	t.Run("consistent reads come from the API server's cache", func(t *testing.T) {
		metrics, err := p.quickly(t, "kubectl", "--kubeconfig="+p.kubeconfig("admin"), "get", "--raw", "/metrics")
		harness.Must(t, err)
		cached, fallen := consistentReads(t, metrics)
		t.Logf("%d consistent reads of the kinds, of which %d fell back to the store", cached+fallen, fallen)
		if cached == 0 || fallen*10 > cached {
			t.Error("kine does not tell the API server how far it is: every list would be one of the database")
		}
	})
	t.Run("nothing of the kinds is in the workload cluster", func(t *testing.T) {
		err := workload.Client.List(t.Context(), &v1alpha1.OrganizationList{})
		if err == nil {
			t.Error("the workload cluster serves organizations")
		}
	})
	t.Run("the Lease is in the workload cluster", func(t *testing.T) {
		lease := &coordinationv1.Lease{}
		harness.Must(t, workload.Client.Get(t.Context(), theLease, lease))
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			t.Error("nobody holds the Lease")
		}
		if err := p.admin.Get(t.Context(), theLease, &coordinationv1.Lease{}); !apierrors.IsNotFound(err) {
			t.Errorf("the plane has a Lease too: %v", err)
		}
	})
	t.Run("the Event that says who leads is beside the Lease", func(t *testing.T) {
		list := &corev1.EventList{}
		harness.Must(t, workload.Client.List(t.Context(), list, client.InNamespace(testenv.SystemNamespace)))
		if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == "LeaderElection" }) {
			t.Errorf("the account of the Lease may not create Events; the namespace has %d", len(list.Items))
		}
	})
	t.Run("kine answers nobody without a certificate", func(t *testing.T) {
		connection, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", "127.0.0.1:"+p.ports["2379"]) //nolint:gosec // to be refused
		if err == nil {
			defer connection.Close() //nolint:errcheck // nothing is sent
			harness.Must(t, connection.SetReadDeadline(time.Now().Add(patience)))
			_, err = connection.Read(make([]byte, 1))
		}
		harness.ErrorContains(t, "a connection without a certificate", err, "certificate required")
	})
}

// consistentRead matches a line of the API server's metric of consistent lists.
var consistentRead = regexp.MustCompile(`(?m)^apiserver_watch_cache_consistent_read_total\{fallback="(\w+)",group="appsec\.dev",.*\} (\S+)$`)

// consistentReads returns how many consistent lists came from the API server's cache, and how many
// did not.
func consistentReads(t *testing.T, metrics string) (cached, fallen int) {
	t.Helper()
	for _, line := range consistentRead.FindAllStringSubmatch(metrics, -1) {
		n, err := strconv.ParseFloat(line[2], 64)
		harness.Must(t, err)
		if line[1] == "true" {
			fallen += int(n)
		} else {
			cached += int(n)
		}
	}
	return cached, fallen
}

// failures returns the lines about failures.
func failures(output string) string {
	var out []string
	keep := false
	for line := range strings.Lines(output) {
		switch {
		case strings.Contains(line, "--- FAIL"), strings.HasPrefix(line, "conformance"), strings.HasPrefix(line, "FAIL"):
			keep = true
		case strings.Contains(line, "--- PASS"), strings.HasPrefix(line, "=== "):
			keep = false
		}
		if keep {
			out = append(out, line)
		}
	}
	all := strings.Join(out, "")
	return all[:min(len(all), 8000)]
}
