package kinds

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/project"
	"github.com/appsec-dev/findings-operator/controllers/scan"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestCountLeavesOutClosedFindings(t *testing.T) {
	controllertest.Start(t, env, project.SetupWithManager)
	ns := env.Namespace(t)
	project := builder.Project("proj").In(ns).Build()
	first := builder.Finding("f-1").In(ns).Build()
	env.Create(t, builder.Repository("repo").In(ns).Build(), project, first,
		builder.Finding("f-2").In(ns).Triage(v1alpha1.UserStatusMuted, "").Build(),
		builder.Finding("f-3").In(ns).Closed(noon, "s").Build(),
		builder.Finding("f-4").In(ns).Project("repo", "other").Build(),
		builder.Finding("f-5").In(env.Namespace(t)).Build())
	count := func(want int) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			g.Expect(testenv.Get(t, g, env, project).Status.FindingsCount).To(BeEquivalentTo(want))
		})
	}
	count(2)
	env.Patch(t, first, `{"spec":{"closed":{"at":"2026-01-01T00:00:00Z"}}}`)
	count(1)
	env.Patch(t, first, `{"spec":{"closed":null}}`)
	count(2)
	NewWithT(t).Expect(env.Client.Delete(t.Context(), first)).To(Succeed())
	count(1)
}

func TestUserValuesOverrideScannerValues(t *testing.T) {
	controllertest.Start(t, env, project.SetupWithManager)
	ns := env.Namespace(t)
	project := builder.Project("proj").In(ns).Mutate(func(p *v1alpha1.Project) {
		p.Spec.Scanner = v1alpha1.ProjectAssessment{BusinessCriticality: "low", Exposure: "internal", Summary: "A service."}
		p.Spec.User = v1alpha1.ProjectAssessment{BusinessCriticality: "critical"}
	}).Build()
	env.Create(t, builder.Repository("repo").In(ns).Build(), project)
	effective := func(want v1alpha1.ProjectAssessment) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			status := testenv.Get(t, g, env, project).Status
			g.Expect(v1alpha1.ProjectAssessment{
				BusinessCriticality: status.BusinessCriticality, Exposure: status.Exposure, Summary: status.Summary,
			}).To(Equal(want))
			g.Expect(status.UpdatedAt).NotTo(BeNil())
		})
	}
	effective(v1alpha1.ProjectAssessment{BusinessCriticality: "critical", Exposure: "internal", Summary: "A service."})
	env.Patch(t, project, `{"spec":{"user":null}}`)
	effective(v1alpha1.ProjectAssessment{BusinessCriticality: "low", Exposure: "internal", Summary: "A service."})
}

func TestAProjectShowsItsLastScanAndWhenOneLastSucceeded(t *testing.T) {
	controllertest.Start(t, env, project.SetupWithManager, scan.Settings{}.SetupWithManager)
	ns := env.Namespace(t)
	project := builder.Project("proj").In(ns).Build()
	succeeded := builder.Scan("s-2", noon).In(ns).Ended(noon.Add(time.Minute), v1alpha1.ScanSucceeded).Build()
	env.Create(t, builder.Repository("repo").In(ns).Build(), project, succeeded,
		builder.Scan("s-1", noon.Add(-time.Hour)).In(ns).Ended(noon.Add(-time.Minute), v1alpha1.ScanSucceeded).Build(),
		builder.Scan("s-3", noon.Add(time.Hour)).In(ns).Ended(noon.Add(2*time.Hour), v1alpha1.ScanFailed).Build(),
		builder.Scan("s-4", noon.Add(9*time.Hour)).In(ns).Project("repo", "other").Build(),
		builder.Scan("s-5", noon.Add(9*time.Hour)).In(ns).OfPullRequest("r-1", 7).Ended(noon.Add(10*time.Hour), v1alpha1.ScanSucceeded).Build())
	recorded := func(reason string) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			status := testenv.Get(t, g, env, project).Status
			g.Expect(status.LastScan).To(Equal(&v1alpha1.ProjectLastScan{ID: "s-3", Status: v1alpha1.ScanPhaseFailed}), reason)
			g.Expect(status.LastScannedAt).NotTo(BeNil())
			g.Expect(status.LastScannedAt.UTC()).To(Equal(noon.Add(time.Minute)), reason)
		})
	}
	recorded("the last started, and the last that succeeded")

	NewWithT(t).Expect(env.Client.DeleteAllOf(t.Context(), &v1alpha1.Scan{}, client.InNamespace(ns))).To(Succeed())
	env.Patch(t, project, `{"spec":{"owner":"team-red"}}`)
	testenv.AwaitObserved(t, env, project)
	recorded("scans that are retired take nothing back")

	running := builder.Scan("s-6", time.Now()).In(ns).Build()
	last := func(want *v1alpha1.ProjectLastScan) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			g.Expect(testenv.Get(t, g, env, project).Status.LastScan).To(Equal(want))
		})
	}
	env.Create(t, running)
	last(&v1alpha1.ProjectLastScan{ID: "s-6", Status: v1alpha1.ScanPhaseRunning})
	NewWithT(t).Expect(env.Client.Delete(t.Context(), running)).To(Succeed())
	last(nil)
}

func TestReadySaysThatTheRepositoryIsMissing(t *testing.T) {
	controllertest.Start(t, env, project.SetupWithManager)
	ns := env.Namespace(t)
	project := builder.Project("proj").In(ns).Build()
	repository := builder.Repository("repo").In(ns).Build()
	env.Create(t, project)
	testenv.AwaitReason(t, env, project, v1alpha1.ReasonRepositoryNotFound)
	env.Create(t, repository)
	testenv.AwaitReason(t, env, project, v1alpha1.ReasonReconciled)
	NewWithT(t).Expect(env.Client.Delete(t.Context(), repository)).To(Succeed())
	testenv.AwaitReason(t, env, project, v1alpha1.ReasonRepositoryNotFound)
}

func TestDeletionTakesTheProjectsOwnAlongAndNothingElse(t *testing.T) {
	controllertest.Start(t, env, project.SetupWithManager)
	ns := env.Namespace(t)
	project := builder.Project("proj").In(ns).Build()
	env.Create(t, builder.Repository("repo").In(ns).Build(), project,
		builder.Finding("f-other").In(ns).Project("repo", "other").Build(),
		builder.Scan("s-other", noon).In(ns).Project("repo", "other").Build())
	for i := range 30 {
		env.Create(t, builder.Finding(fmt.Sprintf("f-%d", i)).In(ns).Build())
	}
	env.Create(t, builder.Scan("s-1", noon).In(ns).Build())
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, project).Finalizers).To(ConsistOf(v1alpha1.CleanupFinalizer))
	})

	g := NewWithT(t)
	g.Expect(env.Client.Delete(t.Context(), project)).To(Succeed())
	// A running import continues to write for a while.
	for i := range 20 {
		env.Create(t, builder.Finding(fmt.Sprintf("f-late-%d", i)).In(ns).Build())
		if env.Gone(t, project) {
			break
		}
	}
	env.AwaitGone(t, project)

	scans := testenv.List(t, g, env, &v1alpha1.ScanList{}, client.InNamespace(ns))
	g.Expect(scans.Items).To(HaveLen(1))
	g.Expect(scans.Items[0].Name).To(Equal("s-other"))
	left := testenv.List(t, g, env, &v1alpha1.FindingList{}, client.InNamespace(ns))
	for _, finding := range left.Items {
		// A finding created after the last check is left behind.
		g.Expect(finding.Name).To(Or(Equal("f-other"), HavePrefix("f-late-")))
	}
}

// People of an organization may not delete findings, but a project of the same name takes those of a deleted one along.
func TestAProjectCreatedAgainTakesAlongWhatWasLeftBehind(t *testing.T) {
	ns := env.Namespace(t)
	left := []client.Object{builder.Finding("f-left").In(ns).Build(), builder.Scan("s-left", noon).In(ns).Build()}
	again := builder.Project("proj").In(ns).Build()
	env.Create(t, append(left, builder.Repository("repo").In(ns).Build(), again)...)
	controllertest.Start(t, env, project.SetupWithManager)
	testenv.AwaitReady(t, env, again)
	harness.Must(t, env.Client.Delete(t.Context(), again))
	env.AwaitGone(t, left[0], left[1], again)
}

// A cluster's own admission policy may keep a finding for good.
func TestAFindingThatMayNotBeRemovedStopsNoOther(t *testing.T) {
	controllertest.Start(t, env, project.SetupWithManager)
	ns := env.Organization(t, "held")
	controllertest.RefuseRemovals(t, env, ns)
	project, held := builder.Project("proj").In(ns).Build(), builder.Finding("f-0").In(ns).Build()
	held.Labels = controllertest.LegalHold // The first, so that the others come after it.
	env.Create(t, builder.Repository("repo").In(ns).Build(), project, held,
		builder.Finding("f-1").In(ns).Build(), builder.Finding("f-2").In(ns).Build())
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, project).Finalizers).To(ConsistOf(v1alpha1.CleanupFinalizer))
	})
	NewWithT(t).Expect(env.Client.Delete(t.Context(), project)).To(Succeed())
	harness.Eventually(t, func(g Gomega) {
		ready := testenv.Ready(t, g, env, project)
		g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonDeleting))
		g.Expect(ready.Message).To(And(ContainSubstring("remove f-0"), ContainSubstring("a legal hold")))
		left := testenv.List(t, g, env, &v1alpha1.FindingList{}, client.InNamespace(ns), client.MatchingFields{"spec.projectRef.name": "proj"})
		g.Expect(left.Items).To(HaveLen(1))
	})
}
