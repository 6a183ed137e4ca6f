// Package conditions_test checks what holds for every kind: which conditions it has, whether its page and its
// controller agree on them, what their messages say, and that objects which its Go type cannot hold affect no
// others. The kinds come from the scheme; only the tests of objects that cannot become ready or cannot be read
// name them.
package conditions_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// kinds returns this project's object kinds in the scheme, sorted.
func kinds(t *testing.T) []string {
	t.Helper()
	own := reflect.TypeFor[v1alpha1.Finding]().PkgPath()
	object := reflect.TypeFor[client.Object]()
	var out []string
	for kind, goType := range testenv.NewScheme().KnownTypes(v1alpha1.GroupVersion) {
		_, hasStatus := goType.FieldByName("Status")
		if goType.PkgPath() == own && reflect.PointerTo(goType).Implements(object) && hasStatus {
			out = append(out, kind)
		}
	}
	if len(out) < 10 {
		t.Fatalf("the scheme has only %v", out)
	}
	slices.Sort(out)
	return out
}

// resource returns kubectl's name for the kind.
func resource(t *testing.T, kind string) string {
	t.Helper()
	mapping, err := env.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: v1alpha1.GroupName, Kind: kind})
	harness.Must(t, err)
	return mapping.Resource.Resource
}

// controllers is `findings-operator controller` in a separate process.
type controllers struct{ *harness.Component }

// startControllers builds the real program and runs all of its controllers with the service account that they
// have in a cluster, until Stop is called or the test ends.
func startControllers(t *testing.T) controllers {
	t.Helper()
	controller, _, err := env.Operator(t.Context(), harness.Operator{Folder: t.TempDir()})
	harness.Must(t, err)
	controller.Run(t)
	return controllers{controller}
}

// byController returns the values of a metric by the label "controller".
func byController(g Gomega, metrics, metric string) map[string]float64 {
	samples, err := harness.Samples(metrics, metric)
	g.Expect(err).NotTo(HaveOccurred())
	out := map[string]float64{}
	for _, s := range samples {
		out[s.Labels["controller"]] += s.Value
	}
	return out
}

// waitUntilIdle waits until each kind's controller has reconciled something and all have been idle for as long as a
// count may be delayed.
func (c controllers) waitUntilIdle(t *testing.T, kinds []string) {
	t.Helper()
	var last map[string]float64
	var quietSince time.Time
	harness.Eventually(t, func(g Gomega) {
		metrics, err := c.Metrics(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		done := byController(g, metrics, "controller_runtime_reconcile_total")
		if !maps.Equal(done, last) {
			last, quietSince = done, time.Now()
		}
		for _, kind := range kinds {
			g.Expect(done[strings.ToLower(kind)]).To(BeNumerically(">", 0), "reconciles of %s", kind)
		}
		for _, metric := range []string{"workqueue_depth", "controller_runtime_active_workers"} {
			for name, n := range byController(g, metrics, metric) {
				g.Expect(n).To(BeZero(), "%s of %s", metric, name)
			}
		}
		g.Expect(time.Since(quietSince)).To(BeNumerically(">", 3*time.Second))
	})
}

// beginAnew restarts the controllers, which reconcile everything once, and expects that they write nothing.
func (c controllers) beginAnew(t *testing.T, kinds []string) {
	t.Helper()
	c.waitUntilIdle(t, kinds)
	before := groupWrites(t)
	harness.Must(t, c.Stop())
	harness.Must(t, c.StartReady(t.Context()))
	c.waitUntilIdle(t, kinds)
	harness.Same(t, "writes after a restart, by kind", before, groupWrites(t))
}

// groupWrites counts the requests to the API group that were not reads, by the API server's own count. A write that
// changes nothing counts too.
func groupWrites(t *testing.T) map[string]float64 {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(env.Config)
	harness.Must(t, err)
	body, err := clientset.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	harness.Must(t, err)
	samples, err := harness.Samples(string(body), "apiserver_request_total")
	harness.Must(t, err)
	writes := map[string]float64{}
	for _, s := range samples {
		if s.Labels["group"] == v1alpha1.GroupName && !slices.Contains([]string{"GET", "LIST", "WATCH"}, s.Labels["verb"]) {
			writes[s.Labels["verb"]+" "+s.Labels["resource"]+" "+s.Labels["subresource"]] += s.Value
		}
	}
	if len(writes) == 0 {
		t.Fatal("no write is counted, though the test has written")
	}
	return writes
}
