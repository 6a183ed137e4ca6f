package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

const patience = 3 * time.Minute

func eventually(t *testing.T, assertions func(g Gomega)) {
	t.Helper()
	harness.Within(t, patience, assertions)
}

// controllerFlags returns the flags of a real run with the real service account.
func controllerFlags(t *testing.T, probeAddress string, more ...string) []string {
	t.Helper()
	config, err := env.ServiceAccount(t.Context(), testenv.SystemNamespace, "findings-controller")
	harness.Must(t, err)
	return append([]string{
		"--kubeconfig", testenv.WriteKubeconfig(t, config, testenv.SystemNamespace),
		"--metrics-bind-address", "0", "--health-probe-bind-address", probeAddress,
	}, more...)
}

// startController runs `findings-operator controller` until stop is called.
func startController(t *testing.T, args ...string) (stop func()) {
	t.Helper()
	return run(t, completed(t, args...))
}

func completed(t *testing.T, args ...string) *controllerOptions {
	t.Helper()
	o := &controllerOptions{}
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	o.addFlags(flags)
	harness.Must(t, flags.Parse(args))
	harness.Must(t, o.complete())
	return o
}

func run(t *testing.T, o *controllerOptions) (stop func()) {
	t.Helper()
	return harness.Background(t, func(ctx context.Context) error { return o.run(ctx, prometheus.NewRegistry()) })
}

func status(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	harness.Must(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	response.Body.Close() //nolint:errcheck // nothing is read from it
	return response.StatusCode
}

// queued returns how many objects wait for the controllers of this process, by controller.
func queued(t *testing.T) map[string]float64 {
	t.Helper()
	return totals(t, "workqueue_depth", "name")
}

// totals returns the sums of a metric of this process, by the value of a label.
func totals(t *testing.T, metric, by string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	harness.Must(t, err)
	totals := map[string]float64{}
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == by {
					totals[label.GetValue()] += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
				}
			}
		}
	}
	return totals
}

// watches records which lists of objects a client has watched.
type watches struct {
	mu    sync.Mutex
	lists map[string]bool
}

func (w *watches) note(request *http.Request) {
	query := request.URL.Query()
	if query.Get("watch") == "" {
		return
	}
	// The metadata of a kind and its whole objects differ in what they accept.
	list := strings.Join([]string{request.URL.Path, query.Get("fieldSelector"), query.Get("labelSelector"),
		request.Header.Get("Accept")}, " ")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lists[list] = true
}

func (w *watches) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.lists))
}

// settled returns the watches once none has begun for a second: an informer lists before it watches.
func (w *watches) settled(t *testing.T) []string {
	t.Helper()
	begun, quietSince := w.all(), time.Now()
	eventually(t, func(g Gomega) {
		if now := w.all(); !slices.Equal(now, begun) {
			begun, quietSince = now, time.Now()
		}
		g.Expect(time.Since(quietSince)).To(BeNumerically(">", time.Second), "watches still begin")
	})
	return begun
}

// recordWatches records the watches of the controllers' kinds.
func recordWatches(o *controllerOptions) *watches {
	w := &watches{lists: map[string]bool{}}
	harness.Between(o.kinds, func(next http.RoundTripper, request *http.Request) (*http.Response, error) {
		w.note(request)
		return next.RoundTrip(request)
	})
	return w
}

// The second replica is ready while it waits, with full caches and empty queues, does nothing, and takes over when the
// first one ends.
func TestSecondReplicaTakesOver(t *testing.T) {
	reconciled := func(name string) {
		t.Helper()
		testenv.CreateReady(t, env, builder.Repository(name).In("default").Build())
	}
	holder := func() string {
		lease := &coordinationv1.Lease{}
		harness.Must(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: testenv.SystemNamespace, Name: "security-controller"}, lease))
		return ptr.Deref(lease.Spec.HolderIdentity, "")
	}
	flags := []string{"--leader-elect", "--leader-election-id=security-controller"}
	idle := queued(t)
	nothingWaits := func() {
		t.Helper()
		eventually(t, func(g Gomega) {
			for controller, objects := range queued(t) {
				g.Expect(objects).To(BeNumerically("<=", idle[controller]), "objects wait for "+controller)
			}
		})
	}
	stopFirst := startController(t, controllerFlags(t, "0", flags...)...)
	reconciled("before")
	first := holder()

	address := harness.FreeAddress(t)
	second := completed(t, controllerFlags(t, address, flags...)...)
	watched := recordWatches(second)
	run(t, second)
	eventually(t, func(g Gomega) {
		g.Expect(status(t, "http://"+address+"/readyz")).To(Equal(http.StatusOK))
		g.Expect(status(t, "http://"+address+"/healthz")).To(Equal(http.StatusOK))
	})
	NewWithT(t).Expect(holder()).To(Equal(first), "the Lease was taken from a leader at work")
	reconciled("meanwhile")
	nothingWaits()
	inWaiting := watched.settled(t)

	stopFirst()
	reconciled("after")
	NewWithT(t).Expect(holder()).NotTo(Equal(first))
	nothingWaits()
	harness.Same(t, "watches before and after the election", inWaiting, watched.all())
}

// Without the signing keys no replica leads: if this one counted as ready, a rollout would end the replica that works.
func TestReplicaThatCannotListTheSigningKeysIsNotReady(t *testing.T) {
	address := harness.FreeAddress(t)
	o := completed(t, controllerFlags(t, address)...)
	watched, allowed := recordWatches(o), make(chan struct{})
	allow := sync.OnceFunc(func() { close(allowed) })
	harness.Between(o.kinds, func(next http.RoundTripper, request *http.Request) (*http.Response, error) {
		if strings.HasSuffix(request.URL.Path, "/configmaps") {
			select {
			case <-allowed:
			case <-request.Context().Done():
				return nil, request.Context().Err()
			}
		}
		return next.RoundTrip(request)
	})
	run(t, o)
	t.Cleanup(allow) // before it stops: the manager does not end before its caches have synced
	answers := func(want int) {
		t.Helper()
		eventually(t, func(g Gomega) { g.Expect(status(t, "http://"+address+"/readyz")).To(Equal(want)) })
	}
	answers(http.StatusInternalServerError)
	eventually(t, func(g Gomega) { g.Expect(watched.all()).NotTo(BeEmpty()) })
	watched.settled(t)
	harness.Same(t, "/readyz with all kinds, but not the signing keys", http.StatusInternalServerError,
		status(t, "http://"+address+"/readyz"))
	allow()
	answers(http.StatusOK)
}

func TestControllersThatStartBeforeTheAPIServerWaitForIt(t *testing.T) {
	config, err := env.ServiceAccount(t.Context(), testenv.SystemNamespace, "findings-controller")
	harness.Must(t, err)
	server, probes := harness.FreeAddress(t), harness.FreeAddress(t)
	to := strings.TrimPrefix(config.Host, "https://")
	config.Host = "https://" + server
	o := completed(t, "--kubeconfig", testenv.WriteKubeconfig(t, config, testenv.SystemNamespace),
		"--metrics-bind-address", "0", "--health-probe-bind-address", probes)
	tried := make(chan struct{})
	once := sync.OnceFunc(func() { close(tried) })
	harness.Between(o.kinds, func(next http.RoundTripper, request *http.Request) (*http.Response, error) {
		defer once()
		return next.RoundTrip(request)
	})
	run(t, o)
	<-tried
	forward(t, server, to)
	eventually(t, func(g Gomega) { g.Expect(status(t, "http://"+probes+"/readyz")).To(Equal(http.StatusOK)) })
}

// forward forwards connections from one address to another until the test ends.
func forward(t *testing.T, from, to string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", from)
	harness.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() }) //nolint:errcheck // nothing depends on it
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to) //nolint:noctx // the listener ends with the test
			if err != nil {
				client.Close() //nolint:errcheck // the client sees it
				continue
			}
			for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
				go func() {
					io.Copy(way[0], way[1]) //nolint:errcheck // either end may close it
					way[0].Close()          //nolint:errcheck // as above
				}()
			}
		}
	}()
}

// The kinds may be stored in another API server than the Lease. Here it is the same one, which allows one account the
// Lease alone.
func TestFindingsPlaneAwayFromTheLease(t *testing.T) {
	const namespace, local = testenv.SystemNamespace, "findings-controller-local"
	leader, err := env.ServiceAccount(t.Context(), namespace, "leader")
	harness.Must(t, err)
	binding := testenv.Bind(namespace, "leader", local, testenv.Account(namespace, "leader"))
	binding.RoleRef.Kind = "Role"
	env.Create(t, binding)
	kinds, err := env.Controller(t.Context())
	harness.Must(t, err)
	o := completed(t, controllerFlags(t, "0", "--leader-elect",
		"--kubeconfig", testenv.WriteKubeconfig(t, leader, namespace),
		"--findings-kubeconfig", testenv.WriteKubeconfig(t, kinds, namespace))...)
	harness.Same(t, "the account of the Lease", leader.BearerToken, o.leases.BearerToken)
	harness.Between(o.kinds, func(next http.RoundTripper, request *http.Request) (*http.Response, error) {
		if strings.HasSuffix(request.URL.Path, "/leases/"+defaultLease) {
			t.Error("the Lease is in the findings plane")
		}
		return next.RoundTrip(request)
	})
	run(t, o)

	testenv.CreateReady(t, env, builder.Repository("away").In("default").Build())
}

func TestHelpShowsNoEmptyDefault(t *testing.T) {
	harness.Lacks(t, "the help", newControllerCommand().Flags().FlagUsages(), "(default [])")
}

func TestFlagsHaveTheirDocumentedDefaults(t *testing.T) {
	apiserver, controller := newAPIServerCommand().Flags(), newControllerCommand().Flags()
	for _, test := range []struct {
		flags      *pflag.FlagSet
		name, want string
	}{
		{apiserver, "data-staleness", "10m0s"},
		{apiserver, "key-staleness", "1m0s"},
		{apiserver, "trusted-proxies", "[]"}, // else a client could choose the address that it is counted for
		{controller, "retention-rate", "50"},
		{controller, "webhook-max-pending", "10000"},
	} {
		if flag := test.flags.Lookup(test.name); flag == nil {
			t.Errorf("--%s does not exist", test.name)
		} else {
			harness.Same(t, "default of --"+test.name, test.want, flag.DefValue)
		}
	}
}

func TestValidateNamesEveryMistake(t *testing.T) {
	cases := []struct {
		reason string
		args   []string
		want   []string
	}{
		{"the defaults are good", nil, nil},
		{"a controller that is not there", []string{"--concurrency", "findings=3"}, []string{`no controller "findings"`, "repository"}},
		{"no name of a Lease", []string{"--leader-election-id="}, []string{`--leader-election-id ""`}},
		{"no worker at all", []string{"--concurrency", "scan=0"}, []string{"scan=0"}},
		{"no namespace", []string{"--namespace", "Not One"}, []string{`"Not One"`}},
		{"a level is a known one", []string{"--log-level=loud"}, []string{`not "loud"`}},
		{"the log's flags have former names", []string{"--zap-log-level=debug", "--zap-encoder=console"}, nil},
		{"no range", []string{"--webhook-allow-cidr=internal", "--webhook-deny-cidr=pods"},
			[]string{`--webhook-allow-cidr "internal"`, `--webhook-deny-cidr "pods"`}},
		{"a range that matches nothing", []string{"--webhook-deny-cidr=::ffff:203.0.113.0/120"}, []string{`--webhook-deny-cidr "::ffff`}},
		{"a prefix of NAT64 of another length", []string{"--webhook-nat64-prefix=2001:db8::/64"}, []string{`--webhook-nat64-prefix "2001:db8::/64"`}},
		{"no rate", []string{"--retention-rate", "0"}, []string{"--retention-rate 0"}},
		{"a rate is a number", []string{"--retention-rate", "NaN"}, []string{"--retention-rate NaN"}},
		{"two mistakes at once", []string{"--namespace", "", "--concurrency", "scan=0"}, []string{"--namespace", "scan=0"}},
	}
	for _, c := range cases {
		err := validateController(c.args...)
		wantsKnownFlags(t, err)
		if (err != nil) != (len(c.want) > 0) {
			t.Errorf("%s: got %v", c.reason, err)
			continue
		}
		for _, part := range c.want {
			harness.ErrorContains(t, c.reason, err, part)
		}
	}
}

func TestTheRangesOfTheFlagsReachTheSenderOfWebhooks(t *testing.T) {
	o := &controllerOptions{}
	harness.Must(t, parseAndValidate(o.addFlags, o.validate, []string{"--webhook-allow-cidr=10.1.0.0/16",
		"--webhook-deny-cidr=2001:db8:1::/48", "--webhook-nat64-prefix=2001:db8:64::/96"}))
	harness.Same(t, "allowed, denied, NAT64", "[10.1.0.0/16] [2001:db8:1::/48] [2001:db8:64::/96]",
		fmt.Sprint(o.webhooks.Allowed, o.webhooks.Denied, o.webhooks.NAT64))
}
