package organization

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func quotaIn(namespace string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: quotaName}}
}

// changeSpec applies a change to the current organization.
func changeSpec(t *testing.T, organization *v1alpha1.Organization, apply func(*v1alpha1.OrganizationSpec)) {
	t.Helper()
	testenv.Change(t, env, organization, func(o *v1alpha1.Organization) { apply(&o.Spec) })
}

func TestQuotasBecomeAResourceQuota(t *testing.T) {
	shared.Start(t, env)
	organization := readyOrganization(t, "bounded")
	if !env.Gone(t, quotaIn("org-bounded")) {
		t.Fatal("a quota is there that nobody asked for")
	}
	all := &v1alpha1.OrganizationQuotas{
		Findings: new(int64(1)), Repositories: new(int64(2)), Projects: new(int64(3)), Scans: new(int64(4)),
		Reviews: new(int64(5)), ReviewIssues: new(int64(6)), APIKeys: new(int64(7)),
		WebhookEndpoints: new(int64(8)), WebhookDeliveries: new(int64(0)),
	}
	expect := func(want map[string]string) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			have := map[string]string{}
			for name, limit := range testenv.Get(t, g, env, quotaIn("org-bounded")).Spec.Hard {
				have[string(name)] = limit.String()
			}
			g.Expect(have).To(Equal(want))
		})
	}
	changeSpec(t, organization, func(s *v1alpha1.OrganizationSpec) { s.Quotas = all })
	expect(map[string]string{
		"count/findings.appsec.dev": "1", "count/repositories.appsec.dev": "2", "count/projects.appsec.dev": "3",
		"count/scans.appsec.dev": "4", "count/reviews.appsec.dev": "5", "count/reviewissues.appsec.dev": "6",
		"count/apikeys.appsec.dev": "7", "count/webhookendpoints.appsec.dev": "8", "count/webhookdeliveries.appsec.dev": "0",
	})
	changeSpec(t, organization, func(s *v1alpha1.OrganizationSpec) {
		s.Quotas = &v1alpha1.OrganizationQuotas{Findings: new(int64(50))}
	})
	fifty := map[string]string{"count/findings.appsec.dev": "50"}
	expect(fifty)

	// A manual change of the ResourceQuota is reverted.
	env.Patch(t, quotaIn("org-bounded"),
		`{"metadata":{"labels":null},"spec":{"hard":{"count/findings.appsec.dev":"999"}}}`)
	expect(fifty)
	harness.Must(t, env.Client.Delete(t.Context(), quotaIn("org-bounded")))
	expect(fifty)

	changeSpec(t, organization, func(s *v1alpha1.OrganizationSpec) { s.Quotas = nil })
	env.AwaitGone(t, quotaIn("org-bounded"))
}

func TestQuotaOfAnotherNameIsNotOurs(t *testing.T) {
	shared.Start(t, env)
	organization := readyOrganization(t, "cluster-bounded")
	other := quotaIn("org-cluster-bounded")
	other.Name = "pods"
	env.Create(t, other)
	changeSpec(t, organization, func(s *v1alpha1.OrganizationSpec) {
		s.Quotas = &v1alpha1.OrganizationQuotas{Scans: new(int64(1))}
	})
	harness.Eventually(t, func(g Gomega) { testenv.Get(t, g, env, quotaIn("org-cluster-bounded")) })
	changeSpec(t, organization, func(s *v1alpha1.OrganizationSpec) { s.Quotas = nil })
	env.AwaitGone(t, quotaIn("org-cluster-bounded"))
	if env.Gone(t, other) {
		t.Error("the quota of another was removed")
	}
}

// With Kubernetes' own quota controller, which counts, and the API server, which refuses.
func TestQuotaBoundsWhatCanBeMadeAndSaysSo(t *testing.T) {
	env.StartControllerManager(t, "resourcequota-controller")
	shared.Alone(t, env)
	organization := testenv.CreateReady(t, env, builder.Organization("used-up").Mutate(func(o *v1alpha1.Organization) {
		o.Spec.Quotas = &v1alpha1.OrganizationQuotas{Findings: new(int64(2)), Projects: new(int64(100))}
	}).Build())
	const namespace = "org-used-up"
	inForce := func(limit string) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			status := testenv.Get(t, g, env, quotaIn(namespace)).Status
			hard, there := status.Hard["count/findings.appsec.dev"]
			g.Expect(there).To(BeTrue())
			g.Expect(hard.String()).To(Equal(limit))
		})
	}
	inForce("2")
	g := NewWithT(t)
	g.Expect(reason(testenv.Get(t, g, env, organization), v1alpha1.ConditionQuotaExceeded)).To(Equal("absent"))
	made := 0
	// The API server may observe a quota late.
	harness.Eventually(t, func(g Gomega) {
		finding := builder.Finding(fmt.Sprintf("finding-%d", made)).In(namespace).Project("repo", "project").Build()
		err := env.Client.Create(t.Context(), finding)
		if err == nil {
			made++
		}
		g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%d findings are made; the last says %v", made, err)
		g.Expect(err).To(MatchError(ContainSubstring("exceeded quota")))
	})
	harness.Eventually(t, func(g Gomega) {
		testenv.Get(t, g, env, organization)
		g.Expect(reason(organization, v1alpha1.ConditionQuotaExceeded)).To(Equal("QuotaReached/True"))
		g.Expect(reason(organization, v1alpha1.ConditionReady)).To(Equal("Reconciled/True"))
		message := v1alpha1.FindCondition(organization.Status.Conditions, v1alpha1.ConditionQuotaExceeded).Message
		g.Expect(message).To(ContainSubstring("The quota is used up for: findings."))
	})
	harness.Eventually(t, func(g Gomega) {
		events := testenv.List(t, g, env, &eventsv1.EventList{})
		said := 0
		for _, event := range events.Items {
			if event.Regarding.UID == organization.UID && event.Reason == v1alpha1.ReasonQuotaReached {
				said++
			}
		}
		g.Expect(said).To(Equal(1))
	})

	roomAgain := func(change func(*v1alpha1.OrganizationSpec)) {
		t.Helper()
		changeSpec(t, organization, change)
		harness.Eventually(t, func(g Gomega) {
			g.Expect(reason(testenv.Get(t, g, env, organization), v1alpha1.ConditionQuotaExceeded)).To(Equal("absent"))
			finding := builder.Finding(fmt.Sprintf("finding-%d", made)).In(namespace).Project("repo", "project").Build()
			g.Expect(env.Client.Create(t.Context(), finding)).To(Succeed())
		})
		made++
	}
	roomAgain(func(s *v1alpha1.OrganizationSpec) { s.Quotas.Findings = new(int64(made + 2)) })

	// Also while its removal waits.
	changeSpec(t, organization, func(s *v1alpha1.OrganizationSpec) { s.Quotas.Findings = new(int64(made)) })
	harness.Must(t, env.Client.Delete(t.Context(), organization))
	harness.Eventually(t, func(g Gomega) {
		testenv.Get(t, g, env, organization)
		g.Expect(reason(organization, v1alpha1.ConditionReady)).To(Equal("NotEmpty/False"))
		g.Expect(reason(organization, v1alpha1.ConditionQuotaExceeded)).To(Equal("QuotaReached/True"))
	})
	roomAgain(func(s *v1alpha1.OrganizationSpec) { s.Quotas = nil })
}

// Every finding of an import is counted in the ResourceQuota's status: that must cause neither a
// reconcile nor a write of the Organization's status.
func TestCountingWakesNobodyWhileThereIsRoom(t *testing.T) {
	quota := func(limit, used string) *corev1.ResourceQuota {
		name := corev1.ResourceName("count/findings.appsec.dev")
		q := quotaIn("org-x")
		q.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
		q.Spec.Hard = corev1.ResourceList{name: resource.MustParse(limit)}
		q.Status.Used = corev1.ResourceList{name: resource.MustParse(used)}
		return q
	}
	unlabelled := quota("10", "1")
	unlabelled.Labels = nil
	cases := []struct {
		reason        string
		before, after *corev1.ResourceQuota
		want          bool
	}{
		{"one more is used", quota("10", "1"), quota("10", "2"), false},
		{"the last is used", quota("10", "9"), quota("10", "10"), true},
		{"more than all was used, and is", quota("10", "12"), quota("10", "11"), false},
		{"there is room again", quota("10", "10"), quota("10", "9"), true},
		{"the bound was changed", quota("10", "1"), quota("20", "1"), true},
		{"the label was taken off", quota("10", "1"), unlabelled, true},
	}
	for _, tc := range cases {
		harness.Same(t, tc.reason, tc.want, quotaMatters.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}))
	}
}

func TestEachBlockingKindHoldsAnOrganization(t *testing.T) {
	t.Parallel()
	r := &Reconciler{Base: reconcile.Base{Live: env.AsController(t)}}
	at := time.Now().Truncate(time.Second)
	values := map[string]func(namespace string) client.Object{
		"Repository":      func(n string) client.Object { return builder.Repository("x").In(n).Build() },
		"Project":         func(n string) client.Object { return builder.Project("x").In(n).Repository("r").Build() },
		"Finding":         func(n string) client.Object { return builder.Finding("x").In(n).Project("r", "p").Build() },
		"Scan":            func(n string) client.Object { return builder.Scan("x", at).In(n).Project("r", "p").Build() },
		"Review":          func(n string) client.Object { return builder.Review("x").In(n).PullRequest("r", 1).Build() },
		"ReviewIssue":     func(n string) client.Object { return builder.ReviewIssue("x").In(n).Review("v").Build() },
		"TriagePolicy":    func(n string) client.Object { return builder.TriagePolicy("x", "true").In(n).Build() },
		"WebhookEndpoint": func(n string) client.Object { return builder.WebhookEndpoint("x").In(n).Build() },
	}
	// These are worthless without the others.
	worthless := map[string]func(namespace string) client.Object{
		"APIKey":          func(n string) client.Object { return builder.APIKey("x").In(n).Build() },
		"TriageOperation": func(n string) client.Object { return builder.TriageOperation("x", "G1").In(n).Build() },
		"WebhookDelivery": func(n string) client.Object { return builder.WebhookDelivery("x", at).In(n).Build() },
	}
	// So are the last two, which only the controllers may create.
	untried := []string{"Organization", "FindingTrend", "TriageOperationPart"}
	for kind := range env.Scheme.KnownTypes(v1alpha1.GroupVersion) {
		if kube.Resource(kind) != "" && values[kind] == nil && worthless[kind] == nil && !slices.Contains(untried, kind) {
			t.Errorf("does a %s block the removal of an organization? Add it to blockingKinds and values, or to worthless", kind)
		}
	}
	maps.Copy(values, worthless)
	for kind, value := range values {
		name := "holds-" + strings.ToLower(kind)
		s := scopeOf(builder.Organization(name).Build())
		newNamespace(t, s.namespace(), map[string]string{v1alpha1.OrganizationUIDAnnotation: "x"})
		if held, err := r.holds(t.Context(), s); err != nil || held != "" {
			t.Errorf("%s: an empty namespace holds %q (%v)", kind, held, err)
		}
		env.Create(t, value(s.namespace()))
		want := kind + " (a few)"
		if worthless[kind] != nil {
			want = ""
		}
		if held, err := r.holds(t.Context(), s); err != nil || held != want {
			t.Errorf("%s: holds %q (%v), want %q", kind, held, err, want)
		}
		s.Object.Annotations = map[string]string{v1alpha1.RemoveContentsAnnotation: "true"}
		if held, err := r.holds(t.Context(), s); err != nil || held != "" {
			t.Errorf("%s: holds %q (%v), though it may take everything along", kind, held, err)
		}
	}
}

func TestHowManyAreHeldIsReadFromAListOfOneObject(t *testing.T) {
	r := &Reconciler{Base: reconcile.Base{Live: env.AsController(t)}}
	s := scopeOf(builder.Organization("many").Build())
	newNamespace(t, s.namespace(), map[string]string{v1alpha1.OrganizationUIDAnnotation: "x"})
	for i := range 12 {
		env.Create(t, builder.Repository(fmt.Sprintf("repo-%d", i)).In(s.namespace()).Build())
	}
	env.Create(t, builder.WebhookEndpoint("hook").In(s.namespace()).Build())
	held, err := r.holds(t.Context(), s)
	if want := "Repository (tens), WebhookEndpoint (a few)"; err != nil || held != want {
		t.Errorf("holds %q (%v), want %q", held, err, want)
	}
	for n, want := range map[int64]string{1: "a few", 9: "a few", 10: "tens", 99: "tens", 100: "hundreds", 1000: "thousands", 123_456: "tens of thousands or more"} {
		harness.Same(t, fmt.Sprint(n), want, roughly(n))
	}
}

func TestAQuotaOfDeliveriesIsSaidToHoldUpStatuses(t *testing.T) {
	for kind, want := range map[string]bool{"findings": false, "webhookdeliveries": true} {
		s := &scope{Scope: reconcile.NewScope(&v1alpha1.Organization{}), usedUp: []string{kind}}
		s.judgeQuotas()
		message := v1alpha1.FindCondition(s.Status.Conditions, v1alpha1.ConditionQuotaExceeded).Message
		harness.Same(t, message, want, strings.Contains(message, "the status of objects that owe too many does not change"))
	}
}
