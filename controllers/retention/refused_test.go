package retention

import (
	"testing"
	"time"

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// legalHold are the labels of objects whose removal refuseRemovals refuses.
var legalHold = map[string]string{"legal-hold": "true"}

// refuseRemovals makes a cluster administrator's admission policy that refuses removals of labelled objects in the
// namespace.
func refuseRemovals(t *testing.T, namespace string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "legal-hold-" + namespace}
	rule := admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
		Rule: admissionregistrationv1.Rule{
			APIGroups:   []string{v1alpha1.GroupName, "coordination.k8s.io"},
			APIVersions: []string{"*"}, Resources: []string{"findings", "leases"},
		},
	}}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta}
	policy.Spec = admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			ObjectSelector:    &metav1.LabelSelector{MatchLabels: legalHold},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ResourceRules:     []admissionregistrationv1.NamedRuleWithOperations{rule},
		},
		Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "a legal hold"}},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta}
	binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}
	env.Create(t, policy, binding)
	probe := builder.Finding("f-probe").In(namespace).Build()
	probe.Labels = legalHold
	env.Create(t, probe)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(env.Client.Delete(t.Context(), probe, client.DryRunAll)).To(Satisfy(apierrors.IsInvalid), "the policy is in force")
	})
}

// A cluster may refuse removals for good. What is refused is held, and does not stop the rest.
func TestAnObjectWhoseRemovalIsRefusedStopsNoOther(t *testing.T) {
	ns := env.Organization(t, "refused")
	refuseRemovals(t, ns)
	long := time.Now().Add(-time.Hour)
	kept := builder.Finding("f-kept").In(ns).Closed(long, "s").Build()
	kept.Labels = legalHold
	other := builder.Finding("f-other").In(ns).Closed(long.Add(time.Minute), "s").Build() // so it is looked at later
	env.Create(t, kept, other)
	told(t, kept, other)
	r := newReconciler(env.AsController(t), nil, quick)
	r.agenda.change(nil, kept)
	r.agenda.change(nil, other)
	o := builder.Organization("refused").Mutate(func(o *v1alpha1.Organization) {
		o.Status.Namespace, o.Spec.Retention = ns, &v1alpha1.Retention{ClosedFindings: duration(0)}
	}).Build()
	p := newPass()
	done, err := r.work(t.Context(), o, p)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(done).To(BeTrue())
	g.Expect(env.Gone(t, kept)).To(BeFalse())
	g.Expect(env.Gone(t, other)).To(BeTrue())
	g.Expect(p.retired).To(Equal(map[shelf]int{closedFindings: 1}))
	g.Expect(p.refused).To(Equal(1))
	g.Expect(p.refusal).To(MatchError(ContainSubstring("a legal hold")))
	g.Expect(r.sleep(o, p)).To(Equal(lookAgain))
}
