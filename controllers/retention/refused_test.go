package retention

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
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
	r.Live = r.Client
	r.agenda.change(nil, kept)
	r.agenda.change(nil, other)
	setRetention(t, "refused", v1alpha1.Retention{ClosedFindings: duration(0)})
	g := NewWithT(t)
	o := testenv.Get(t, g, env, builder.Organization("refused").Build())
	p := r.under(o)
	done, err := r.work(t.Context(), o, p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(done).To(BeTrue())
	g.Expect(env.Gone(t, kept)).To(BeFalse())
	g.Expect(env.Gone(t, other)).To(BeTrue())
	g.Expect(p.retired).To(Equal(map[shelf]int{closedFindings: 1}))
	g.Expect(p.notRemoved).To(Equal(1))
	g.Expect(p.lastError).To(MatchError(ContainSubstring("a legal hold")))
	g.Expect(r.sleep(o, p)).To(Equal(recheckInterval))
}

// A cluster's own webhook for some objects may be down; if every removal fails, the API server itself is in trouble.
func TestObjectsWhoseRemovalFailsStopNoOther(t *testing.T) {
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusNotFound, Message: `admission webhook "hold.example.org" denied the request: a legal hold`,
	}}
	broken := apierrors.NewInternalError(errors.New("failed calling webhook"))
	for reason, tc := range map[string]struct {
		// Each nth removal ends with the error.
		nth      int
		err      error
		takes    time.Duration // until it is known
		tried    []int         // after each turn
		failed   int
		complete bool
		others   int   // the turn in which a removal of another kind is tried
		pauses   []int // the turns after which there is a pause
	}{
		"some fail": {nth: 2, err: broken, tried: []int{25}, failed: 12, complete: true, others: 1},
		"all are slow": {
			nth: 1, err: broken, takes: maxFailing / 4, tried: []int{5, 10}, failed: 10, others: 2, pauses: []int{1},
		},
		"all fail":             {nth: 1, err: broken, tried: []int{10, 20, 25}, failed: 25, complete: true, others: 1, pauses: []int{2}},
		"a webhook denies all": {nth: 1, err: denied, tried: []int{25}, failed: 25, complete: true, others: 1},
		"some time out":        {nth: 20, err: broken, takes: 10 * time.Second, tried: []int{20, 25}, failed: 1, complete: true, others: 2},
		"all time out": {
			nth: 1, err: broken, takes: 10 * time.Second, tried: []int{1, 2, 3}, failed: 3, others: 2, pauses: []int{1, 3},
		},
		"no answer to the first": {nth: 1, err: errors.New("connection refused"), tried: []int{1, 2}, pauses: []int{1, 2}},
	} {
		tried, turns, others := 0, 0, 0
		clock := clocktesting.NewFakePassiveClock(noon.Add(time.Hour))
		stored := map[string]*v1alpha1.Finding{}
		other := operation(func(o *v1alpha1.TriageOperation) {
			o.Status.Phase, o.Status.CompletedAt = v1alpha1.OperationCompleted, new(v1alpha1.NewTime(noon))
		})
		r := newReconciler(interceptor.NewClient(nil, interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
				switch into := into.(type) {
				case *v1alpha1.TriageOperation:
					other.DeepCopyInto(into)
				case *v1alpha1.Finding:
					stored[key.Name].DeepCopyInto(into)
				}
				return nil
			},
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
			Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
				if _, is := object.(*v1alpha1.TriageOperation); is {
					others = turns
					return nil
				}
				if tried++; tried%tc.nth == 0 {
					clock.SetTime(clock.Now().Add(tc.takes))
					return tc.err
				}
				return nil
			},
		}), nil, Settings{Rate: quick.Rate, Clock: clock})
		r.Live = r.Client
		for i := range 25 {
			f := finding(func(f *v1alpha1.Finding) { f.Name = fmt.Sprintf("f-%02d", i) })
			stored[f.Name] = f
			r.agenda.change(nil, f)
		}
		r.agenda.change(nil, other)
		o := builder.Organization("x").Mutate(func(o *v1alpha1.Organization) {
			o.Status.Namespace = "org-x"
			o.Spec.Retention = &v1alpha1.Retention{ClosedFindings: duration(0), FinishedOperations: duration(0)}
		}).Build()
		p, done, got, pauses := r.under(o), false, []int(nil), []int(nil)
		for range tc.tried {
			turns++
			var err error
			if done, err = r.work(t.Context(), o, p); err != nil {
				pauses = append(pauses, turns)
			}
			got = append(got, tried)
		}
		harness.Same(t, reason+": the turns after which there is a pause", tc.pauses, pauses)
		harness.Same(t, reason+": the turn that tries a removal of another kind", tc.others, others)
		harness.Same(t, reason+": removals tried after each turn", tc.tried, got)
		harness.Same(t, reason+": the pass is complete", tc.complete, done)
		harness.Same(t, reason+": removals that failed", tc.failed, p.notRemoved)
	}
}
