package conditions_test

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// many is how many findings of one organization are unreadable at the same time.
const many = 300

// inTurn is how many come one after another: waits between lists that double each time would far exceed
// maxLate.
const inTurn = 8

// Objects are put into etcd that kube-apiserver serves and that Go types cannot hold, while both of the operator's
// processes run. Each affects only itself.
func TestUnreadableObjectsAffectOnlyThemselves(t *testing.T) {
	s := startOperator(t)
	good, odd := s.organization(t, "good"), s.organization(t, "odd")
	good.stillWorks(t, "before")

	// At runtime: one object of each kind.
	want := map[string]int{}
	for kind := range s.crds {
		s.put(t, kind, odd.namespace, "poison")
		want[kind]++
	}
	s.counted(t, want)
	good.stillWorks(t, "at-run")
	s.organization(t, "new-at-run").stillWorks(t, "first")
	odd.reported(t)
	harness.Same(t, "status of GET for what cannot be read", http.StatusNotFound, odd.get(t, "/v2/repos/a/projects/a/findings/poison"))
	odd.stillWorks(t, "beside")
	odd.countsFindings(t, 1)

	// One after another. A watch that ends at each object would be restarted with a growing delay.
	for i := range inTurn {
		s.put(t, "Finding", odd.namespace, fmt.Sprintf("poison-in-turn-%d", i))
		want["Finding"]++
		s.counted(t, want)
		good.stillWorks(t, fmt.Sprintf("in-turn-%d", i))
	}

	// Many of them, including one that was readable before.
	for i := range many {
		s.put(t, "Finding", odd.namespace, fmt.Sprintf("poison-%d", i))
	}
	s.put(t, "Finding", odd.namespace, "beside")
	want["Finding"] += many + 1
	s.counted(t, want)
	good.stillWorks(t, "with-many")
	harness.Same(t, "status of GET for what can no longer be read", http.StatusNotFound, odd.get(t, "/v2/repos/a/projects/a/findings/beside"))
	odd.countsFindings(t, 0)

	// At startup.
	for _, process := range []*harness.Component{s.controller, s.facade} {
		harness.Must(t, process.Stop())
		harness.Must(t, process.StartReady(t.Context()))
	}
	s.counted(t, want)
	good.stillWorks(t, "after-start")
	s.organization(t, "new-after-start").stillWorks(t, "first")

	odd.mend(t, want)
	s.counted(t, want)
	good.stillWorks(t, "after-mending")
	odd.remove(t)
}

// countsFindings waits until the repository's status counts that many findings, which are the readable
// ones.
func (o *organization) countsFindings(t *testing.T, want int) {
	t.Helper()
	repository := builder.Repository("a").In(o.namespace).Build()
	harness.Within(t, maxLate, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, repository).Status.Counts.Findings).To(BeEquivalentTo(want))
	})
}

// reported waits for an Event about each object in its namespace.
func (o *organization) reported(t *testing.T) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		about := map[string]bool{}
		for _, namespace := range []string{o.namespace, metav1.NamespaceDefault} {
			events := testenv.List(t, g, env, &eventsv1.EventList{}, client.InNamespace(namespace))
			for _, event := range events.Items {
				if event.Reason == v1alpha1.ReasonUnreadable && event.Regarding.Name == "poison" {
					about[event.Regarding.Kind] = true
				}
			}
		}
		for kind := range o.s.crds {
			g.Expect(about).To(HaveKey(kind))
		}
	})
}

// mend checks that other parts of an unreadable object can be changed, and that it can be repaired, as with
// kubectl; an immutable object can be deleted.
func (o *organization) mend(t *testing.T, want map[string]int) {
	t.Helper()
	merge := func(kind, patch string) {
		t.Helper()
		env.Patch(t, o.poison(kind), patch)
	}
	// Change another part of each: the value that the schema now refuses stays unchanged.
	merge("Finding", `{"spec":{"class":"changed"}}`)
	merge("Organization", `{"spec":{"displayName":"changed"}}`)
	o.s.counted(t, want)
	merge("Organization", `{"spec":{"retention":{"closedFindings":"8760h"}}}`)
	merge("Finding", `{"spec":{"scan":null}}`)
	merge("Repository", `{"spec":{"lastCommit":null}}`)
	want["Organization"]--
	want["Finding"]--
	want["Repository"]--
	harness.Eventually(t, func(g Gomega) {
		g.Expect(o.get(t, "/v2/repos/a/projects/a/findings/poison")).To(Equal(http.StatusOK))
		made := testenv.Get(t, g, env, builder.Organization("poison").Build())
		g.Expect(v1alpha1.IsConditionTrue(made.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
	})
	harness.Must(t, env.Client.Delete(t.Context(), o.poison("Scan")))
	want["Scan"]--
}

// remove removes all objects that the test put into etcd, which other tests would meet, and the other findings of the
// organization.
func (o *organization) remove(t *testing.T) {
	t.Helper()
	for kind := range o.s.crds {
		object := o.poison(kind)
		if kind == "Finding" {
			harness.Must(t, env.Client.DeleteAllOf(t.Context(), object, client.InNamespace(o.namespace)))
		}
		harness.Must(t, client.IgnoreNotFound(env.Client.Delete(t.Context(), object)))
	}
	o.s.counted(t, map[string]int{})
}

// poison returns a reference to the unreadable object of a kind; no Go type could hold it.
func (o *organization) poison(kind string) *metav1.PartialObjectMetadata {
	object := kube.MetadataOf(v1alpha1.GroupVersion.WithKind(kind))
	object.SetName("poison")
	if kind != "Organization" {
		object.SetNamespace(o.namespace)
	}
	return object
}
