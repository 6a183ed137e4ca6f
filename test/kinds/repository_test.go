package kinds

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/project"
	"github.com/appsec-dev/findings-operator/controllers/repository"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestCountsByCategory(t *testing.T) {
	controllertest.Start(t, env, repository.SetupWithManager)
	ns := env.Namespace(t)
	repository := builder.Repository("repo").In(ns).Build()
	moves := builder.Finding("f-1").In(ns).Tool("x", v1alpha1.CategoryCode).Build()
	env.Create(t, repository, moves,
		builder.Project("one").In(ns).Build(), builder.Project("two").In(ns).Build(),
		builder.Project("three").In(ns).Repository("other").Build(),
		builder.Finding("f-2").In(ns).Tool("x", v1alpha1.CategoryCode).Build(),
		builder.Finding("f-3").In(ns).Tool("x", v1alpha1.CategoryPackage).Build(),
		builder.Finding("f-4").In(ns).Tool("x", v1alpha1.CategorySecret).Project("repo", "two").Build(),
		builder.Finding("f-5").In(ns).Build(), // without a category
		builder.Finding("f-6").In(ns).Tool("x", v1alpha1.CategoryCode).Closed(noon, "s").Build(),
		builder.Finding("f-7").In(ns).Tool("x", v1alpha1.CategoryCode).Project("other", "proj").Build(),
		builder.Scan("s-1", noon).In(ns).Ended(noon.Add(time.Minute), v1alpha1.ScanSucceeded).Build(),
		builder.Scan("s-2", noon).In(ns).Ended(noon.Add(time.Hour), v1alpha1.ScanFailed).Build(),
		builder.Scan("s-3", noon).In(ns).OfPullRequest("r-1", 7).Ended(noon.Add(time.Hour), v1alpha1.ScanSucceeded).Build())

	counted := func(want v1alpha1.RepositoryCounts) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			status := testenv.Get(t, g, env, repository).Status
			g.Expect(status.Counts).To(Equal(want))
			g.Expect(status.Projects).To(BeEquivalentTo(2))
			g.Expect(status.LastScannedAt).NotTo(BeNil())
			g.Expect(status.LastScannedAt.UTC()).To(Equal(noon.Add(time.Minute)), "the last that succeeded")
			g.Expect(v1alpha1.IsConditionTrue(status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
		})
	}
	counted(v1alpha1.RepositoryCounts{Findings: 5, Code: 2, Package: 1, Secret: 1})

	env.Patch(t, moves, `{"spec":{"category":"Secret"}}`)
	counted(v1alpha1.RepositoryCounts{Findings: 5, Code: 1, Package: 1, Secret: 2})
}

func TestDeletionTakesEverythingOfTheRepositoryAlong(t *testing.T) {
	controllertest.Start(t, env, repository.SetupWithManager, project.SetupWithManager)
	ns := env.Namespace(t)
	repository := builder.Repository("repo").In(ns).Build()
	env.Create(t, repository, builder.Repository("other").In(ns).Build(),
		builder.Project("one").In(ns).Build(), builder.Project("two").In(ns).Build(),
		builder.Project("keep").In(ns).Repository("other").Build(),
		builder.Finding("f-keep").In(ns).Project("other", "keep").Build(),
		builder.Finding("f-orphan").In(ns).Project("repo", "nowhere").Build(),
		builder.Scan("s-orphan", noon).In(ns).Project("repo", "nowhere").Build(),
		builder.Scan("s-1", noon).In(ns).Project("repo", "one").Build(),
		builder.Scan("s-keep", noon).In(ns).Project("other", "keep").Build())
	for i := range 10 {
		env.Create(t, builder.Finding(fmt.Sprintf("f-%d", i)).In(ns).Project("repo", []string{"one", "two"}[i%2]).Build())
	}
	g := NewWithT(t)
	harness.Eventually(t, func(g Gomega) {
		projects := &v1alpha1.ProjectList{}
		g.Expect(env.Client.List(t.Context(), projects, client.InNamespace(ns))).To(Succeed())
		for _, p := range projects.Items {
			g.Expect(p.Finalizers).To(ConsistOf(v1alpha1.CleanupFinalizer))
		}
		g.Expect(testenv.Get(t, g, env, repository).Finalizers).To(ConsistOf(v1alpha1.CleanupFinalizer))
	})

	g.Expect(env.Client.Delete(t.Context(), repository)).To(Succeed())
	env.AwaitGone(t, repository)
	g.Expect(env.Names(t, &v1alpha1.ProjectList{}, ns)).To(ConsistOf("keep"))
	g.Expect(env.Names(t, &v1alpha1.FindingList{}, ns)).To(ConsistOf("f-keep"))
	g.Expect(env.Names(t, &v1alpha1.ScanList{}, ns)).To(ConsistOf("s-keep"))
}

// While another finalizer holds a project, the repository waits and reports what for.
func TestDeletionWaitsForItsProjectsAndSaysSo(t *testing.T) {
	controllertest.Start(t, env, repository.SetupWithManager, project.SetupWithManager)
	ns := env.Namespace(t)
	repository := builder.Repository("repo").In(ns).Build()
	held := builder.Project("held").In(ns).Build()
	held.Finalizers = []string{"example.com/hold"}
	env.Create(t, repository, held)
	harness.Eventually(t, func(g Gomega) { g.Expect(testenv.Get(t, g, env, repository).Finalizers).NotTo(BeEmpty()) })

	g := NewWithT(t)
	g.Expect(env.Client.Delete(t.Context(), repository)).To(Succeed())
	harness.Eventually(t, func(g Gomega) {
		ready := testenv.Ready(t, g, env, repository)
		g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonDeleting))
		g.Expect(ready.Message).To(ContainSubstring("projects"))
		g.Expect(repository.Status.Projects).To(BeEquivalentTo(1), "what is left")
	})
	g.Expect(env.Client.Patch(t.Context(), held, client.RawPatch(types.JSONPatchType,
		[]byte(`[{"op":"remove","path":"/metadata/finalizers"}]`)))).To(Succeed())
	env.AwaitGone(t, repository)
}
