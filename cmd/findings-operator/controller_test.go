package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	testenv.Main(m, &env)
}

const patience = 60 * time.Second

func eventually(t *testing.T, assertions func(g Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(assertions).WithContext(t.Context()).
		WithTimeout(patience).WithPolling(100 * time.Millisecond).Should(Succeed())
}

// controllerFlags are those of a real run, as the real service account.
func controllerFlags(t *testing.T, probeAddress string, more ...string) []string {
	t.Helper()
	config, err := env.ServiceAccount(t.Context(), testenv.SystemNamespace, "findings-controller")
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{
		"--kubeconfig", testenv.WriteKubeconfig(t, config, testenv.SystemNamespace),
		"--metrics-bind-address", "0", "--health-probe-bind-address", probeAddress,
	}, more...)
}

// startController does what `findings-operator controller` does, until stop is called.
func startController(t *testing.T, args ...string) (stop func()) {
	t.Helper()
	o := &controllerOptions{sharedProcess: true}
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(o.complete(), o.validate()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the controllers ended with %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing was written
	return listener.Addr().String()
}

func status(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	response.Body.Close() //nolint:errcheck // nothing is read from it
	return response.StatusCode
}

// A settled cluster sees no write to the API group: not while the controllers run, and not
// when they start anew and look at everything again.
func TestSettledClusterSeesNoWrite(t *testing.T) {
	const findings = 25
	reconciles := reconcileTotals(t)
	stop := startController(t, controllerFlags(t, "0", "--leader-elect")...)

	organization := builder.Organization("settled").Build()
	create(t, organization)
	eventually(t, func(g Gomega) {
		g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(organization), organization)).To(Succeed())
		g.Expect(v1alpha1.IsConditionTrue(organization.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
	})
	ns, now := organization.Status.Namespace, time.Now()
	key := builder.APIKey("key").In(ns).Build()
	create(t, key, builder.Repository("repo").In(ns).Build(), builder.Project("proj").In(ns).Build(),
		builder.Scan("s-done", now.Add(-time.Minute)).In(ns).Ended(now, v1alpha1.ScanSucceeded).Build(),
		builder.Scan("s-running", now).In(ns).Build(),
		builder.Scan("s-abandoned", now.Add(-2*time.Hour)).In(ns).Build(),
		builder.Finding("f-lost").In(ns).Project("nowhere", "nowhere").Build(),
		builder.Review("review").In(ns).Reviewed("a", now.Add(-time.Hour)).Reviewed("b", now).Build(),
		builder.Review("r-lost").In(ns).PullRequest("nowhere", 1).Build(),
		builder.ReviewIssue("i-open").In(ns).SeenIn("a", "b").Build(),
		builder.ReviewIssue("i-resolved").In(ns).SeenIn("a").Build(),
		builder.ReviewIssue("i-lost").In(ns).Review("nowhere").SeenIn("a").Build())
	for i := range findings {
		create(t, builder.Finding(fmt.Sprintf("f-%d", i)).In(ns).Tool("gosec", v1alpha1.CategoryCode).Build())
	}
	eventually(t, func(g Gomega) {
		repository, project := &v1alpha1.Repository{}, &v1alpha1.Project{}
		g.Expect(env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "repo"}, repository)).To(Succeed())
		g.Expect(env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "proj"}, project)).To(Succeed())
		g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(key), key)).To(Succeed())
		g.Expect(repository.Status.Counts.Findings).To(BeEquivalentTo(findings))
		g.Expect(project.Status.FindingsCount).To(BeEquivalentTo(findings))
		g.Expect(project.Status.LastScan).To(Equal(&v1alpha1.ProjectLastScan{ID: "s-running", Status: v1alpha1.ScanPhaseRunning}))
		g.Expect(v1alpha1.IsConditionTrue(key.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
		list := &v1alpha1.FindingList{}
		g.Expect(env.Client.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
		for _, finding := range list.Items {
			g.Expect(finding.Status.ObservedGeneration).To(Equal(finding.Generation))
		}
		review := &v1alpha1.Review{}
		g.Expect(env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "review"}, review)).To(Succeed())
		g.Expect([]int32{review.Status.OpenIssueCount, review.Status.ClosedIssueCount}).To(Equal([]int32{1, 1}))
	})
	settle(t, reconciles, findings)
	before := groupWrites(t)

	stop()
	reconciles = reconcileTotals(t)
	startController(t, controllerFlags(t, "0", "--leader-elect")...)
	settle(t, reconciles, findings)
	if after := groupWrites(t); after != before {
		t.Errorf("%v writes to group %s while nothing had changed", after-before, v1alpha1.GroupName)
	}
	NewWithT(t).Expect(before).To(BeNumerically(">", findings), "the counter must count, or this test shows nothing")

	lease := &coordinationv1.Lease{}
	NewWithT(t).Expect(env.Client.Get(t.Context(),
		types.NamespacedName{Namespace: testenv.SystemNamespace, Name: leaseName}, lease)).To(Succeed(), "the Lease of the leader")
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := env.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// settle waits until every controller has reconciled what there is since the totals were
// taken, and has nothing left to do now.
func settle(t *testing.T, since map[string]float64, findings int) {
	t.Helper()
	eventually(t, func(g Gomega) {
		totals := reconcileTotals(t)
		for name, least := range map[string]int{
			"apikey": 1, "finding": findings + 1, "organization": 1, "project": 1, "repository": 1, "review": 2, "reviewissue": 3, "scan": 3,
		} {
			g.Expect(totals[name]-since[name]).To(BeNumerically(">=", least), name)
		}
	})
	// Nothing waits, nothing is at work, and that for as long as a count may be held back.
	quietSince := time.Now()
	last := reconcileTotals(t)
	eventually(t, func(g Gomega) {
		if totals := reconcileTotals(t); fmt.Sprint(totals) != fmt.Sprint(last) {
			quietSince, last = time.Now(), totals
		}
		g.Expect(time.Since(quietSince)).To(BeNumerically(">", 3*time.Second))
	})
}

// reconcileTotals are the numbers of reconciles so far, by controller.
func reconcileTotals(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	totals := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" {
					totals[label.GetValue()] += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return totals
}

// groupWrites is the number of requests to the API group, by the API server's own count, that
// were anything but reads. A write that changes nothing counts too.
func groupWrites(t *testing.T) float64 {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	body, err := clientset.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, `group="`+v1alpha1.GroupName+`"`) {
			continue
		}
		if strings.Contains(line, `verb="GET"`) || strings.Contains(line, `verb="LIST"`) || strings.Contains(line, `verb="WATCH"`) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		total += value
	}
	return total
}

// The second replica is ready while it waits, does nothing, and takes over when the first ends.
func TestSecondReplicaTakesOver(t *testing.T) {
	reconciled := func(name string) {
		t.Helper()
		repository := builder.Repository(name).In("default").Build()
		create(t, repository)
		eventually(t, func(g Gomega) {
			g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(repository), repository)).To(Succeed())
			g.Expect(v1alpha1.IsConditionTrue(repository.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
		})
	}
	holder := func() string {
		lease := &coordinationv1.Lease{}
		if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: testenv.SystemNamespace, Name: leaseName}, lease); err != nil {
			t.Fatal(err)
		}
		return ptr.Deref(lease.Spec.HolderIdentity, "")
	}
	stopFirst := startController(t, controllerFlags(t, "0", "--leader-elect")...)
	reconciled("before")
	first := holder()

	address := freeAddress(t)
	startController(t, controllerFlags(t, address, "--leader-elect")...)
	eventually(t, func(g Gomega) { g.Expect(status(t, "http://"+address+"/readyz")).To(Equal(http.StatusOK)) })
	NewWithT(t).Expect(holder()).To(Equal(first), "the Lease was taken from a leader at work")

	stopFirst()
	reconciled("after")
	NewWithT(t).Expect(holder()).NotTo(Equal(first))
}

func TestProbesAnswerOnceTheCachesHaveSynced(t *testing.T) {
	address := freeAddress(t)
	stop := startController(t, controllerFlags(t, address)...)
	eventually(t, func(g Gomega) {
		g.Expect(status(t, "http://"+address+"/healthz")).To(Equal(http.StatusOK))
		g.Expect(status(t, "http://"+address+"/readyz")).To(Equal(http.StatusOK))
	})
	stop()
	NewWithT(t).Expect(status(t, "http://"+address+"/healthz")).To(BeZero(), "still listening after the end")
}

// The kinds may live in another API server than the Lease.
func TestFindingsPlaneAwayFromTheLease(t *testing.T) {
	elsewhere, err := testenv.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := elsewhere.Stop(); err != nil {
			t.Error(err)
		}
	})
	account, err := elsewhere.ServiceAccount(t.Context(), testenv.SystemNamespace, "findings-controller")
	if err != nil {
		t.Fatal(err)
	}
	startController(t, controllerFlags(t, "0", "--leader-elect",
		"--findings-kubeconfig", testenv.WriteKubeconfig(t, account, testenv.SystemNamespace))...)

	repository := builder.Repository("repo").In("default").Build()
	if err := elsewhere.Client.Create(t.Context(), repository); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(g Gomega) {
		g.Expect(elsewhere.Client.Get(t.Context(), client.ObjectKeyFromObject(repository), repository)).To(Succeed())
		g.Expect(v1alpha1.IsConditionTrue(repository.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
	})
	leases := &coordinationv1.LeaseList{}
	if err := elsewhere.Client.List(t.Context(), leases, client.InNamespace(testenv.SystemNamespace)); err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases.Items {
		if lease.Name == leaseName {
			t.Error("the Lease is in the findings plane")
		}
	}
}

func TestValidateNamesEveryMistake(t *testing.T) {
	cases := []struct {
		reason string
		o      controllerOptions
		want   []string
	}{
		{"the defaults are good", controllerOptions{namespace: "findings-system"}, nil},
		{"a controller that is not there", controllerOptions{namespace: "x", concurrency: map[string]int{"findings": 3}},
			[]string{`no controller "findings"`, "repository"}},
		{"no worker at all", controllerOptions{namespace: "x", concurrency: map[string]int{"scan": 0}}, []string{"scan=0"}},
		{"no namespace", controllerOptions{namespace: "Not One"}, []string{`"Not One"`}},
		{"two mistakes at once", controllerOptions{namespace: "", concurrency: map[string]int{"scan": 0}}, []string{"--namespace", "scan=0"}},
	}
	for _, c := range cases {
		err := c.o.validate()
		if (err != nil) != (len(c.want) > 0) {
			t.Errorf("%s: got %v", c.reason, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q is not in %q", c.reason, part, err)
			}
		}
	}
}
