package controllertest

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// LegalHold are the labels of objects whose removal RefuseRemovals refuses.
var LegalHold = map[string]string{"legal-hold": "true"}

// RefuseRemovals makes a cluster administrator's admission policy that refuses removals of labelled objects in the
// namespace.
func RefuseRemovals(t *testing.T, env *testenv.Environment, namespace string) {
	t.Helper()
	rule := admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
		Rule: admissionregistrationv1.Rule{
			APIGroups:   []string{v1alpha1.GroupName, "coordination.k8s.io"},
			APIVersions: []string{"*"}, Resources: []string{"findings", "leases", "reviews", "reviewissues"},
		},
	}}
	env.Deny(t, "legal-hold-"+namespace, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			ObjectSelector:    &metav1.LabelSelector{MatchLabels: LegalHold},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ResourceRules:     []admissionregistrationv1.NamedRuleWithOperations{rule},
		},
		Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "a legal hold"}},
	})
	probe := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe", Labels: LegalHold}}
	env.Create(t, probe)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(env.Client.Delete(t.Context(), probe, client.DryRunAll)).To(Satisfy(apierrors.IsInvalid), "the policy is in force")
	})
}
