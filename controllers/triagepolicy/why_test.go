package triagepolicy

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestWhyASpecMayNotDecide(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	past, future := v1alpha1.NewTime(now.Add(-time.Hour)), v1alpha1.NewTime(now.Add(time.Hour))
	apply := v1alpha1.TriagePolicySpec{Mode: v1alpha1.PolicyApply, MaxFindings: 10}
	with := func(change func(*v1alpha1.TriagePolicySpec)) v1alpha1.TriagePolicySpec {
		spec := apply
		change(&spec)
		return spec
	}
	for _, c := range []struct {
		name    string
		spec    v1alpha1.TriagePolicySpec
		counted tally
		want    string
	}{
		{"as many as may match", apply, tally{matched: 10}, ""},
		{"one too many", apply, tally{matched: 11}, v1alpha1.ReasonTooMany},
		{"stopped, and as many as may match", apply, tally{matched: 10, stopped: true}, v1alpha1.ReasonTooMany},
		{"stopped, and nine tenths of that", apply, tally{matched: 9, stopped: true}, ""},
		{"stopped, and as few as can match", with(func(s *v1alpha1.TriagePolicySpec) { s.MaxFindings = 1 }), tally{matched: 1, stopped: true}, ""},
		{"no room among the others", apply, tally{matched: 10, full: true}, v1alpha1.ReasonTooManyPolicies},
		{"no room, and too many", apply, tally{matched: 11, full: true}, v1alpha1.ReasonTooManyPolicies},
		{"stopped, and no room by now", apply, tally{matched: 10, stopped: true, full: true}, v1alpha1.ReasonTooMany},
		{"no room, and stopped until now", apply, tally{matched: 9, stopped: true, full: true}, v1alpha1.ReasonTooManyPolicies},
		{"stopped, and not counted to the end", apply, tally{matched: 1, stopped: true, costly: true}, v1alpha1.ReasonTooMany},
		{"too costly", apply, tally{matched: 10, costly: true}, v1alpha1.ReasonTooCostly},
		{"a preview", with(func(s *v1alpha1.TriagePolicySpec) { s.Mode = "" }), tally{matched: 11}, v1alpha1.ReasonPreview},
		{"later", with(func(s *v1alpha1.TriagePolicySpec) { s.ValidFrom = &future }), tally{}, v1alpha1.ReasonNotYetValid},
		{"until now", with(func(s *v1alpha1.TriagePolicySpec) { s.ValidUntil = &past }), tally{full: true}, v1alpha1.ReasonPolicyExpired},
	} {
		harness.Same(t, c.name, c.want, whyNotInForce(&c.spec, &c.counted, now))
	}
	for matched, unknown := range map[int32]bool{9: true, 10: false} {
		s := newScope()
		s.Object.Spec, s.counted = apply, tally{matched: matched, stopped: true, costly: true}
		_, message := s.explain()
		if strings.Contains(message, "Whether fewer match by now is unknown") != unknown ||
			strings.Contains(message, "a higher limit alone may not help") == unknown ||
			!strings.Contains(message, "counting takes too long") {
			t.Errorf("%d of 10 were counted to match: %s", matched, message)
		}
		s.counted = tally{matched: 11}
		_, message = s.explain()
		harness.Lacks(t, "all were counted", message, "counting takes too long")
	}
}

func TestAPolicyThatDoesNotDecideYetSaysWhyItWouldDecideNothing(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	future := v1alpha1.NewTime(now.Add(time.Second))
	for _, spec := range []v1alpha1.TriagePolicySpec{{}, {Mode: v1alpha1.PolicyApply, ValidFrom: &future}} {
		for matched, stopped := range map[int32]bool{v1alpha1.DefaultMaxFindings: false, v1alpha1.DefaultMaxFindings + 1: true} {
			s := newScope()
			s.Begin(now)
			s.Object.Spec, s.counted.matched = spec, matched
			if whyNot, message := s.explain(); strings.Contains(message, "would be stopped at once") != stopped {
				t.Errorf("%s, and %d match: %s", whyNot, matched, message)
			}
			s.counted.full = true
			if whyNot, message := s.explain(); !strings.Contains(message, "A hundred other policies are in force") {
				t.Errorf("%s, %d match, and a hundred other policies are in force: %s", whyNot, matched, message)
			}
		}
	}
}

func TestAnotherMatchHasMatchedNothingYet(t *testing.T) {
	matched := v1alpha1.Now()
	inForce := func(generation int64, match string) *v1alpha1.PolicyInForce {
		return &v1alpha1.PolicyInForce{Generation: generation, Spec: v1alpha1.TriagePolicySpec{Match: match}}
	}
	for _, c := range []struct {
		name          string
		before, after *v1alpha1.PolicyInForce
		observed      int64
		partial       bool
		want          string
	}{
		{"the same match as before", inForce(1, "true"), inForce(2, "true"), 1, false, v1alpha1.ReasonInForce},
		{"another match", inForce(1, "false"), inForce(2, "true"), 1, false, v1alpha1.ReasonNeverMatched},
		{"another match later, shown until then", inForce(1, "false"), nil, 1, false, v1alpha1.ReasonNeverMatched},
		{"another match that was not counted at first", inForce(1, "false"), nil, 1, true, v1alpha1.ReasonNeverMatched},
		{"the same match later", inForce(1, "true"), nil, 1, false, v1alpha1.ReasonInForce},
		{"another match once it can be counted", inForce(1, "false"), inForce(1, "false"), 1, true, v1alpha1.ReasonNeverMatched},
		{"a preview that was changed, perhaps its match too", nil, nil, 1, false, v1alpha1.ReasonNeverMatched},
		{"such a preview that was not counted at first", nil, nil, 1, true, v1alpha1.ReasonNeverMatched},
		{"nothing has changed but the time", nil, nil, 2, false, v1alpha1.ReasonInForce},
	} {
		s := newScope()
		s.Object.Generation, s.Object.Spec.Match = 2, "true"
		s.Status.InForce, s.Status.ObservedGeneration, s.Status.LastMatchedAt = c.before, c.observed, &matched
		s.Begin(matched.Time)
		s.Status.InForce, s.Status.ObservedGeneration, s.partial = c.after, 2, c.partial
		s.recordCounts("")
		s.Begin(matched.Time)
		s.Status.InForce, s.partial = inForce(2, "true"), false
		s.recordCounts("")
		s.judgeInForce("", "")
		harness.Same(t, c.name, c.want, reason(s.Object, v1alpha1.ConditionInForce))
	}
}

func TestCountsOfAVersionThatNeitherDecidesNorIsDeclaredAreNotKept(t *testing.T) {
	inForce := func(generation int64, match string) *v1alpha1.PolicyInForce {
		return &v1alpha1.PolicyInForce{Generation: generation, Spec: v1alpha1.TriagePolicySpec{Match: match}}
	}
	for _, c := range []struct {
		name          string
		before, after *v1alpha1.PolicyInForce
		observed      int64
		whyNot, ready string
		want, limit   int32
	}{
		{"an earlier one decides", inForce(1, "false"), inForce(1, "false"), 1, v1alpha1.ReasonTooMany, v1alpha1.ReasonTooCostly, 10, 1000},
		{"a new one may match too many", nil, nil, 1, v1alpha1.ReasonTooMany, v1alpha1.ReasonTooCostly, 0, 1000},
		{"in force until too many match", inForce(2, "true"), nil, 2, v1alpha1.ReasonTooMany, v1alpha1.ReasonTooMany, 0, 1000},
		{"in force until a hundred others are", inForce(2, "true"), nil, 2, v1alpha1.ReasonTooManyPolicies, v1alpha1.ReasonTooCostly, 10, 1000},
		{"a stopped one", nil, nil, 2, v1alpha1.ReasonTooMany, v1alpha1.ReasonTooCostly, 0, 1000},
		{"a stopped one that was counted", nil, nil, 2, v1alpha1.ReasonTooMany, v1alpha1.ReasonTooCostly, 10, 5},
		{"a new preview", nil, nil, 1, v1alpha1.ReasonPreview, v1alpha1.ReasonTooCostly, 0, 1000},
		{"a preview of what decided", inForce(1, "true"), nil, 1, v1alpha1.ReasonPreview, v1alpha1.ReasonTooCostly, 10, 1000},
		{"a preview of something else", inForce(1, "false"), nil, 1, v1alpha1.ReasonPreview, v1alpha1.ReasonTooCostly, 0, 1000},
		{"the earlier one stops later", inForce(1, "false"), nil, 2, v1alpha1.ReasonTooMany, v1alpha1.ReasonTooCostly, 0, 1000},
		{"one policy too many", nil, nil, 1, v1alpha1.ReasonTooManyPolicies, v1alpha1.ReasonTooCostly, 0, 1000},
		{"no longer valid, in Preview", inForce(1, "false"), nil, 1, v1alpha1.ReasonNotCompiled, v1alpha1.ReasonNotCompiled, 0, 1000},
	} {
		s := newScope()
		s.Object.Generation, s.Object.Spec.Match, s.Object.Spec.MaxFindings = 2, "true", c.limit
		s.Status.InForce, s.Status.ObservedGeneration, s.Status.Matched = c.before, c.observed, 10
		s.Status.Applied = 10
		s.Begin(time.Now())
		if s.counted.matched = 10; c.whyNot == v1alpha1.ReasonNotCompiled {
			s.compileErr = &rules.CompileError{} // as if the earlier one was counted
		} else {
			s.giveUp()
		}
		s.Status.InForce, s.Status.ObservedGeneration = c.after, 2
		s.recordCounts(c.whyNot)
		s.judgeReady(c.whyNot, "Why.")
		harness.Same(t, c.name, c.want, s.Status.Matched)
		decides, would := s.Status.Applied, s.Status.WouldApply
		if c.after == nil {
			decides, would = would, decides
		}
		harness.Same(t, c.name+": matches that it decides, or would decide, about", c.want, decides)
		harness.Same(t, c.name+": the other number", int32(0), would)
		harness.Same(t, c.name, c.ready, reason(s.Object, v1alpha1.ConditionReady))
	}
}

func TestTheMessageNamesWhatTheEarlierGenerationDecides(t *testing.T) {
	end := v1alpha1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for want, spec := range map[string]v1alpha1.TriagePolicySpec{
		`"muted, duplicate, priority 10, until 2026-03-01T12:00:00Z"`: {
			Set: v1alpha1.PolicyDecision{UserStatus: "muted", Reason: "duplicate"}, Priority: 10, ValidUntil: &end,
		},
		`"active, priority 0, without an end"`: {Set: v1alpha1.PolicyDecision{UserStatus: "active"}},
	} {
		s := newScope()
		s.Object.Generation, s.Status.InForce = 2, &v1alpha1.PolicyInForce{Generation: 1, Spec: spec}
		s.judgeInForce("", "Too many match.")
		harness.Same(t, "message", "The generation in status.inForce remains in force and decides "+want+". Too many match.",
			v1alpha1.FindCondition(s.Status.Conditions, v1alpha1.ConditionInForce).Message)
	}
}

// A version may refuse what an earlier one has put into force.
func TestAPolicyInForceThatNoLongerCompilesDecidesNothingAndSaysWhy(t *testing.T) {
	r := newReconciler(reconcile.Base{})
	s := newScope()
	s.Object.Name, s.Object.Generation = "p", 1
	s.Object.Spec = v1alpha1.TriagePolicySpec{Match: "[[1]] == [[1]]", Mode: v1alpha1.PolicyApply}
	s.Status.InForce = &v1alpha1.PolicyInForce{Generation: 1, Spec: s.Object.Spec}
	s.Begin(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	t.Cleanup(func() { r.metrics.forget(client.ObjectKeyFromObject(s.Object)) })
	for _, phase := range []reconcile.Phase[*scope]{r.compile, r.putInForce, r.report} {
		harness.Must(t, phase(t.Context(), s))
	}
	harness.Same(t, "is in force", false, s.Status.InForce != nil)
	for _, kind := range []string{v1alpha1.ConditionCompiled, v1alpha1.ConditionInForce, v1alpha1.ConditionReady} {
		harness.Same(t, kind, v1alpha1.ReasonNotCompiled, reason(s.Object, kind))
	}
}
