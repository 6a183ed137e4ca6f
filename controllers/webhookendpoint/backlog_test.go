package webhookendpoint

import (
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func TestSetBacklogged(t *testing.T) {
	s := newScope()
	s.Begin(noon)
	steps := []struct {
		reason  string
		pending int
		want    string
	}{
		{"nothing waits", 0, ""},
		{"as many as may", 10, ""},
		{"one more", 11, v1alpha1.ReasonTooManyPending},
		{"as many as may, once it is open", 10, v1alpha1.ReasonTooManyPending},
		{"half of them", 5, v1alpha1.ReasonTooManyPending},
		{"less than half", 4, ""},
		{"half of them, once it is closed", 5, ""},
		{"as many as may, once it is closed", 10, ""},
		{"twice as many", 20, v1alpha1.ReasonTooManyPending},
		{"one more than twice as many", 21, v1alpha1.ReasonDecisionsHeldBack},
		{"twice as many, once decisions are held back", 20, v1alpha1.ReasonDecisionsHeldBack},
		{"one more than may, once decisions are held back", 11, v1alpha1.ReasonDecisionsHeldBack},
		{"as many as may, once decisions are held back", 10, v1alpha1.ReasonTooManyPending},
		{"one more than twice as many, again", 21, v1alpha1.ReasonDecisionsHeldBack},
		{"less than half, at once", 4, ""},
	}
	for _, step := range steps {
		setBacklogged(s, step.pending, 10)
		got := ""
		if c := v1alpha1.FindCondition(s.Status.Conditions, v1alpha1.ConditionBacklogged); c != nil {
			got = c.Reason
		}
		harness.Same(t, step.reason, step.want, got)
	}
	setBacklogged(s, 2, 1)
	s.Begin(noon.Add(time.Hour))
	setBacklogged(s, 1, 1)
	harness.Same(t, "it says something else though nothing has changed", s.Before, s.Status)
	if setBacklogged(s, 0, 1); len(s.Status.Conditions) != 0 {
		t.Error("with a bound of 1 it never closes")
	}
}

func TestABacklogIsAnnouncedAsItGrowsAndEnds(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{Base: reconcile.Base{Recorder: recorder}}
	s := newScope()
	for _, step := range []struct {
		pending int
		want    string
	}{
		{0, ""},
		{11, "Warning TooManyPending"},
		{12, ""},
		{21, "Warning DecisionsHeldBack"},
		{10, ""},
		{21, "Warning DecisionsHeldBack"},
		{4, "Normal BacklogCleared"},
	} {
		s.Begin(noon)
		setBacklogged(s, step.pending, 10)
		r.announce(s)
		var got string
		select {
		case got = <-recorder.Events:
		default:
		}
		if step.want == "" && got != "" || !strings.HasPrefix(got, step.want) {
			t.Errorf("%d pending: announced %q, want %q", step.pending, got, step.want)
		}
	}
}

func TestMeasure(t *testing.T) {
	endpoint := &v1alpha1.WebhookEndpoint{ObjectMeta: metav1.ObjectMeta{UID: "e"}}
	waiting := func(uid string, since time.Duration, redelivered time.Duration) v1alpha1.WebhookDelivery {
		d := v1alpha1.WebhookDelivery{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(since))}}
		d.Spec.EndpointRef.UID = uid
		if redelivered != 0 {
			d.Status.Redelivery = &v1alpha1.WebhookRedelivery{At: v1alpha1.NewTime(noon.Add(redelivered))}
		}
		return d
	}
	got := measure(endpoint, []v1alpha1.WebhookDelivery{
		waiting("e", 2*time.Hour, 0),
		waiting("", time.Hour, 0),
		waiting("earlier", 0, 0), // for an earlier endpoint of the name
		waiting("e", -24*time.Hour, 3*time.Hour),
	})
	if want := (backlog{pending: 3, oldest: noon.Add(time.Hour)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestBacklogsAreAddedUp(t *testing.T) {
	registry := prometheus.NewRegistry()
	b := newBacklogs(registry, func() time.Time { return noon })
	name := func(n int) types.NamespacedName { return types.NamespacedName{Name: strconv.Itoa(n)} }
	wants := func(reason string, pending, age float64) {
		t.Helper()
		if p, a := b.pending(), b.oldestAge(); p != pending || a != age {
			t.Errorf("%s: %v pending, the oldest for %v s; want %v, %v", reason, p, a, pending, age)
		}
	}
	wants("nothing waits", 0, 0)
	b.note(name(1), backlog{pending: 3, oldest: noon.Add(-time.Minute)}, false)
	b.note(name(2), backlog{pending: 4, oldest: noon.Add(-time.Hour)}, false)
	wants("two endpoints", 7, 3600)
	b.note(name(2), backlog{pending: 4, oldest: noon.Add(-time.Hour)}, true)
	wants("what a disabled endpoint keeps waiting is late for nobody", 7, 60)
	b.note(name(1), backlog{}, false)
	b.forget(name(2))
	wants("nothing waits any longer", 0, 0)
	harness.Same(t, "endpoints that are kept", 0, len(b.endpoints))
	if n, err := testutil.GatherAndCount(registry); err != nil || n != 2 {
		t.Errorf("%d series, %v: one for each figure, however many endpoints there are", n, err)
	}
}

// A finalizer of another program may hold it for long. Nothing waits for it any more.
func TestAnEndpointThatIsBeingDeletedHasNoBacklog(t *testing.T) {
	ns := shared.Namespace(t, env)
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint("held").In(ns).Mutate(func(e *v1alpha1.WebhookEndpoint) {
		e.Finalizers = []string{"example.com/hold"}
	}).Build())
	counted := func() bool {
		theBacklog.mu.Lock()
		defer theBacklog.mu.Unlock()
		_, is := theBacklog.endpoints[client.ObjectKeyFromObject(endpoint)]
		return is
	}
	harness.Eventually(t, func(g Gomega) { g.Expect(counted()).To(BeTrue(), "its ping is pending") })
	harness.Must(t, env.Client.Delete(t.Context(), endpoint))
	harness.Eventually(t, func(g Gomega) { g.Expect(counted()).To(BeFalse()) })
	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Finalizers = nil })
}

// The condition is set above the bound and removed below half of it, with one write each.
func TestTooManyDeliveriesThatWait(t *testing.T) {
	ns, g := shared.Namespace(t, env), NewWithT(t)
	endpoint := newEndpoint(t, ns)
	writes := testenv.Writes[*v1alpha1.WebhookEndpoint](t, env, &v1alpha1.WebhookEndpointList{}, ns)
	waiting := make([]*v1alpha1.WebhookDelivery, settings.MaxPending) // plus the ping
	for i := range waiting {
		waiting[i] = testenv.Create(t, env, builder.WebhookDelivery("d-"+strconv.Itoa(i), time.Now()).In(ns).Endpoint("team").Build())
	}
	harness.Eventually(t, func(g Gomega) {
		conditions := testenv.Get(t, g, env, endpoint).Status.Conditions
		g.Expect(v1alpha1.IsConditionTrue(conditions, v1alpha1.ConditionBacklogged)).To(BeTrue())
		g.Expect(v1alpha1.IsConditionTrue(conditions, v1alpha1.ConditionReady)).To(BeTrue(), "what waits is sent all the same")
	})
	for i, d := range waiting[:len(waiting)-1] { // the last and the ping are left
		if i == 0 {
			g.Expect(env.Client.Delete(t.Context(), d)).To(Succeed())
			continue
		}
		d.Status.Phase = v1alpha1.WebhookDeliveryDelivered
		g.Expect(env.AsController(t).Status().Update(t.Context(), d)).To(Succeed())
	}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(v1alpha1.FindCondition(testenv.Get(t, g, env, endpoint).Status.Conditions, v1alpha1.ConditionBacklogged)).To(BeNil())
	})
	env.Patch(t, endpoint, `{"metadata":{"labels":{"last":"true"}}}`)
	last := func(written *v1alpha1.WebhookEndpoint) bool { return written.Labels["last"] == "true" }
	g.Expect(testenv.CountWrites(writes, last)).To(Equal(2), "one when it opens, one when it closes, and none for a delivery")
}
