package finding

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func kinds(transitions []v1alpha1.Transition) []v1alpha1.TransitionType {
	out := make([]v1alpha1.TransitionType, len(transitions))
	for i := range transitions {
		out[i] = transitions[i].Type
	}
	return out
}

func TestReadyNamesWhatIsMissingAndChangesWhenItComesOrGoes(t *testing.T) {
	storing.Start(t, env)
	ns := env.Namespace(t)
	finding := builder.Finding("f-1").In(ns).Build()
	repository, project := builder.Repository("repo").In(ns).Build(), builder.Project("proj").In(ns).Build()
	reason := func(want string) {
		t.Helper()
		ready := testenv.AwaitReason(t, env, finding, want)
		harness.Same(t, "whether it is ready with "+want, want == v1alpha1.ReasonReconciled, ready.Status == metav1.ConditionTrue)
	}
	env.Create(t, finding)
	reason(v1alpha1.ReasonRepositoryNotFound)
	env.Create(t, repository)
	reason(v1alpha1.ReasonProjectNotFound)
	env.Create(t, project)
	reason(v1alpha1.ReasonReconciled)

	g := NewWithT(t)
	g.Expect(env.Client.Delete(t.Context(), project)).To(Succeed())
	reason(v1alpha1.ReasonProjectNotFound)
	g.Expect(env.Client.Delete(t.Context(), repository)).To(Succeed())
	reason(v1alpha1.ReasonRepositoryNotFound)
}

// A finding that begins to wait at the moment when the awaited object is created must be enqueued.
func TestNoFindingSleepsThroughTheArrivalOfItsProject(t *testing.T) {
	storing.Start(t, env)
	ns := env.Namespace(t)
	env.Create(t, builder.Repository("repo").In(ns).Build())
	const n = 40
	for i := range n {
		project := fmt.Sprintf("proj-%d", i)
		env.Create(t,
			builder.Finding(fmt.Sprintf("f-%d", i)).In(ns).Project("repo", project).Build(),
			builder.Project(project).In(ns).Build())
	}
	harness.Eventually(t, func(g Gomega) {
		list := testenv.List(t, g, env, &v1alpha1.FindingList{}, client.InNamespace(ns))
		g.Expect(list.Items).To(HaveLen(n))
		for _, finding := range list.Items {
			g.Expect(v1alpha1.IsConditionTrue(finding.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue(), finding.Name)
		}
	})
}

func TestStatusSurvivesARestart(t *testing.T) {
	stop := storing.Alone(t, env)
	ns := controllertest.Places(t, env)
	finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Build())
	testenv.AwaitObserved(t, env, finding)
	stop()

	// Times are stored in whole seconds, so the clock must advance to tell them apart.
	clockPasses(t, finding.Status.UpdatedAt.Time)
	env.Patch(t, finding, `{"spec":{"triage":{"userStatus":"active","comments":"real"}}}`)
	written := newestWrite(finding)
	clockPasses(t, written)
	storing.Alone(t, env)
	testenv.AwaitObserved(t, env, finding)
	g := NewWithT(t)
	g.Expect(finding.Status.UpdatedAt.UTC()).To(Equal(written.UTC()), "the time is that of the write, not that of the reconcile")
	g.Expect(kinds(finding.Status.Transitions)).To(Equal([]v1alpha1.TransitionType{
		v1alpha1.TransitionCreated, v1alpha1.TransitionTriaged,
	}), "what happened while no controller ran is recorded, and nothing twice")
}

// clockPasses waits until the clock shows a later second than that time, which is a whole second.
func clockPasses(t *testing.T, at time.Time) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) { g.Expect(time.Since(at)).To(BeNumerically(">=", time.Second)) })
}

// newestWrite returns the time of the last write to the finding's spec, as recorded by the API
// server.
func newestWrite(finding *v1alpha1.Finding) time.Time {
	newest := time.Time{}
	for _, entry := range finding.ManagedFields {
		if entry.Subresource == "" && entry.Time.After(newest) {
			newest = entry.Time.Time
		}
	}
	return newest
}

func TestWorthReconciling(t *testing.T) {
	finding := func(generation int64, reason string) *v1alpha1.Finding {
		f := builder.Finding("f").Build()
		f.Generation = generation
		if reason != "" {
			f.Status.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason}}
		}
		return f
	}
	const waits, ready = v1alpha1.ReasonProjectNotFound, v1alpha1.ReasonReconciled
	cases := []struct {
		reason        string
		before, after *v1alpha1.Finding
		want          bool
	}{
		{"the spec has changed", finding(1, ready), finding(2, ready), true},
		{"a label, or our own write that all is well", finding(1, ""), finding(1, ready), false},
		{"it begins to wait: what it waits for may have come meanwhile", finding(1, ""), finding(1, waits), true},
		{"what was there has gone", finding(1, ready), finding(1, waits), true},
		{"it waits for something else than before", finding(1, v1alpha1.ReasonRepositoryNotFound), finding(1, waits), true},
		{"it waits on", finding(1, waits), finding(1, waits), false},
	}
	worthReconciling := (&Reconciler{}).worthReconciling()
	for _, c := range cases {
		harness.Same(t, c.reason, c.want, worthReconciling.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}))
	}
	if !worthReconciling.Create(event.CreateEvent{Object: finding(1, "")}) {
		t.Error("a new finding is not reconciled")
	}
}

func TestAFindingIsReadyOnceItsRepositoryAndProjectExist(t *testing.T) {
	repository := builder.Repository("repo").Build()
	of := func(repository string) *v1alpha1.Project {
		project := builder.Project("proj").Build()
		project.Spec.RepositoryRef.Name = v1alpha1.ResourceName(repository)
		return project
	}
	cases := []struct {
		reason string
		facts  triagepolicy.Facts
		want   string
	}{
		{"both exist", triagepolicy.Facts{Repository: repository, Project: of("repo")}, v1alpha1.ReasonReconciled},
		{"the project is missing", triagepolicy.Facts{Repository: repository}, v1alpha1.ReasonProjectNotFound},
		{"the repository is missing", triagepolicy.Facts{Project: of("repo")}, v1alpha1.ReasonRepositoryNotFound},
		{"of two the repository comes first", triagepolicy.Facts{}, v1alpha1.ReasonRepositoryNotFound},
		{"the project belongs to another repository", triagepolicy.Facts{Repository: repository, Project: of("other")}, v1alpha1.ReasonProjectInAnotherRepository},
		{"the repository is missing, and the project's is another", triagepolicy.Facts{Project: of("other")}, v1alpha1.ReasonRepositoryNotFound},
	}
	for _, c := range cases {
		c.facts.Finding = builder.Finding("f").Build()
		harness.Same(t, c.reason, c.want, verdict(&c.facts).Reason)
	}
}

func TestAProjectOfAnotherRepositoryKeepsTheFindingFromBeingReady(t *testing.T) {
	storing.Start(t, env)
	ns := env.Namespace(t)
	finding, elsewhere := builder.Finding("f-1").In(ns).Build(), builder.Project("proj").In(ns).Repository("other").Build()
	g := NewWithT(t)
	env.Create(t, finding, builder.Repository("repo").In(ns).Build(), builder.Repository("other").In(ns).Build())
	testenv.AwaitReason(t, env, finding, v1alpha1.ReasonProjectNotFound)
	env.Create(t, elsewhere)
	condition := testenv.AwaitReason(t, env, finding, v1alpha1.ReasonProjectInAnotherRepository)
	g.Expect(condition.Status).To(Equal(metav1.ConditionFalse))
	g.Expect(condition.Message).To(And(
		ContainSubstring(`"proj" belongs to Repository "other"`), ContainSubstring(`names Repository "repo"`), ContainSubstring("delete the finding")))

	version := finding.ResourceVersion
	env.Patch(t, elsewhere, `{"spec":{"displayName":"Another name"}}`)
	marker := builder.Finding("f-2").In(ns).Build() // what is created later is reconciled later
	env.Create(t, marker)
	testenv.AwaitObserved(t, env, marker)
	g.Expect(testenv.Get(t, g, env, finding).ResourceVersion).To(Equal(version), "a project that stays where it is led to a write")

	g.Expect(env.Client.Delete(t.Context(), elsewhere)).To(Succeed())
	env.Create(t, builder.Project("proj").In(ns).Build())
	testenv.AwaitReason(t, env, finding, v1alpha1.ReasonReconciled)
}

func TestCreatedDeletedOrMoved(t *testing.T) {
	project := func(repository string, mutate func(*v1alpha1.Project)) *v1alpha1.Project {
		return builder.Project("proj").Repository(repository).Mutate(mutate).Build()
	}
	same := func(*v1alpha1.Project) {}
	renamed := func(p *v1alpha1.Project) { p.Spec.DisplayName = "Another name" }
	cases := []struct {
		reason string
		after  *v1alpha1.Project
		want   bool
	}{
		{"another name concerns no finding", project("repo", renamed), false},
		{"deleted and created anew in another repository, seen as one update", project("other", same), true},
	}
	for _, c := range cases {
		harness.Same(t, c.reason, c.want, createdDeletedOrMoved.Update(event.UpdateEvent{ObjectOld: project("repo", same), ObjectNew: c.after}))
	}
	if !createdDeletedOrMoved.Create(event.CreateEvent{}) || !createdDeletedOrMoved.Delete(event.DeleteEvent{}) {
		t.Error("a project that comes or goes is passed over")
	}
}
