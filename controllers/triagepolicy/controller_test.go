package triagepolicy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// room is a namespace with a repository and a project, with findings and policies in it.
type room struct {
	t         *testing.T
	namespace string
}

func newRoom(t *testing.T) room {
	t.Helper()
	return room{t, controllertest.Places(t, env)}
}

// running returns a room in which all controllers run. The test is parallel to others.
func running(t *testing.T) room {
	t.Helper()
	shared.Start(t, env)
	return newRoom(t)
}

// finds creates a finding with that rule.
func (r room) finds(name, rule string) *v1alpha1.Finding {
	r.t.Helper()
	return testenv.Create(r.t, env, r.finding(name, rule))
}

func (r room) finding(name, rule string) *v1alpha1.Finding {
	return builder.Finding(name).In(r.namespace).Mutate(func(f *v1alpha1.Finding) { f.Spec.RuleID = rule }).Build()
}

// findsMany creates that many findings with the rule G1, and waits until each is recorded.
func (r room) findsMany(n int) {
	r.t.Helper()
	many := make([]client.Object, n)
	for i := range many {
		many[i] = r.finding(fmt.Sprintf("f-%03d", i), "G1")
	}
	env.CreateAtOnce(r.t, many...)
	r.recorded(1)
}

// recorded waits until the newest transition of each finding has that seq.
func (r room) recorded(seq int64) []v1alpha1.Finding {
	r.t.Helper()
	list := &v1alpha1.FindingList{}
	harness.Eventually(r.t, func(g Gomega) {
		testenv.List(r.t, g, env, list, client.InNamespace(r.namespace))
		others := 0
		for i := range list.Items {
			if findingstate.History(&list.Items[i].Status).LastSeq() != seq {
				others++
			}
		}
		g.Expect(others).To(BeZero(), "findings whose newest transition is another than %d", seq)
	})
	return list.Items
}

func (r room) declares(name, match string, change func(*v1alpha1.TriagePolicySpec)) *v1alpha1.TriagePolicy {
	r.t.Helper()
	if change == nil {
		change = func(*v1alpha1.TriagePolicySpec) {}
	}
	return testenv.Create(r.t, env, builder.TriagePolicy(name, match).In(r.namespace).Spec(change).Build())
}

// is waits until the finding has that state and the verdict of that policy; "" for no verdict.
func (r room) is(f *v1alpha1.Finding, state v1alpha1.FindingState, policy string) {
	r.t.Helper()
	harness.Eventually(r.t, func(g Gomega) {
		testenv.Get(r.t, g, env, f)
		got := ""
		if v := f.Status.Verdict; v != nil {
			got = string(v.Policy)
		}
		g.Expect([]any{f.Status.State, got}).To(Equal([]any{state, policy}), f.Name)
		g.Expect(f.Status.ObservedGeneration).To(Equal(f.Generation))
	})
}

// says waits until the policy's conditions have these reasons.
func (r room) says(policy *v1alpha1.TriagePolicy, inForce, ready string) {
	r.t.Helper()
	harness.Eventually(r.t, func(g Gomega) {
		testenv.Get(r.t, g, env, policy)
		g.Expect(policy.Status.ObservedGeneration).To(Equal(policy.Generation))
		g.Expect(reason(policy, v1alpha1.ConditionInForce)).To(Equal(inForce))
		g.Expect(reason(policy, v1alpha1.ConditionReady)).To(Equal(ready))
	})
}

func reason(policy *v1alpha1.TriagePolicy, kind string) string {
	condition := v1alpha1.FindCondition(policy.Status.Conditions, kind)
	if condition == nil {
		return ""
	}
	return condition.Reason
}

// counts waits until the status has these counts: matched, applied, would apply, shadowed, overridden, failed.
func (r room) counts(policy *v1alpha1.TriagePolicy, want ...int32) {
	r.t.Helper()
	harness.Eventually(r.t, func(g Gomega) {
		s := testenv.Get(r.t, g, env, policy).Status
		g.Expect([]int32{s.Matched, s.Applied, s.WouldApply, s.Shadowed, s.Overridden, s.Failed}).To(Equal(want), policy.Name)
	})
}

func happened(f *v1alpha1.Finding) (out []string) {
	for _, t := range f.Status.Transitions {
		out = append(out, strings.TrimSpace(strings.Join([]string{string(t.Type), t.From, t.To, strings.TrimPrefix(t.By, "policy/")}, " ")))
	}
	return out
}

const ok = v1alpha1.ReasonReconciled

// A finalizer of another program may hold it for long.
func TestAPolicyThatIsBeingDeletedIsNotCounted(t *testing.T) {
	r := running(t)
	policy := builder.TriagePolicy("held", "finding.ruleID == 'G1'").In(r.namespace).Build()
	policy.Finalizers = []string{"example.com/hold"}
	env.Create(t, policy)
	counted := func() bool {
		theMetrics.mu.Lock()
		defer theMetrics.mu.Unlock()
		_, is := theMetrics.policies[client.ObjectKeyFromObject(policy)]
		return is
	}
	harness.Eventually(t, func(g Gomega) { g.Expect(counted()).To(BeTrue()) })
	harness.Must(t, env.Client.Delete(t.Context(), policy))
	harness.Eventually(t, func(g Gomega) { g.Expect(counted()).To(BeFalse()) })
	testenv.Change(t, env, policy, func(p *v1alpha1.TriagePolicy) { p.Finalizers = nil })
}

func TestAPersonWinsOverAPolicyAndThePolicyOverNothing(t *testing.T) {
	g, r := NewWithT(t), running(t)
	f := r.finds("f-1", "G1")
	r.is(f, v1alpha1.FindingStateOpen, "")

	policy := r.declares("mute", "finding.ruleID == 'G1'", func(s *v1alpha1.TriagePolicySpec) { s.Set.Comment = "not here" })
	r.is(f, v1alpha1.FindingStateOpenMuted, "mute")
	g.Expect(f.Spec.Triage.UserStatus).To(Equal(v1alpha1.UserStatusOpen), "the policy wrote a person's decision")
	g.Expect(f.Status.UserStatus).To(Equal(v1alpha1.UserStatusOpen), "userStatus is the person's alone")
	g.Expect(*f.Status.Verdict).To(Equal(v1alpha1.FindingVerdict{
		Policy: "mute", UserStatus: "muted", Reason: v1alpha1.DecisionUsedInTests, Comment: "not here",
		By: policy.Spec.By, Since: *f.Status.UpdatedAt,
	}))
	g.Expect(policy.Spec.By).NotTo(BeEmpty(), "the policy is signed")
	r.says(policy, v1alpha1.ReasonInForce, ok)
	r.counts(policy, 1, 1, 0, 0, 0, 0)
	g.Expect(policy.Status.Samples).To(Equal([]v1alpha1.ResourceName{"f-1"}))

	env.Patch(t, f, `{"spec":{"triage":{"userStatus":"active"}}}`)
	declared := f.Spec.Triage
	r.is(f, v1alpha1.FindingStateOpen, "")
	g.Expect(f.Spec.Triage).To(Equal(declared), "the person's decision was touched")
	r.counts(policy, 1, 0, 0, 0, 1, 0)

	env.Patch(t, f, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	r.is(f, v1alpha1.FindingStateOpenMuted, "")
	r.counts(policy, 1, 0, 0, 0, 0, 0)

	env.Patch(t, f, `{"spec":{"triage":{"userStatus":"open"}}}`)
	r.is(f, v1alpha1.FindingStateOpenMuted, "mute")

	harness.Must(t, env.Client.Delete(t.Context(), policy))
	r.is(f, v1alpha1.FindingStateOpen, "")
	g.Expect(happened(f)).To(Equal([]string{
		"created  open scanner/", "judged open muted mute", "triaged open active " + declared.By, "triaged active muted " + declared.By,
		"triaged muted open " + declared.By, "judged open muted mute", "judged muted open mute",
	}), "the history keeps all")
	for _, transition := range f.Status.Transitions {
		if transition.Type == v1alpha1.TransitionJudged {
			g.Expect(transition.By).To(Equal("policy/mute"))
			g.Expect(transition.Author).To(Equal(policy.Spec.By), "who wrote the policy is in the history")
		}
	}
}

func TestAPolicyThatChangesNothingWritesNothing(t *testing.T) {
	g, r := NewWithT(t), running(t)
	muted, other := r.finds("f-1", "G1"), r.finds("f-2", "G2")
	r.declares("mute", "finding.ruleID == 'G1'", nil)
	r.is(muted, v1alpha1.FindingStateOpenMuted, "mute")
	r.is(other, v1alpha1.FindingStateOpen, "")
	before := env.Versions(t, muted, other)

	second := r.declares("same", "finding.ruleID == 'G1'", nil)
	r.says(second, v1alpha1.ReasonShadowed, ok)
	r.counts(second, 1, 0, 0, 1, 0, 0)
	g.Expect(second.Status.ShadowedBy).To(Equal([]v1alpha1.ResourceName{"mute"}))
	quiet := second.ResourceVersion
	marker := r.finds("f-3", "G2") // a later object is reconciled later
	r.is(marker, v1alpha1.FindingStateOpen, "")
	harness.Same(t, "the findings", before, env.Versions(t, muted, other))

	// The policies are evaluated again once the finding is counted, with the same results.
	third := r.declares("z", "finding.ruleID == 'G2'", nil)
	r.counts(third, 2, 2, 0, 0, 0, 0)
	g.Expect(testenv.Get(t, g, env, second).ResourceVersion).To(Equal(quiet), "the same counts were written again")
}

func TestAPolicyIsShadowedByAnotherThatIsDeclaredLater(t *testing.T) {
	g, r := NewWithT(t), running(t)
	f := r.finds("f-1", "G1")
	low := r.declares("a-mutes", "finding.ruleID == 'G1'", nil)
	r.is(f, v1alpha1.FindingStateOpenMuted, "a-mutes")
	r.declares("z-confirms", "finding.ruleID.startsWith('G')", func(s *v1alpha1.TriagePolicySpec) {
		s.Priority, s.Set = 5, v1alpha1.PolicyDecision{UserStatus: "active"}
	})
	r.is(f, v1alpha1.FindingStateOpen, "z-confirms")
	r.says(low, v1alpha1.ReasonShadowed, ok)
	g.Expect(low.Status.ShadowedBy).To(Equal([]v1alpha1.ResourceName{"z-confirms"}))
}

func TestATypoKeepsTheLastGenerationInForce(t *testing.T) {
	g, r := NewWithT(t), running(t)
	f := r.finds("f-1", "G1")
	policy := r.declares("mute", "finding.ruleID == 'G1'", nil)
	r.is(f, v1alpha1.FindingStateOpenMuted, "mute")
	r.says(policy, v1alpha1.ReasonInForce, ok)

	env.Patch(t, policy, `{"spec":{"match":"true &&\n  finding.rulID == 'G1'"}}`)
	r.says(policy, v1alpha1.ReasonEarlierGeneration, v1alpha1.ReasonNotCompiled)
	g.Expect(v1alpha1.FindCondition(policy.Status.Conditions, v1alpha1.ConditionCompiled).Message).To(
		ContainSubstring("line 2, column 10: undefined field 'rulID'"))
	g.Expect(policy.Status.InForce.Generation).To(BeEquivalentTo(1))
	another := r.finds("f-2", "G1")
	r.is(another, v1alpha1.FindingStateOpenMuted, "mute")
	r.is(f, v1alpha1.FindingStateOpenMuted, "mute")
	r.counts(policy, 2, 2, 0, 0, 0, 0)

	env.Patch(t, policy, `{"spec":{"mode":"Preview"}}`) // a user who turns it off intends that, despite the typo
	r.is(f, v1alpha1.FindingStateOpen, "")
	env.Patch(t, policy, `{"spec":{"mode":"Apply","match":"finding.ruleID == 'G2'"}}`)
	r.is(f, v1alpha1.FindingStateOpen, "")
	r.says(policy, v1alpha1.ReasonNeverMatched, ok)

	never := r.declares("never", "finding.rulID == 'G1'", nil)
	r.says(never, v1alpha1.ReasonNotCompiled, v1alpha1.ReasonNotCompiled)
	g.Expect(never.Status.InForce).To(BeNil())
}

func TestTooManyStopThePolicy(t *testing.T) {
	g, r := NewWithT(t), running(t)
	for i := range 3 {
		r.is(r.finds(fmt.Sprintf("f-%d", i), "G1"), v1alpha1.FindingStateOpen, "")
	}
	first := r.finds("g-1", "G2")
	two := func(s *v1alpha1.TriagePolicySpec) { s.MaxFindings = 2 }
	wide := r.declares("wide", "finding.ruleID == 'G1'", two)
	r.says(wide, v1alpha1.ReasonTooMany, v1alpha1.ReasonTooMany)
	r.counts(wide, 3, 0, 3, 0, 0, 0)

	narrow := r.declares("narrow", "finding.ruleID == 'G2'", two)
	r.is(first, v1alpha1.FindingStateOpenMuted, "narrow")
	env.Patch(t, narrow, `{"spec":{"match":"true"}}`)
	r.says(narrow, v1alpha1.ReasonEarlierGeneration, v1alpha1.ReasonTooMany)
	r.is(first, v1alpha1.FindingStateOpenMuted, "narrow")
	env.Patch(t, narrow, `{"spec":{"match":"finding.ruleID == 'G2'"}}`)
	r.says(narrow, v1alpha1.ReasonInForce, ok)
	for i := range 2 {
		r.finds(fmt.Sprintf("h-%d", i), "G2")
	}
	r.says(narrow, v1alpha1.ReasonTooMany, v1alpha1.ReasonTooMany)
	r.is(first, v1alpha1.FindingStateOpen, "")
	g.Expect(narrow.Status.InForce).To(BeNil())
	harness.Must(t, env.Client.Delete(t.Context(), builder.Finding("h-1").In(r.namespace).Build()))
	r.counts(narrow, 2, 0, 2, 0, 0, 0)
	g.Expect(narrow.Status.InForce).To(BeNil(), "it comes back only once well below its limit")
	env.Patch(t, narrow, `{"spec":{"maxFindings":3}}`)
	r.is(first, v1alpha1.FindingStateOpenMuted, "narrow")
}

func TestAPreviewWritesNothingToFindings(t *testing.T) {
	g, r := NewWithT(t), running(t)
	f, decided := r.finds("f-1", "G1"), r.finds("f-2", "G1")
	env.Patch(t, decided, `{"spec":{"triage":{"userStatus":"active"}}}`)
	r.is(f, v1alpha1.FindingStateOpen, "")
	r.is(decided, v1alpha1.FindingStateOpen, "")
	before := env.Versions(t, f, decided)
	policy := r.declares("look", "finding.ruleID == 'G1'", func(s *v1alpha1.TriagePolicySpec) { s.Mode = "" })
	r.counts(policy, 2, 0, 1, 0, 1, 0)
	r.says(policy, v1alpha1.ReasonPreview, ok)
	g.Expect(policy.Status.Samples).To(Equal([]v1alpha1.ResourceName{"f-1", "f-2"}))
	marker := r.finds("f-3", "G2")
	r.is(marker, v1alpha1.FindingStateOpen, "")
	harness.Same(t, "the findings", before, env.Versions(t, f, decided))
}

func TestAFailingEvaluationIsShownAndStopsNoOtherPolicy(t *testing.T) {
	g, r := NewWithT(t), running(t)
	failing := r.declares("a-fails", "finding.score < 4.0", func(s *v1alpha1.TriagePolicySpec) { s.Priority = 1000 })
	r.declares("b-mutes", "finding.ruleID == 'G1'", nil)
	f := r.finds("f-1", "G1")
	r.is(f, v1alpha1.FindingStateOpenMuted, "b-mutes")
	r.counts(failing, 0, 0, 0, 0, 0, 1)
	g.Expect(*failing.Status.Failure).To(Equal(v1alpha1.PolicyFailure{Finding: "f-1", Message: "no such key: score"}))
	inForce := v1alpha1.FindCondition(failing.Status.Conditions, v1alpha1.ConditionInForce)
	g.Expect(inForce.Message).To(ContainSubstring("see status.failure"))
}

func TestAProjectsFactsAreFactsOfItsFindings(t *testing.T) {
	r := running(t)
	f := r.finds("f-1", "G1")
	r.declares("payments", "project.owner == 'payments'", nil)
	r.is(f, v1alpha1.FindingStateOpen, "")
	project := builder.Project("proj").In(r.namespace).Build()
	env.Patch(t, project, `{"spec":{"owner":"payments"}}`)
	r.is(f, v1alpha1.FindingStateOpenMuted, "payments")
	env.Patch(t, project, `{"spec":{"owner":"others"}}`)
	r.is(f, v1alpha1.FindingStateOpen, "")
}

func TestPoliciesDecideInTheirOwnNamespaceAlone(t *testing.T) {
	r := running(t)
	other := newRoom(t)
	r.declares("mute", "true", nil)
	f, elsewhere := r.finds("f-1", "G1"), other.finds("f-1", "G1")
	r.is(f, v1alpha1.FindingStateOpenMuted, "mute")
	other.is(elsewhere, v1alpha1.FindingStateOpen, "")
}

func TestARestartKeepsVerdictsAndWritesNothing(t *testing.T) {
	stop := shared.Alone(t, env)
	r := newRoom(t)
	f := r.finds("f-1", "G1")
	policy, other := r.declares("mute", "finding.ruleID == 'G1'", nil), r.declares("other", "finding.ruleID == 'G2'", nil)
	r.is(f, v1alpha1.FindingStateOpenMuted, "mute")
	r.counts(policy, 1, 1, 0, 0, 0, 0)
	r.says(policy, v1alpha1.ReasonInForce, ok)
	r.says(other, v1alpha1.ReasonNeverMatched, ok)
	g := NewWithT(t)
	g.Expect(other.Status.LastMatchedAt).To(BeNil())
	stop()
	before := env.Versions(t, f, policy)
	shared.Alone(t, env)
	arrived := r.finds("f-2", "G2")
	r.is(arrived, v1alpha1.FindingStateOpenMuted, "other")
	g.Expect(happened(arrived)).To(Equal([]string{"created  open_muted scanner/", "judged open muted other"}), "it was open before")
	r.counts(other, 1, 1, 0, 0, 0, 0)
	r.says(other, v1alpha1.ReasonInForce, ok)
	g.Expect(other.Status.LastMatchedAt.Time).To(BeTemporally("==", arrived.CreationTimestamp.Time))
	harness.Same(t, "what is stored", before, env.Versions(t, f, policy))
}

func TestAPolicyBeginsAndEndsAtItsSecond(t *testing.T) {
	g, r := NewWithT(t), newRoom(t)
	begin := time.Now().Truncate(time.Second)
	from, until := begin.Add(time.Minute), begin.Add(90*time.Minute)
	r.finds("f-1", "G1")
	policy := r.declares("mute", "finding.ruleID == 'G1'", func(s *v1alpha1.TriagePolicySpec) {
		s.ValidFrom, s.ValidUntil = new(v1alpha1.NewTime(from)), new(v1alpha1.NewTime(until))
	})
	clock, c := clocktesting.NewFakePassiveClock(begin), env.AsController(t)
	reconciler := newReconciler(reconcile.Base{Client: c, Live: c, Clock: clock})
	at := func(now time.Time) (again time.Duration) {
		t.Helper()
		clock.SetTime(now)
		result, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(policy)})
		g.Expect(err).NotTo(HaveOccurred())
		testenv.Get(t, g, env, policy)
		return result.RequeueAfter
	}
	g.Expect(at(begin)).To(Equal(time.Minute))
	g.Expect(reason(policy, v1alpha1.ConditionInForce)).To(Equal(v1alpha1.ReasonNotYetValid))
	g.Expect([]int32{policy.Status.Applied, policy.Status.WouldApply}).To(Equal([]int32{0, 1}))
	g.Expect(at(from.Add(-time.Millisecond))).To(Equal(time.Millisecond))
	g.Expect(policy.Status.InForce).To(BeNil())
	g.Expect(at(from)).To(Equal(reconcile.MaxWait), "it reads the clock again, in case that was put forward")
	g.Expect(policy.Status.InForce.Generation).To(Equal(policy.Generation))
	g.Expect(at(until.Add(-time.Minute))).To(Equal(time.Minute))
	version := policy.ResourceVersion
	g.Expect(at(until.Add(-time.Millisecond))).To(Equal(time.Millisecond))
	g.Expect(policy.ResourceVersion).To(Equal(version), "it wrote before the end")
	g.Expect(at(until)).To(Equal(reconcile.MaxWait), "it reads the clock again, in case that was ahead")
	g.Expect(policy.Status.InForce).To(BeNil())
	g.Expect(reason(policy, v1alpha1.ConditionInForce)).To(Equal(v1alpha1.ReasonPolicyExpired))
	version = policy.ResourceVersion
	g.Expect(at(until.Add(time.Hour))).To(Equal(reconcile.MaxWait))
	g.Expect(policy.ResourceVersion).To(Equal(version), "it wrote after the end")
	at(until.Add(-time.Minute))
	g.Expect(policy.Status.InForce).NotTo(BeNil(), "the clock was ahead")
}

func TestAClockThatIsAheadNeitherBeginsNorEndsAPolicy(t *testing.T) {
	testenv.SetServerTime(t, time.Now().Add(-48*time.Hour))
	shared.Alone(t, env)
	r := newRoom(t)
	passed := v1alpha1.NewTime(time.Now().Add(-24 * time.Hour)) // only by the local clock
	f := r.finds("f-1", "G1")
	ends := r.declares("ends", "true", func(s *v1alpha1.TriagePolicySpec) { s.ValidUntil = &passed })
	begins := r.declares("begins", "true", func(s *v1alpha1.TriagePolicySpec) { s.ValidFrom = &passed })
	r.says(begins, v1alpha1.ReasonNotYetValid, ok)
	r.says(ends, v1alpha1.ReasonInForce, ok)
	r.is(f, v1alpha1.FindingStateOpenMuted, "ends")
}

func TestAPolicyThatDependsOnTheTimeCountsEachHour(t *testing.T) {
	g, r := NewWithT(t), newRoom(t)
	begin := time.Now().Truncate(time.Second)
	detected := v1alpha1.NewTime(begin)
	env.Create(t, builder.Finding("f-1").In(r.namespace).Mutate(func(f *v1alpha1.Finding) { f.Spec.DetectedAt = &detected }).Build())
	policy := r.declares("old", "now - finding.detectedAt >= duration('24h')", nil)
	clock, c := clocktesting.NewFakePassiveClock(begin), env.AsController(t)
	reconciler := newReconciler(reconcile.Base{Client: c, Live: c, Clock: clock})
	for _, step := range []struct {
		at   time.Duration
		want int32
	}{{0, 0}, {23 * time.Hour, 0}, {24 * time.Hour, 1}} {
		clock.SetTime(begin.Add(step.at))
		result, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(policy)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(time.Hour))
		g.Expect(testenv.Get(t, g, env, policy).Status.Matched).To(Equal(step.want))
	}
}
