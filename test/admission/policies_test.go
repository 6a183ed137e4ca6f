package admission_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// decides returns a check that requesters who may decide are allowed, and all others refused. An editor and a
// reporter have every standard verb, so only the admission policy stops them.
func decides(t *testing.T, name who) func(what string, err error) {
	t.Helper()
	return func(what string, err error) {
		t.Helper()
		switch name {
		case triager, admin:
			harness.NoError(t, string(name)+": "+what, err)
		case editor, reporter:
			wantRefusal(t, string(name)+": "+what, err, "needs the verb triage on findings.appsec.dev in this namespace")
		default:
			wantRefusal(t, string(name)+": "+what, err)
		}
	}
}

// An editor and a reporter have every standard verb on policies, so only the admission policy stops them.
func TestWhoMayNotDecideMayNotDecideThroughAPolicy(t *testing.T) {
	c := newCast(t, "policies")
	for _, name := range everyone {
		check := decides(t, name)
		policy := builder.TriagePolicy("p-"+string(name), "true").In(c.namespace).Build()
		check("create", c.as(name).Create(t.Context(), policy.DeepCopy()))
		live := applied(t, builder.TriagePolicy("q-"+string(name), "true").In(c.namespace).Build())
		check("change", sendMergePatch(t, c.as(name), live, fragment{"spec": map[string]any{"priority": 7}}, ""))
		check("label", sendMergePatch(t, c.as(name), live, label, ""))
		check("delete", c.as(name).Delete(t.Context(), live))
	}
}

func TestAPolicyIsSignedByWhoWroteItAndNobodySignsAsAnother(t *testing.T) {
	g, c := NewWithT(t), newCast(t, "policies-signed")
	policy := builder.TriagePolicy("p", "true").In(c.namespace).Build()
	policy.Spec.By = "policy/other"
	harness.Must(t, c.as(triager).Create(t.Context(), policy))
	g.Expect(policy.Spec.By).To(Equal(c.members[triager].username), "the author was taken from the client")
	for _, step := range []struct {
		reason, spec string
		want         who
	}{
		{"without another spec the signature stays", `{"by": "mallory"}`, triager},
		{"nor can it be taken off", `{"by": null}`, triager},
		{"another spec is another author's", `{"priority": 3}`, admin},
		{"also with somebody else's name on it", `{"priority": 4, "by": "mallory"}`, admin},
	} {
		patch := testenv.MergePatch(`{"spec":` + step.spec + `}`)
		harness.Must(t, c.as(admin).Patch(t.Context(), policy, patch))
		g.Expect(policy.Spec.By).To(Equal(c.members[step.want].username), step.reason)
	}
}

// The garbage collector, which does not have the verb triage, must be able to finish foreground deletions and remove
// dependents.
func TestTheGarbageCollectorMayFinishWhatIsDeleted(t *testing.T) {
	g, c := NewWithT(t), newCast(t, "policies-collected")
	policy := testenv.Create(t, env, builder.TriagePolicy("p", "true").In(c.namespace).Build())
	harness.Must(t, env.Client.Delete(t.Context(), policy, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	collector := env.As(t, env.Impersonate(testenv.ServiceAccountUsername("kube-system", "generic-garbage-collector")))
	finalizers := testenv.MergePatch(`{"metadata":{"finalizers":null}}`)
	g.Expect(client.IgnoreNotFound(collector.Patch(t.Context(), policy, finalizers))).To(Succeed())
	g.Expect(env.Gone(t, policy)).To(BeTrue())

	owned := testenv.Create(t, env, builder.TriagePolicy("q", "true").In(c.namespace).Build())
	spec := testenv.MergePatch(`{"spec":{"priority":7}}`)
	wantRefusal(t, "it decides nothing", collector.Patch(t.Context(), owned.DeepCopy(), spec))
	g.Expect(collector.Delete(t.Context(), owned)).To(Succeed())
}

// Kubernetes removes namespaces itself, without the verb triage.
func TestANamespaceThatIsRemovedTakesItsPoliciesAlong(t *testing.T) {
	namespace := testenv.Create(t, env, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-policies-removed"}})
	policy := testenv.Create(t, env, builder.TriagePolicy("p", "true").In(namespace.Name).Build())
	config, err := env.Member(context.Background(), namespace.Name, "remover", newRole(t, "test-editor"))
	harness.Must(t, err)
	remover := env.As(t, config)
	wantRefusal(t, "who may not decide removes a policy", remover.Delete(t.Context(), policy))
	harness.Must(t, env.Client.Delete(t.Context(), namespace))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(client.IgnoreNotFound(remover.Delete(t.Context(), policy.DeepCopy()))).To(Succeed())
		g.Expect(env.Gone(t, policy)).To(BeTrue())
	})
}
