package triagepolicy

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// counting sets up the controller with that much time for a count.
func counting(longest time.Duration) controllertest.Setup {
	return func(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
		r := newReconciler(reconcile.NewBase(mgr))
		r.maxCount = longest
		return r.setUp(mgr, options)
	}
}

func TestAPolicyThatTakesTooLongToCountDoesNotComeIntoForceAndWhatDecidesGoesOn(t *testing.T) {
	stop := controllertest.Start(t, env, finding.Settings{}.SetupWithManager, counting(time.Minute))
	g, r := NewWithT(t), newRoom(t)
	f := r.finds("f-1", "G1")
	decides := r.declares("decides", "finding.ruleID == 'G1'", nil)
	r.is(f, v1alpha1.FindingStateOpenMuted, "decides")
	r.counts(decides, 1, 1, 0, 0, 0, 0)
	stop()

	controllertest.Start(t, env, finding.Settings{}.SetupWithManager, counting(-1))
	other := r.declares("costly", "true", nil)
	r.says(other, v1alpha1.ReasonTooCostly, v1alpha1.ReasonTooCostly)
	g.Expect(testenv.Get(t, g, env, other).Status.InForce).To(BeNil())
	r.counts(decides, 1, 1, 0, 0, 0, 0)
	r.says(decides, v1alpha1.ReasonInForce, v1alpha1.ReasonTooCostly)

	look := r.declares("look", "true", func(s *v1alpha1.TriagePolicySpec) { s.Mode = v1alpha1.PolicyPreview })
	r.says(look, v1alpha1.ReasonPreview, v1alpha1.ReasonTooCostly)

	env.Patch(t, decides, `{"spec":{"match":"finding.ruleID == 'G2'"}}`)
	r.says(decides, v1alpha1.ReasonEarlierGeneration, v1alpha1.ReasonTooCostly)
	env.Patch(t, decides, `{"spec":{"match":"finding.ruleID == 'G1'","set":{"userStatus":"active"}}}`)
	r.says(decides, v1alpha1.ReasonEarlierGeneration, v1alpha1.ReasonTooCostly)
	r.is(f, v1alpha1.FindingStateOpenMuted, "decides")
	env.Patch(t, decides, `{"spec":{"mode":"Preview"}}`)
	r.is(f, v1alpha1.FindingStateOpen, "")
	r.says(decides, v1alpha1.ReasonPreview, v1alpha1.ReasonTooCostly)
}

// A change of findings makes all policies due at the same time.
func TestNoPolicyIsReconciledInVainWhileAnotherIsCounted(t *testing.T) {
	var reconciled, counted atomic.Int32
	r := newRoom(t)
	controllertest.Start(t, env, controllertest.Intercept(counting(time.Minute), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption) error {
			if _, is := object.(*v1alpha1.TriagePolicy); is && key.Namespace == r.namespace {
				reconciled.Add(1)
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*v1alpha1.FindingList); is && slices.Contains(options, client.ListOption(client.InNamespace(r.namespace))) {
				counted.Add(1)
			}
			return c.List(ctx, list, options...)
		},
	}))
	var all []*v1alpha1.TriagePolicy
	for i := range 5 {
		all = append(all, r.declares(fmt.Sprintf("p-%d", i), "true", nil))
	}
	for _, policy := range all {
		r.says(policy, v1alpha1.ReasonNeverMatched, ok)
	}
	r.finds("f-1", "G1")
	harness.Eventually(t, func(g Gomega) {
		for _, policy := range all {
			g.Expect(testenv.Get(t, g, env, policy).Status.Matched).To(BeEquivalentTo(1), policy.Name)
		}
	})
	harness.Eventually(t, func(g Gomega) { g.Expect(reconciled.Load()).To(Equal(counted.Load())) })
}

// slow is a count of evaluations, each of which takes a second.
type slow struct {
	prometheus.Counter
	clock *clocktesting.FakeClock
}

func (s slow) Inc() { s.clock.Step(time.Second) }

// over returns a reconciler that lists these findings and policies.
func over(findings []v1alpha1.Finding, policies ...v1alpha1.TriagePolicy) *Reconciler {
	return newReconciler(reconcile.Base{Client: interceptor.NewClient(nil, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, _ ...client.ListOption) error {
			switch list := into.(type) {
			case *v1alpha1.FindingList:
				list.Items = findings
			case *v1alpha1.TriagePolicyList:
				list.Items = policies
			}
			return nil
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewNotFound(schema.GroupResource{}, "project")
		},
	})})
}

// replaced returns a policy whose costly expression in force was replaced, and a reconciler that has no time for both.
func replaced(mode v1alpha1.PolicyMode) (*Reconciler, *v1alpha1.TriagePolicy) {
	findings := make([]v1alpha1.Finding, 10)
	for i := range findings {
		findings[i] = *fact(i, nil).Finding
	}
	policy := &v1alpha1.TriagePolicy{Spec: v1alpha1.TriagePolicySpec{Match: "true", Mode: mode}}
	policy.Name, policy.Generation = "p", 2
	earlier := policy.Spec
	earlier.Match, earlier.Mode = "finding.class == 'A'", v1alpha1.PolicyApply
	policy.Status.InForce = &v1alpha1.PolicyInForce{Generation: 1, Spec: earlier}
	r := over(findings)
	clock := clocktesting.NewFakeClock(time.Now())
	r.local, r.evaluations, r.maxCount = clock, slow{clock: clock}, 6*time.Second
	return r, policy
}

// after returns the scope of a reconcile after these phases.
func after(t *testing.T, r *Reconciler, policy *v1alpha1.TriagePolicy, phases ...reconcile.Phase[*scope]) *scope {
	t.Helper()
	s := newScope()
	policy.DeepCopyInto(s.Object)
	s.Begin(r.local.Now())
	for _, phase := range phases {
		harness.Must(t, phase(t.Context(), s))
	}
	return s
}

func TestACostlyGenerationThatGoesOutOfForceIsNotCounted(t *testing.T) {
	r, policy := replaced(v1alpha1.PolicyPreview)
	for count := range 2 {
		s := after(t, r, policy, r.compile, r.count)
		harness.Same(t, fmt.Sprintf("count %d is partial", count+1), count == 0, s.partial)
	}
}

func TestACostlyGenerationThatMatchesTheSameIsNotCountedTwice(t *testing.T) {
	r, policy := replaced(v1alpha1.PolicyApply)
	policy.Status.InForce.Spec.Match, policy.Status.InForce.Spec.Priority = policy.Spec.Match, 1
	policy.Spec.MaxFindings = 5
	s := after(t, r, policy, r.compile, r.count)
	harness.Same(t, "matches that the generation in force was counted to have", int32(0), s.earlier.matched)
	for range 2 {
		s = after(t, r, policy, r.compile, r.count)
	}
	harness.Same(t, "the third count is partial", false, s.partial)
	harness.Same(t, "matches of the generation in force", int32(10), s.earlier.matched)
}

// The generation in force is counted beside the declared one, and must not use up its time.
func TestACostlyGenerationInForceDoesNotKeepACheapOneOut(t *testing.T) {
	r, policy := replaced(v1alpha1.PolicyApply)
	for count := range 2 {
		s := after(t, r, policy, r.compile, r.count, r.putInForce)
		if got, complete := s.Object.Status.InForce.Generation, count == 1; (got == 2) != complete || s.partial == complete {
			t.Errorf("count %d: generation %d is in force, and the count is partial: %t", count+1, got, s.partial)
		}
	}
}

// The declared generation is never counted to the end, but the one in force, which decides, is.
func TestACostlyEditLeavesTheGenerationInForceCounted(t *testing.T) {
	for _, tc := range []struct {
		why   string
		limit int32
		kept  string
	}{{"it matches too many", 3, v1alpha1.ReasonTooMany}, {"it takes too long", 0, v1alpha1.ReasonTooCostly}} {
		r, policy := replaced(v1alpha1.PolicyApply)
		policy.Spec.Match, policy.Spec.MaxFindings = "now == now", tc.limit // never remembered
		var s *scope
		for range 2 {
			s = after(t, r, policy, r.compile, r.count, r.putInForce, r.report)
		}
		t.Cleanup(func() { r.metrics.forget(client.ObjectKeyFromObject(policy)) })
		harness.Same(t, tc.why+": the declared stays out", tc.kept, whyNotInForce(&s.Object.Spec, &s.counted, s.Now))
		harness.Same(t, tc.why+": Ready", v1alpha1.ReasonTooCostly, reason(s.Object, v1alpha1.ConditionReady))
		harness.Same(t, tc.why+": the generation in force", int64(1), s.Status.InForce.Generation)
		harness.Same(t, tc.why+": matched, applied", []int32{10, 10}, []int32{s.Status.Matched, s.Status.Applied})
	}
}

// An import changes tens of thousands, and one goroutine serves the events of all organizations.
func TestFindingsThatChangeTogetherCostOneListOfThePolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists, q := 0, &handlertest.Queue{}
		recount := newReconciler(reconcile.Base{Client: interceptor.NewClient(nil, interceptor.Funcs{
			List: func(ctx context.Context, _ client.WithWatch, into client.ObjectList, _ ...client.ListOption) error {
				lists++
				into.(*v1alpha1.TriagePolicyList).Items = []v1alpha1.TriagePolicy{{ObjectMeta: metav1.ObjectMeta{Name: "mute"}}}
				return ctx.Err()
			},
		})}).recount()
		for round := 1; round <= 2; round++ {
			for range 1000 {
				ctx, end := context.WithCancel(t.Context())
				recount.Create(ctx, event.CreateEvent{Object: builder.Finding("f").In("org-a").Build()}, q)
				end() // as that of an informer
			}
			<-time.After(recountDelay)
			synctest.Wait()
			harness.Same(t, "lists", round, lists)
			once := "mute in " + (recountDelay - watch.GatherDelay).String()
			harness.Same(t, "enqueued", slices.Repeat([]string{once}, round), q.Added)
		}
	})
}
