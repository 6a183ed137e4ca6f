package removal

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

const field = "spec.projectRef.name"

// The API server honours the limit of a deletecollection; otherwise one call would occupy a worker
// until all findings of a project are deleted.
func TestBatchIsBoundedAndSelective(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "removal-"}}
	g.Expect(env.Client.Create(ctx, ns)).To(Succeed())
	const more = 20
	var findings []client.Object
	for i := range batch + more {
		findings = append(findings, builder.Finding(fmt.Sprintf("f-%d", i)).In(ns.Name).Build())
	}
	env.CreateAtOnce(t, findings...)
	// Sorted before the others, so that only the selector can exclude it.
	g.Expect(env.Client.Create(ctx, builder.Finding("a-other").In(ns.Name).Project("repo", "other").Build())).To(Succeed())

	left := func() int {
		list := &v1alpha1.FindingList{}
		g.Expect(env.Client.List(ctx, list, client.InNamespace(ns.Name))).To(Succeed())
		return len(list.Items)
	}
	remover := Remover{Client: env.Client, Reader: env.Client}
	for _, want := range []int{more + 1, 1} {
		again, err := remover.Batch(ctx, &v1alpha1.Finding{}, ns.Name, field, "proj")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(Equal(soon), "it was there, so one more look is due")
		g.Expect(left()).To(Equal(want))
	}
	again, err := remover.Batch(ctx, &v1alpha1.Finding{}, ns.Name, field, "proj")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(BeZero(), "nothing is left")
}

func TestAChildHeldByAnotherFinalizerIsWaitedForSlowly(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "removal-"}}
	g.Expect(env.Client.Create(ctx, ns)).To(Succeed())
	held := builder.Finding("f-1").In(ns.Name).Build()
	held.Finalizers = []string{"example.com/hold"}
	g.Expect(env.Client.Create(ctx, held)).To(Succeed())

	remover := Remover{Client: env.Client, Reader: env.Client}
	again, err := remover.Batch(ctx, &v1alpha1.Finding{}, ns.Name, field, "proj")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(soon))

	g.Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(held), held)).To(Succeed())
	again, err = remover.Batch(ctx, &v1alpha1.Finding{}, ns.Name, field, "proj")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(later))

	version := held.ResourceVersion
	g.Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(held), held)).To(Succeed())
	g.Expect(held.ResourceVersion).To(Equal(version), "asking again wrote to the child")
}
