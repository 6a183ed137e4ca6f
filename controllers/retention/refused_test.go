package retention

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
)

// A cluster may refuse removals for good. What is refused is held, and does not stop the rest.
func TestAnObjectWhoseRemovalIsRefusedStopsNoOther(t *testing.T) {
	ns := env.Organization(t, "refused")
	controllertest.RefuseRemovals(t, env, ns)
	long := time.Now().Add(-time.Hour)
	kept := builder.Finding("f-kept").In(ns).Closed(long, "s").Build()
	kept.Labels = controllertest.LegalHold
	other := builder.Finding("f-other").In(ns).Closed(long.Add(time.Minute), "s").Build() // so it comes later
	env.Create(t, kept, other)
	markObserved(t, kept, other)
	r := newReconciler(env.AsController(t), nil, quick)
	r.agenda.change(nil, kept)
	r.agenda.change(nil, other)
	o := builder.Organization("refused").Mutate(func(o *v1alpha1.Organization) {
		o.Status.Namespace, o.Spec.Retention = ns, &v1alpha1.Retention{ClosedFindings: duration(0)}
	}).Build()
	p := r.under(o)
	done, err := r.work(t.Context(), o, p)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(done).To(BeTrue())
	g.Expect(env.Gone(t, kept)).To(BeFalse())
	g.Expect(env.Gone(t, other)).To(BeTrue())
	g.Expect(p.retired).To(Equal(map[shelf]int{closedFindings: 1}))
	g.Expect(p.refused).To(Equal(1))
	g.Expect(p.refusal).To(MatchError(ContainSubstring("a legal hold")))
	g.Expect(r.sleep(o, p)).To(Equal(recheckInterval))
}
