package kinds

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/project"
	"github.com/appsec-dev/findings-operator/controllers/repository"
	"github.com/appsec-dev/findings-operator/controllers/review"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestARepositoryCountsItsOpenFindingsByCategory(t *testing.T) {
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

// An import changes thousands of findings, and a project may have a hundred thousand scans.
func TestAChangeOfAFindingReadsNoScans(t *testing.T) {
	ns := env.Namespace(t)
	var read atomic.Int32
	counting := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		err := c.List(ctx, list, options...)
		if scans, are := list.(*v1alpha1.ScanList); are {
			for _, scan := range scans.Items {
				if scan.Namespace == ns {
					read.Add(1)
				}
			}
		}
		return err
	}}
	repo, proj := builder.Repository("repo").In(ns).Build(), builder.Project("proj").In(ns).Build()
	env.Create(t, repo, proj,
		builder.Scan("s-1", noon).In(ns).Ended(noon.Add(time.Minute), v1alpha1.ScanSucceeded).Build(),
		builder.Scan("s-2", noon).In(ns).OfPullRequest("r-1", 7).Ended(noon.Add(time.Hour), v1alpha1.ScanSucceeded).Build())
	controllertest.Start(t, env, controllertest.Intercept(repository.SetupWithManager, counting),
		controllertest.Intercept(project.SetupWithManager, counting))
	for n := range int32(2) {
		harness.Eventually(t, func(g Gomega) {
			ofRepository, ofProject := testenv.Get(t, g, env, repo).Status, testenv.Get(t, g, env, proj).Status
			g.Expect(ofRepository.LastScannedAt).NotTo(BeNil())
			g.Expect(ofProject.LastScannedAt).NotTo(BeNil())
			g.Expect([]int32{ofRepository.Counts.Findings, ofProject.FindingsCount}).To(Equal([]int32{n, n}))
		})
		harness.Same(t, fmt.Sprintf("scans that were read with %d findings: that of the branch, for repository and project", n), int32(2), read.Load())
		env.Create(t, builder.Finding(fmt.Sprint("f-", n)).In(ns).Build())
	}
}

// Deleting a repository deletes its projects and reviews, and these what they have. While another finalizer holds a
// project, the repository waits and reports what for.
func TestDeletionTakesEverythingOfTheRepositoryAlong(t *testing.T) {
	controllertest.Start(t, env, repository.SetupWithManager, project.SetupWithManager, review.Settings{}.SetupWithManager)
	ns := env.Namespace(t)
	repository, pull := builder.Repository("repo").In(ns).Build(), builder.Review("review").In(ns).Build()
	one, two := builder.Project("one").In(ns).Build(), builder.Project("two").In(ns).Build()
	orphan := builder.Finding("f-orphan").In(ns).Project("repo", "nowhere").Build()
	two.Finalizers = []string{"example.com/hold"}
	env.Create(t, repository, one, two, pull, orphan, builder.Repository("other").In(ns).Build(),
		builder.Project("keep").In(ns).Repository("other").Build(),
		builder.Review("kept").In(ns).PullRequest("other", 1).Build(),
		builder.Finding("f-keep").In(ns).Project("other", "keep").Build(),
		builder.Scan("s-orphan", noon).In(ns).Project("repo", "nowhere").Build(),
		builder.Scan("s-1", noon).In(ns).Project("repo", "one").Build(),
		builder.Scan("s-keep", noon).In(ns).Project("other", "keep").Build(),
		builder.ReviewIssue("i-1").In(ns).Build(), builder.ReviewIssue("i-kept").In(ns).Review("kept").Build())
	for i := range 10 {
		env.Create(t, builder.Finding(fmt.Sprintf("f-%d", i)).In(ns).Project("repo", []string{"one", "two"}[i%2]).Build())
	}
	harness.Eventually(t, func(g Gomega) {
		for _, object := range []client.Object{repository, one, two, pull} {
			g.Expect(testenv.Get(t, g, env, object).GetFinalizers()).To(ContainElement(v1alpha1.CleanupFinalizer))
		}
	})

	g := NewWithT(t)
	g.Expect(env.Client.Delete(t.Context(), repository)).To(Succeed())
	harness.Eventually(t, func(g Gomega) {
		ready := testenv.Ready(t, g, env, repository)
		g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonDeleting))
		g.Expect(ready.Message).To(ContainSubstring("projects"))
		g.Expect(repository.Status.Projects).To(BeNumerically(">", 0), "what is left")
	})
	env.AwaitGone(t, one)
	g.Expect(env.Gone(t, orphan) || env.Gone(t, repository)).To(BeFalse(), "while a project is held, what comes after projects stays")
	release := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`))
	g.Expect(env.Client.Patch(t.Context(), two, release)).To(Succeed())
	env.AwaitGone(t, repository)
	for kept, list := range map[string]client.ObjectList{
		"keep": &v1alpha1.ProjectList{}, "kept": &v1alpha1.ReviewList{}, "f-keep": &v1alpha1.FindingList{}, "s-keep": &v1alpha1.ScanList{},
		"i-kept": &v1alpha1.ReviewIssueList{},
	} {
		g.Expect(env.Names(t, list, ns)).To(ConsistOf(kept))
	}
}
