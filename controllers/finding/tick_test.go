package finding

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/policies"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// Nothing changes but the time.
func TestAPolicyThatReadsNowTakesUpAFindingWithoutAWrite(t *testing.T) {
	g, ns, begin := NewWithT(t), env.Namespace(t), time.Now().Truncate(time.Second)
	clock := clocktesting.NewFakeClock(begin)
	controllertest.Start(t, env, func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
		return setUp(ctx, mgr, options, Settings{}, clock)
	})
	policy := builder.TriagePolicy("old", "now - finding.detectedAt >= duration('720h')").In(ns).Build()
	env.Create(t, builder.Repository("repo").In(ns).Build(), builder.Project("proj").In(ns).Build(), policy)
	policy.Status.InForce = &v1alpha1.PolicyInForce{Generation: policy.Generation, Spec: policy.Spec}
	harness.Must(t, env.AsController(t).Status().Update(t.Context(), policy))
	detected := func(name string, since time.Duration) *v1alpha1.Finding {
		return testenv.Create(t, env, builder.Finding(name).In(ns).DetectedAt(begin.Add(-since)).Build())
	}
	judged := func(f *v1alpha1.Finding, is bool) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			testenv.Get(t, g, env, f)
			g.Expect(f.Status.ObservedGeneration).To(Equal(f.Generation))
			g.Expect(f.Status.Verdict != nil).To(Equal(is), f.Name)
		})
	}
	old, older, recent := detected("f-soon", 719*time.Hour), detected("f-old", 721*time.Hour), detected("f-new", time.Hour)
	judged(older, true) // the policy decides by now
	judged(old, false)
	judged(recent, false)
	before := env.Versions(t, policy, older, recent)
	generation := old.Generation

	harness.Eventually(t, func(g Gomega) { g.Expect(clock.HasWaiters()).To(BeTrue(), "the ticker runs") })
	clock.Step(policies.NowInterval)
	judged(old, true)
	g.Expect(old.Generation).To(Equal(generation), "somebody wrote the finding")
	g.Expect(old.Status.UpdatedAt.Time).To(BeTemporally("==", begin.Add(policies.NowInterval)))
	harness.Same(t, "everything else", before, env.Versions(t, policy, older, recent))
}
