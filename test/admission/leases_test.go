package admission_test

import (
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// The RBAC rule also covers Leases of nodes and of leader elections; the policy does not allow
// deleting them.
func TestControllersDeleteLeasesOfImportsAlone(t *testing.T) {
	c := newCast(t, "leases")
	for _, tc := range []struct {
		namespace, name string
		allowed         bool
	}{
		{c.namespace, "another", false},
		{testenv.SystemNamespace, "findings-controller", false},
		{testenv.SystemNamespace, "import-like", false},
		{c.namespace, "import-one", true},
		{c.namespace, "review-one", true},
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: tc.name}}
		harness.Must(t, c.as(admin).Create(t.Context(), lease.DeepCopy()))
		// The policy may not be in force yet.
		harness.Eventually(t, func(g Gomega) {
			err := c.as(controller).Delete(t.Context(), lease.DeepCopy(), client.DryRunAll)
			g.Expect(err == nil).To(Equal(tc.allowed), "%s in %s: %v", tc.name, tc.namespace, err)
			g.Expect(err == nil || apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		})
		harness.Must(t, c.as(admin).Delete(t.Context(), lease))
	}
}
