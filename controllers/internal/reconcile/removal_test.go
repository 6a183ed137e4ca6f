package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/removal"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// The tests of the package removal that need an API server are here because there is one.

// removes removes a batch of the findings of the project "proj" and returns when to go on.
func removes(t *testing.T, namespace string, limit int64) time.Duration {
	t.Helper()
	base := reconcile.Base{Client: env.Client, Live: env.Client}
	again, err := removal.Batch(t.Context(), base, &v1alpha1.Finding{}, client.ListOptions{
		Namespace: namespace, FieldSelector: fields.OneTermEqualSelector("spec.projectRef.name", "proj"), Limit: limit,
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return again
}

// The API server honours the limit of a deletecollection; otherwise one call would occupy a worker
// until all findings of a project are deleted.
func TestBatchIsBoundedAndSelective(t *testing.T) {
	g, namespace := NewWithT(t), env.Namespace(t)
	const limit, more = 20, 5
	// Sorted before the others, so that only the selector can exclude it.
	findings := []client.Object{builder.Finding("a-other").In(namespace).Project("repo", "other").Build()}
	for i := range limit + more {
		findings = append(findings, builder.Finding(fmt.Sprintf("f-%d", i)).In(namespace).Build())
	}
	env.CreateAtOnce(t, findings...)
	for _, want := range []int{more + 1, 1} {
		g.Expect(removes(t, namespace, limit)).To(And(BeNumerically(">", 0), BeNumerically("<", time.Second)),
			"it was there, so one more look is due")
		g.Expect(env.Names(t, &v1alpha1.FindingList{}, namespace)).To(HaveLen(want))
	}
	g.Expect(removes(t, namespace, limit)).To(BeZero(), "nothing is left")
}

func TestAChildHeldByAnotherFinalizerIsWaitedForSlowly(t *testing.T) {
	g, namespace := NewWithT(t), env.Namespace(t)
	held := builder.Finding("f-1").In(namespace).Build()
	held.Finalizers = []string{"example.com/hold"}
	env.Create(t, held)
	g.Expect(removes(t, namespace, 20)).To(And(BeNumerically(">", 0), BeNumerically("<", time.Second)))

	version := testenv.Get(t, g, env, held).ResourceVersion
	g.Expect(removes(t, namespace, 20)).To(BeNumerically(">=", time.Second))
	g.Expect(testenv.Get(t, g, env, held).ResourceVersion).To(Equal(version), "asking again wrote to the child")
}
