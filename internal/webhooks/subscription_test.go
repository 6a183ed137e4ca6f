package webhooks

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestServedAreTheOldest(t *testing.T) {
	aged := func(name string, age time.Duration) v1alpha1.WebhookEndpoint {
		return v1alpha1.WebhookEndpoint{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-age))}}
	}
	// All but the first and the last have one age.
	endpoints := []v1alpha1.WebhookEndpoint{aged("a-youngest", 0), aged("z-oldest", time.Hour)}
	for i := range MaxServed {
		endpoints = append(endpoints, aged(fmt.Sprintf("e-%03d", MaxServed-1-i), time.Minute))
	}
	served := Served(endpoints)
	if len(served) != MaxServed || served[0].Name != "z-oldest" || served[1].Name != "e-000" ||
		served[MaxServed-1].Name != fmt.Sprintf("e-%03d", MaxServed-2) {
		t.Errorf("%d are served, from %s and %s to %s", len(served), served[0].Name, served[1].Name, served[len(served)-1].Name)
	}
	harness.Same(t, "served of 2", 2, len(Served(endpoints[:2])))
	for i := range endpoints {
		is := slices.ContainsFunc(served, func(e v1alpha1.WebhookEndpoint) bool { return e.Name == endpoints[i].Name })
		harness.Same(t, endpoints[i].Name+": is among the served", is, IsServed(&endpoints[i], endpoints))
	}
}

func TestWhichEventsAnEndpointGets(t *testing.T) {
	patterns := func(patterns ...v1alpha1.WebhookEventPattern) func(*v1alpha1.WebhookEndpoint) {
		return func(e *v1alpha1.WebhookEndpoint) { e.Spec.Events = patterns }
	}
	cases := []struct {
		reason   string
		endpoint func(*v1alpha1.WebhookEndpoint)
		event    string
		offset   time.Duration
		want     bool
	}{
		{"an endpoint that names nothing gets all", patterns(), "finding.created", time.Hour, true},
		{"a star is all", patterns("*"), "scan.completed", time.Hour, true},
		{"a group", patterns("finding.*"), "finding.closed", time.Hour, true},
		{"another group", patterns("finding.*"), "scan.completed", time.Hour, false},
		{"a group is not what begins like it", patterns("review.*"), "review_issue.opened", time.Hour, false},
		{"one type", patterns("finding.created"), "finding.created", time.Hour, true},
		{"another type of the group", patterns("finding.created"), "finding.closed", time.Hour, false},
		{"a type is not what begins like it", patterns("finding.close"), "finding.closed", time.Hour, false},
		{"one of several", patterns("scan.completed", "finding.*"), "finding.closed", time.Hour, true},
		{"nothing older than the endpoint", patterns(), "finding.created", -time.Second, false},
		{"what happened in the endpoint's own second", patterns(), "finding.created", 0, true},
		{"a disabled endpoint gets nothing", func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = true }, "finding.created", time.Hour, false},
		{"an endpoint that is being deleted gets nothing", func(e *v1alpha1.WebhookEndpoint) {
			e.DeletionTimestamp = new(metav1.NewTime(noon))
		}, "finding.created", time.Hour, false},
		{"a backlog is no end of the subscription", func(e *v1alpha1.WebhookEndpoint) {
			e.Status.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionBacklogged, Status: metav1.ConditionTrue}}
		}, "finding.created", time.Hour, true},
	}
	for _, c := range cases {
		e := endpoint()
		e.CreationTimestamp = metav1.NewTime(noon)
		c.endpoint(e)
		harness.Same(t, c.reason, c.want, Subscribes(e, c.event, noon.Add(c.offset)))
	}
}

// Every type in the documentation is known, and no other.
func TestPatternsThatMatchNoEventAreNamed(t *testing.T) {
	page := harness.RepositoryFile(t, "docs", "webhooks.md")
	documented := []v1alpha1.WebhookEventPattern{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z_]+\\.[a-z]+`(, )?)+ \\|").FindAllString(page, -1) {
		for _, quoted := range regexp.MustCompile("`(.+?)`").FindAllStringSubmatch(row, -1) {
			documented = append(documented, v1alpha1.WebhookEventPattern(quoted[1]))
		}
	}
	if diff := cmp.Diff([]string{EventFindingBatch}, Unmatched(documented)); diff != "" || len(documented) != len(eventTypes)+1 {
		t.Errorf("%d types of %d, and these are documented only (-want +got):\n%s", len(documented), len(eventTypes), diff)
	}
	patterns := []v1alpha1.WebhookEventPattern{"*", "finding.*", "findings.*", "finding.created", "finding.create", "webhook.*"}
	harness.Same(t, "unmatched", []string{"findings.*", "finding.create"}, Unmatched(patterns))
}

func TestABacklogHoldsBackAllButSingleDecisions(t *testing.T) {
	changes := []struct {
		change v1alpha1.TransitionType
		by     string
		single bool
	}{
		{v1alpha1.TransitionTriaged, "ann", true},
		{v1alpha1.TransitionTriaged, "apikey/ci", true},
		{v1alpha1.TransitionTriaged, v1alpha1.OperationAuthorPrefix + "mute", false},
		{v1alpha1.TransitionCreated, "scanner/gosec", false},
		{v1alpha1.TransitionJudged, "policy/mute", false},
	}
	for reason, held := range map[string]struct {
		status         metav1.ConditionStatus
		single, others bool
	}{
		"":                               {"", false, false},
		"Caught up":                      {metav1.ConditionFalse, false, false},
		v1alpha1.ReasonTooManyPending:    {metav1.ConditionTrue, false, true},
		v1alpha1.ReasonDecisionsHeldBack: {metav1.ConditionTrue, true, true},
		"OfALaterVersion":                {metav1.ConditionTrue, true, true},
	} {
		endpoint := &v1alpha1.WebhookEndpoint{}
		if reason != "" {
			backlog := v1alpha1.Condition{Type: v1alpha1.ConditionBacklogged, Status: held.status, Reason: reason}
			endpoint.Status.Conditions = []v1alpha1.Condition{backlog}
		}
		harness.Same(t, reason+": holds decisions back", held.single, HoldsDecisionsBack(endpoint))
		for _, c := range changes {
			want := held.others
			if c.single {
				want = held.single
			}
			harness.Same(t, fmt.Sprintf("%q, %s by %s: held back", reason, c.change, c.by), want, HoldsBack(endpoint, c.change, c.by))
		}
	}
}
