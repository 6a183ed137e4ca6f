package conditions_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// organizationKind must exist before the others, which live in its namespace.
const organizationKind = "Organization"

// The pages' examples represent each kind: examples that people copy become ready, kubectl can wait
// for that, the printed tables match the pages, and once everything has settled nothing is written
// or announced again.
func TestTheExamplesBecomeReadyAndStayQuiet(t *testing.T) {
	all := kinds(t)
	running := startControllers(t)
	objects := createExamples(t, all)
	for _, object := range objects {
		t.Run(object.GetKind(), func(t *testing.T) { checkReady(t, object) })
	}
	if t.Failed() {
		return
	}
	for _, object := range objects {
		t.Run("tables of "+object.GetKind(), func(t *testing.T) {
			checkTables(t, object.GetKind())
			checkGlance(t, object)
		})
	}

	running.waitUntilIdle(t, all)
	told := fence(t, "before")
	for _, object := range objects {
		testenv.Get(t, NewWithT(t), env, object)
		object.SetAnnotations(map[string]string{"example.com/touched": "true"})
		env.Patch(t, object, `{"metadata":{"annotations":{"example.com/touched":"true"}}}`)
	}
	running.beginAnew(t, all) // nor do new controllers remember the Events they have sent
	for name, event := range fence(t, "after") {
		if _, before := told[name]; !before && event.Regarding.Namespace != fenceNamespace {
			t.Errorf("nothing has changed, and there is a new Event for %s %s: %s: %s",
				event.Regarding.Kind, event.Regarding.Name, event.Reason, event.Note)
		}
	}
	for _, object := range objects {
		touched := object.GetResourceVersion()
		harness.Same(t, fmt.Sprintf("the version of %s %s, of which nothing has changed", object.GetKind(), object.GetName()),
			touched, testenv.Get(t, NewWithT(t), env, object).GetResourceVersion())
	}
}

// createExamples creates the examples of all pages, with a receiver that accepts their webhooks.
func createExamples(t *testing.T, kinds []string) []*unstructured.Unstructured {
	t.Helper()
	receiver := harness.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	order := append([]string{organizationKind}, slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool {
		return kind == organizationKind
	})...)
	var out []*unstructured.Unstructured
	for _, kind := range order {
		object := example(t, kind)
		if _, sends, _ := unstructured.NestedString(object.Object, "spec", "url"); sends && kind == "WebhookEndpoint" {
			harness.Must(t, unstructured.SetNestedField(object.Object, receiver, "spec", "url"))
		}
		strict := client.WithFieldValidation(env.Client, metav1.FieldValidationStrict)
		if err := strict.Create(t.Context(), object); err != nil {
			t.Fatalf("create the example of %s: %v", kind, err)
		}
		if kind == organizationKind {
			checkReady(t, object)
		}
		out = append(out, object)
	}
	return out
}

// status holds the members that the statuses of all kinds share.
type status struct {
	ObservedGeneration int64                `json:"observedGeneration"`
	Conditions         []v1alpha1.Condition `json:"conditions"`
}

func statusOf(t *testing.T, object *unstructured.Unstructured) status {
	t.Helper()
	var out struct {
		Status status `json:"status"`
	}
	harness.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &out))
	return out.Status
}

func checkReady(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	arguments := []string{"wait", "--for=condition=Ready", "--timeout=120s", resource(t, object.GetKind()) + "." + v1alpha1.GroupName + "/" + object.GetName()}
	if object.GetNamespace() != "" {
		arguments = append(arguments, "--namespace="+object.GetNamespace())
	}
	defer func() {
		if t.Failed() {
			t.Logf("its status: %+v", statusOf(t, testenv.Get(t, NewWithT(t), env, object)))
		}
	}()
	if out := env.Kubectl(t, "default", arguments...); !strings.HasSuffix(out, " condition met\n") {
		t.Errorf("kubectl wait printed %q", out)
	}
	testenv.Get(t, NewWithT(t), env, object)
	is := statusOf(t, object)
	ready := v1alpha1.FindCondition(is.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		t.Fatalf("has no Ready: %v", is.Conditions)
	}
	if is.ObservedGeneration != object.GetGeneration() || ready.ObservedGeneration != object.GetGeneration() {
		t.Errorf("status is of generation %d and Ready of %d, want %d", is.ObservedGeneration, ready.ObservedGeneration, object.GetGeneration())
	}
	if v1alpha1.FindCondition(is.Conditions, v1alpha1.ConditionStalled) != nil {
		t.Error("is Stalled, though ready")
	}
	if !slices.Contains(reasons(t, object.GetKind()), ready.Reason) {
		t.Errorf("Ready has the reason %q, which the kind does not declare", ready.Reason)
	}
	checkMessage(t, object.GetKind()+" "+object.GetName(), ready.Message)
}

// checkGlance checks the columns that every kind shows: its age, or when it began, and whether it
// is ready; kinds with a more specific column for that show Ready with -o wide.
func checkGlance(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	arguments := []string{"get", resource(t, object.GetKind()), object.GetName()}
	if object.GetNamespace() != "" {
		arguments = append(arguments, "--namespace="+object.GetNamespace())
	}
	narrow, wide := env.Kubectl(t, "default", arguments...), env.Kubectl(t, "default", append(arguments, "--output=wide")...)
	t.Logf("\n%s\n%s", narrow, wide)
	header, _, _ := strings.Cut(wide, "\n")
	for _, column := range []string{"READY", "REASON"} {
		if !slices.Contains(columns(header), column) {
			t.Errorf("kubectl get -o wide has no column %s: %s", column, header)
		}
	}
	header, row, _ := strings.Cut(narrow, "\n")
	if !slices.Contains(columns(header), "AGE") && !slices.Contains(columns(header), "STARTED") {
		t.Errorf("kubectl get shows no age: %s", header)
	}
	ready := v1alpha1.FindCondition(statusOf(t, object).Conditions, v1alpha1.ConditionReady)
	if shown := conditionsShown.FindString(page(t, object.GetKind())); !strings.Contains(shown, ready.Message) {
		t.Errorf("the page shows other conditions than kubectl describe prints:\n%s",
			conditionsShown.FindString(env.Kubectl(t, "default", append([]string{"describe"}, arguments[1:]...)...)))
	}
	// Longer lines do not fit on a screen.
	if longest := 160; len(header) > longest || len(row) > longest {
		t.Errorf("kubectl get prints lines of more than %d characters:\n%s", longest, narrow)
	}
}

// fenceNamespace contains the objects that fence creates.
const fenceNamespace = "fences"

// fence returns all Events, once an Event that it has caused itself has arrived: earlier Events of
// the controllers have then arrived too.
func fence(t *testing.T, name string) map[string]eventsv1.Event {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fenceNamespace}}
	harness.Must(t, client.IgnoreAlreadyExists(env.Client.Create(t.Context(), namespace)))
	ended := time.Now().Add(-2 * time.Minute) // until a minute after its end, a scan without counts is looked at each second
	scan := builder.Scan(name, ended).In(fenceNamespace).Ended(ended, v1alpha1.ScanFailed).Build()
	env.Create(t, scan)
	events := map[string]eventsv1.Event{}
	harness.Eventually(t, func(g Gomega) {
		list := testenv.List(t, g, env, &eventsv1.EventList{})
		var arrived bool
		for _, event := range list.Items {
			// A repeated Event increases the count of its series.
			var times int32
			if event.Series != nil {
				times = event.Series.Count
			}
			events[fmt.Sprintf("%s/%s %d", event.Namespace, event.Name, times)] = event
			arrived = arrived || event.Regarding.UID == scan.UID
		}
		g.Expect(arrived).To(BeTrue(), "the Event of the scan %s", name)
	})
	return events
}
