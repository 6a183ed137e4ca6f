package triagepolicy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/policies"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// putInForce records which generation decides: the declared one if it may, else the one in force if that may stay. It
// requeues for the time when a policy begins or ends, and hourly if it has ended or its expression depends on the time.
func (r *Reconciler) putInForce(_ context.Context, s *scope) error {
	policy := s.Object
	s.Status.ObservedGeneration = policy.Generation
	if s.whyNot() == "" {
		s.Status.InForce = &v1alpha1.PolicyInForce{Generation: policy.Generation, Spec: policy.Spec}
	} else if !r.earlierMayStay(s) {
		s.Status.InForce = nil
	}
	if s.partial {
		s.RequeueAfter(countingShare * r.maxCount)
	}
	for _, spec := range specs(s) {
		s.RequeueAfter(min(rules.UntilNext(spec, s.Now), reconcile.MaxWait))
		program, err := policies.Compile(spec.Match)
		if rules.WindowOf(spec, s.Now) == rules.Expired || err == nil && program.UsesNow() {
			s.RequeueAfter(reconcile.MaxWait)
		}
	}
	return nil
}

// specs returns the specs whose effect may change with time.
func specs(s *scope) []*v1alpha1.TriagePolicySpec {
	out := []*v1alpha1.TriagePolicySpec{&s.Object.Spec}
	if in := s.Status.InForce; in != nil {
		out = append(out, &in.Spec)
	}
	return out
}

// whyNot returns the reason why the declared generation does not decide; "" if it does.
func (s *scope) whyNot() string {
	if s.compileErr != nil {
		return v1alpha1.ReasonNotCompiled
	}
	return whyNotInForce(&s.Object.Spec, &s.counted, s.Now)
}

// whyNotInForce returns the reason why a spec may not be in force; "" if it may.
func whyNotInForce(spec *v1alpha1.TriagePolicySpec, counted *tally, now time.Time) string {
	window := rules.WindowOf(spec, now)
	// A stopped policy stays stopped, even if there is no room for it by now, until a complete count shows that few enough
	// findings match.
	tooMany := counted.matched > rules.Limit(spec, counted.stopped) || counted.stopped && counted.costly
	switch {
	case window == rules.Expired:
		return v1alpha1.ReasonPolicyExpired
	case spec.Mode != v1alpha1.PolicyApply:
		return v1alpha1.ReasonPreview
	case window == rules.NotYetValid:
		return v1alpha1.ReasonNotYetValid
	case tooMany && (counted.stopped || !counted.full):
		return v1alpha1.ReasonTooMany
	case counted.full:
		return v1alpha1.ReasonTooManyPolicies
	case counted.costly:
		return v1alpha1.ReasonTooCostly
	default:
		return ""
	}
}

// earlierMayStay reports whether the generation in force stays although the declared one may not replace it: only if an
// error is the reason, not if the user intends it.
func (r *Reconciler) earlierMayStay(s *scope) bool {
	in := s.Object.Status.InForce
	if in == nil || in.Generation == s.Object.Generation {
		return false
	}
	switch whyNotInForce(&s.Object.Spec, &s.counted, s.Now) {
	case "", v1alpha1.ReasonTooMany, v1alpha1.ReasonTooCostly:
	default:
		return false // even if it does not compile
	}
	counted := s.earlier
	if s.declared != nil && s.declared.Spec.Match == in.Spec.Match {
		counted = s.counted
	}
	counted.costly = false // it is in force already
	return r.inForce(s) != nil && whyNotInForce(&in.Spec, &counted, s.Now) == ""
}

// report records the counts and sets the conditions.
func (r *Reconciler) report(_ context.Context, s *scope) error {
	whyNot, because := s.explain()
	s.recordCounts(whyNot)
	s.judgeCompiled()
	s.judgeInForce(whyNot, because)
	s.judgeReady(whyNot, because)
	r.metrics.observe(client.ObjectKeyFromObject(s.Object), s.Object)
	return nil
}

// recordCounts records the counts, those of an earlier generation in force even if counting the declared one was given
// up; whyNot is the reason that explain returns. A partial count leaves the last counts in place, or none if they
// belong to another version or too many findings match.
func (s *scope) recordCounts(whyNot string) {
	if s.lastMatchOutdated() {
		s.Status.LastMatchedAt = nil
	}
	status, counted := s.Status, &s.counted
	switch in := status.InForce; {
	case s.countsUnknown(whyNot):
		counted = &tally{}
	case s.earlierCounted && in != nil && in.Generation != s.Object.Generation:
		counted = &s.earlier // show the generation in force; the condition explains the declared one
	case s.partial:
		if in == nil && status.Applied > 0 {
			status.Applied, status.WouldApply = 0, status.Applied
		}
		return
	}
	status.Matched, status.Shadowed, status.Overridden = counted.matched, counted.shadowed, counted.overridden
	status.Applied, status.WouldApply = counted.decides, 0
	if status.InForce == nil {
		status.Applied, status.WouldApply = 0, counted.decides
	}
	shadowing := slices.Sorted(maps.Keys(counted.shadowedBy))
	status.ShadowedBy = shadowing[:min(len(shadowing), v1alpha1.MaxShadowingPolicies)]
	status.Failed, status.Failure, status.Samples = counted.failed, counted.failure, counted.samples
	if newest := v1alpha1.NewTime(counted.newest); counted.matched > 0 && status.LastMatchedAt.Before(&newest) {
		status.LastMatchedAt = &newest
	}
}

// countsUnknown reports whether the status has no valid counts: no generation is in force, the declared one is not
// counted, and the stored counts may belong to another generation or, if too many match, are too low because they
// precede the count that stopped the policy.
func (s *scope) countsUnknown(whyNot string) bool {
	switch before := s.Before.InForce; {
	case s.Status.InForce != nil:
		return false
	case s.compileErr != nil,
		s.partial && whyNot == v1alpha1.ReasonTooMany && s.Status.Matched <= rules.Limit(&s.Object.Spec, s.counted.stopped):
		return true
	case before == nil:
		return s.partial && s.Before.ObservedGeneration != s.Object.Generation
	default:
		return s.partial && !countAlike(&before.Spec, &s.Object.Spec)
	}
}

// lastMatchOutdated reports whether lastMatchedAt may come from another expression. If the policy was not in force, its
// earlier expression is unknown.
func (s *scope) lastMatchOutdated() bool {
	before, now := s.Before.InForce, s.Status.InForce
	switch {
	case before == nil:
		return s.Before.ObservedGeneration != s.Object.Generation
	case now == nil:
		return s.Object.Spec.Match != before.Spec.Match
	default:
		return now.Spec.Match != before.Spec.Match
	}
}

// doesNotCompile is the message of the conditions Compiled and Ready if the expression does not compile.
const doesNotCompile = "The expression spec.match does not compile: %q."

func (s *scope) judgeCompiled() {
	if s.compileErr != nil {
		s.Condition(v1alpha1.ConditionCompiled, false, v1alpha1.ReasonNotCompiled,
			fmt.Sprintf(doesNotCompile, s.compileErr.Quotable()))
		return
	}
	s.Condition(v1alpha1.ConditionCompiled, true, v1alpha1.ReasonCompiled, "The expression spec.match is valid.")
}

// judgeInForce sets the condition InForce from the results of explain.
func (s *scope) judgeInForce(whyNot, because string) {
	in, status := s.Status.InForce, s.Status
	switch {
	case in == nil:
		s.Condition(v1alpha1.ConditionInForce, false, whyNot, because)
	case in.Generation != s.Object.Generation:
		s.Condition(v1alpha1.ConditionInForce, true, v1alpha1.ReasonEarlierGeneration,
			fmt.Sprintf("The generation in status.inForce remains in force and decides %q. ", decision(&in.Spec))+because)
	case status.Matched == 0 && status.LastMatchedAt == nil && status.Failed > 0:
		s.Condition(v1alpha1.ConditionInForce, true, v1alpha1.ReasonNeverMatched,
			"No open finding has matched yet, and spec.match cannot be evaluated for some: see status.failure.")
	case status.Matched == 0 && status.LastMatchedAt == nil:
		s.Condition(v1alpha1.ConditionInForce, true, v1alpha1.ReasonNeverMatched,
			"No open finding has matched yet: check spec.match, or leave it for findings of later scans.")
	case status.Shadowed > 0 && status.Applied == 0:
		s.Condition(v1alpha1.ConditionInForce, true, v1alpha1.ReasonShadowed,
			"Other policies decide about all that this one could decide about: see status.shadowedBy, and spec.priority.")
	default:
		s.Condition(v1alpha1.ConditionInForce, true, v1alpha1.ReasonInForce,
			"The policy decides about the findings that match and that no person has decided about.")
	}
}

// decision describes what a spec decides. The console shows the same text as judgeInForce.
func decision(spec *v1alpha1.TriagePolicySpec) string {
	words := string(spec.Set.UserStatus)
	if spec.Set.Reason != "" {
		words += ", " + string(spec.Set.Reason)
	}
	words += fmt.Sprintf(", priority %d", spec.Priority)
	if spec.ValidUntil == nil {
		return words + ", without an end"
	}
	return words + ", until " + spec.ValidUntil.UTC().Format(time.RFC3339)
}

// explain returns the result of whyNot, and the message for users. The console recognises "A hundred other policies are
// in force" in it.
func (s *scope) explain() (whyNot, because string) {
	whyNot = s.whyNot()
	switch whyNot {
	case v1alpha1.ReasonNotCompiled:
		because = "The expression of the present spec does not compile: the condition Compiled shows where."
	case v1alpha1.ReasonPreview, v1alpha1.ReasonNotYetValid:
		state, advice := "The mode is Preview", ": the status shows what the policy would decide. Set spec.mode to Apply."
		if whyNot == v1alpha1.ReasonNotYetValid {
			state, advice = "The time in spec.validFrom is in the future", "."
		}
		if s.counted.full {
			advice = ". A hundred other policies are in force in the organization, which is the maximum, so the policy " +
				"could not come into force: delete one that is not needed first."
		} else if s.counted.matched > rules.Limit(&s.Object.Spec, false) {
			advice = ". More findings match than spec.maxFindings, so the policy would be stopped at once: narrow " +
				"spec.match, or raise the limit, first."
		}
		because = state + advice
	case v1alpha1.ReasonPolicyExpired:
		because = "The time in spec.validUntil has passed: delete the policy, or set another end."
	case v1alpha1.ReasonTooMany:
		because = "More findings match the present spec than spec.maxFindings or, once it was stopped, more than nine " +
			"tenths of it: narrow spec.match, or raise the limit."
		unknown := ""
		if s.counted.matched <= rules.Limit(&s.Object.Spec, s.counted.stopped) {
			unknown = " Whether fewer match by now is unknown"
		} else if s.counted.costly {
			unknown = " More may match than were counted, and a higher limit alone may not help"
		}
		if unknown != "" {
			because += unknown + ", because counting takes too long: it is counted again every ten minutes."
		}
	case v1alpha1.ReasonTooCostly:
		because = "Evaluating the current spec over all findings takes too long: begin spec.match with a short " +
			"comparison that rules most of them out. It is counted again every ten minutes, and comes into force by itself " +
			"once a count is complete. An expression that reads now is counted from the beginning each time."
	case v1alpha1.ReasonTooManyPolicies:
		because = "A hundred other policies are in force in the organization, which is the maximum: " +
			"delete one that is not needed."
	}
	return whyNot, because
}

// judgeReady sets the condition Ready from the results of explain. For a policy that matches too many findings and
// cannot be counted, the condition InForce has the reason TooMany, and this one TooCostly.
func (s *scope) judgeReady(whyNot, because string) {
	switch {
	case whyNot == v1alpha1.ReasonNotCompiled:
		s.Judge(conditions.Stalled(whyNot, fmt.Sprintf(doesNotCompile, s.compileErr.Quotable())))
	case whyNot == v1alpha1.ReasonTooMany && s.counted.costly:
		s.Judge(conditions.Stalled(v1alpha1.ReasonTooCostly, because))
	case whyNot == v1alpha1.ReasonTooMany, whyNot == v1alpha1.ReasonTooCostly,
		whyNot == v1alpha1.ReasonTooManyPolicies && !s.partial:
		s.Judge(conditions.Stalled(whyNot, because))
	case s.partial && whyNot == "":
		s.Judge(conditions.Stalled(v1alpha1.ReasonTooCostly,
			"Counting the policy's matches takes too long: the counts are out of date. The policy still decides."))
	case s.partial:
		s.Judge(conditions.Stalled(v1alpha1.ReasonTooCostly,
			"Counting the policy's matches takes too long, so the counts are not those of the spec: begin "+
				"spec.match with a short comparison that rules most findings out. It is counted again every ten minutes."))
	default:
		s.Judge(conditions.Ready("The status is that of the spec."))
	}
}
