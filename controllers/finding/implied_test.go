package finding

import (
	"testing"

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// With implied statuses, an open finding is written by its scanner alone, and shows its state nevertheless. Its first
// change is recorded as if the status had been stored before.
func TestAnOpenFindingNeedsNoStoredStatus(t *testing.T) {
	controllertest.Start(t, env, Settings{ImpliedStatuses: true}.SetupWithManager)
	ns, g := env.Namespace(t), NewWithT(t)
	plain, muted := builder.Finding("f-1").In(ns).Build(), builder.Finding("f-2").In(ns).Build()
	env.Create(t, builder.Repository("repo").In(ns).Build(), builder.Project("proj").In(ns).Build(), plain, muted)
	created := plain.ResourceVersion
	mergePatch(t, muted, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	observed(t, muted)

	selected := &v1alpha1.FindingList{}
	harness.Must(t, env.Client.List(t.Context(), selected, client.InNamespace(ns), client.MatchingFields{"status.state": "open"}))
	g.Expect(selected.Items).To(HaveLen(1))
	g.Expect(selected.Items[0].Name).To(Equal(plain.Name))
	g.Expect(selected.Items[0].Status).To(Equal(v1alpha1.FindingStatus{State: "open", UserStatus: "open"}))
	g.Expect(findingstate.IsRecorded(&selected.Items[0])).To(BeTrue())
	g.Expect(selected.Items[0].ResourceVersion).To(Equal(created), "somebody wrote it")

	mergePatch(t, plain, `{"spec":{"closed":{"at":"2026-01-01T00:00:00Z","scanID":"s-2"}}}`)
	observed(t, plain)
	g.Expect(kinds(plain.Status.Transitions)).To(Equal([]v1alpha1.TransitionType{
		v1alpha1.TransitionCreated, v1alpha1.TransitionClosed,
	}))
	g.Expect(plain.Status.State).To(Equal(v1alpha1.FindingStateClosed))
}

// What follows from anything but the creation is stored: a missing project, and what an endpoint may ask for.
func TestAStatusThatSaysMoreIsStored(t *testing.T) {
	controllertest.Start(t, env, Settings{ImpliedStatuses: true}.SetupWithManager)
	without, with := env.Namespace(t), env.Namespace(t)
	astray := builder.Finding("f-1").In(without).Build()
	env.Create(t, astray, builder.WebhookEndpoint("e").In(with).Build())
	asked := builder.Finding("f-1").In(with).Build()
	env.Create(t, builder.Repository("repo").In(with).Build(), builder.Project("proj").In(with).Build(), asked)
	observed(t, astray)
	observed(t, asked)
	harness.Eventually(t, func(g Gomega) {
		reason := v1alpha1.FindCondition(testenv.Get(t, g, env, astray).Status.Conditions, v1alpha1.ConditionReady).Reason
		g.Expect(reason).To(Equal(v1alpha1.ReasonRepositoryNotFound))
	})
}
