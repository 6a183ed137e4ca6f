package triagepolicy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// tally is what one generation of a policy matches.
type tally struct {
	matched, decides, shadowed, overridden, failed int32
	shadowedBy                                     map[v1alpha1.ResourceName]bool
	failure                                        *v1alpha1.PolicyFailure
	samples                                        []v1alpha1.ResourceName
	newest                                         time.Time
	// full: as many others are in force as may be.
	full bool
	// costly: counting was given up, and the policy is not in force yet.
	costly bool
	// stopped: this generation matched too many findings when it was counted last.
	stopped bool
}

// limit is how many findings a policy may match. One that was stopped has to fall well below: else each finding that
// comes and goes could reopen and mute thousands.
func (t *tally) limit(spec *v1alpha1.TriagePolicySpec) int32 {
	if t.stopped {
		return spec.Limit() * 9 / 10
	}
	return spec.Limit()
}

// compile compiles the spec as it is declared.
func (r *Reconciler) compile(_ context.Context, s *scope) error {
	program, err := r.policies.Compile(s.Object.Spec.Match)
	wrong, is := rules.IsCompileError(err)
	if err != nil && !is {
		return err
	}
	if s.wrong = wrong; err == nil {
		s.declared = &rules.Policy{Name: v1alpha1.ResourceName(s.Object.Name), Spec: &s.Object.Spec, Program: program}
	}
	return nil
}

// inForce is the generation that decides by now; nil where none does.
func (r *Reconciler) inForce(s *scope) *rules.Policy {
	in := s.Object.Status.InForce
	if in == nil {
		return nil
	}
	program, err := r.policies.Compile(in.Spec.Match)
	if err != nil {
		return nil
	}
	return &rules.Policy{Name: v1alpha1.ResourceName(s.Object.Name), Spec: &in.Spec, Program: program}
}

// count evaluates the policy over all findings of the namespace that are not closed. Where the declared generation is
// not the one in force, both are counted: the earlier one may have to stay, and may match too many by now.
func (r *Reconciler) count(ctx context.Context, s *scope) error {
	began := r.Clock.Now()
	defer func() { r.lastCount.Store(s.Object.Namespace, r.Clock.Since(began)) }()
	others, err := r.policies.InForce(ctx, s.Object.Namespace)
	if err != nil {
		return err
	}
	others = slices.DeleteFunc(others, func(p rules.Policy) bool { return string(p.Name) == s.Object.Name })
	s.counted.full = full(s, others)
	if in := v1alpha1.FindCondition(s.Object.Status.Conditions, v1alpha1.ConditionInForce); in != nil {
		s.counted.stopped = in.Reason == v1alpha1.ReasonTooMany && in.ObservedGeneration == s.Object.Generation
	}
	list := &v1alpha1.FindingList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the findings: %w", err)
	}
	earlier := r.inForce(s)
	if s.declared != nil && earlier != nil && earlier.Spec.Match == s.declared.Spec.Match {
		earlier = nil // what matches is the same
	}
	known := r.memoryOf(s.Object.Namespace)
	known.shrink(len(list.Items))
	before := known.of(s.declared, others, s.Now)
	for i := range list.Items {
		finding := &list.Items[i]
		if finding.Spec.Closed != nil {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if r.Clock.Since(began) > r.longestCount {
			s.givesUp()
			break
		}
		facts, err := r.policies.Facts(ctx, finding)
		if err != nil {
			return err
		}
		if s.declared != nil {
			s.counted.add(before.try(known.slotOf(facts), others, func() rules.Trial {
				return r.try(s.declared, others, facts, s.Now)
			}), finding)
		}
		if earlier != nil {
			s.earlier.add(r.try(earlier, others, facts, s.Now), finding)
		}
	}
	if s.declared == nil {
		s.counted = s.earlier
	}
	return nil
}

// givesUp ends a count that takes too long. What decides goes on deciding, and what does not must not begin to: it
// would cost as much each time that findings change.
func (s *scope) givesUp() {
	s.partial = true
	in := s.Object.Status.InForce
	s.counted.costly = in == nil || in.Generation != s.Object.Generation
}

// full reports whether no more policies may be in force. The cache may be behind, and too many come into force: then
// the lowest-ranked are taken out again.
func full(s *scope, others []rules.Policy) bool {
	in := s.Object.Status.InForce
	if in == nil {
		return len(others) >= rules.MaxInForce
	}
	mine := rules.Policy{Name: v1alpha1.ResourceName(s.Object.Name), Spec: &in.Spec}
	before, _ := slices.BinarySearchFunc(others, mine, rules.InOrder)
	return before >= rules.MaxInForce
}

// try evaluates one policy over one finding, as if the policy were in force.
func (r *Reconciler) try(policy *rules.Policy, others []rules.Policy, facts *rules.Facts, now time.Time) rules.Trial {
	r.evaluations.Inc()
	return policy.Try(others, facts, now)
}

// add counts what came of the policy for one finding.
func (t *tally) add(trial rules.Trial, finding *v1alpha1.Finding) {
	name := v1alpha1.ResourceName(finding.Name)
	switch trial.Outcome {
	case rules.NotMatched:
		return
	case rules.Failed:
		t.failed++
		if t.failure == nil || name < t.failure.Finding {
			t.failure = &v1alpha1.PolicyFailure{Finding: name, Message: rules.Failure(trial.Err)}
		}
		return
	case rules.Decides:
		t.decides++
	case rules.Shadowed:
		t.shadowed++
		if t.shadowedBy == nil {
			t.shadowedBy = map[v1alpha1.ResourceName]bool{}
		}
		t.shadowedBy[trial.By.Name] = true
	case rules.Overridden:
		t.overridden++
	case rules.Agreed:
	}
	t.matched++
	t.sample(name)
	if created := finding.CreationTimestamp.Time; created.After(t.newest) {
		t.newest = created
	}
}

// sample keeps the names that come first, so that the status changes only if one of those does.
func (t *tally) sample(name v1alpha1.ResourceName) {
	at, _ := slices.BinarySearchFunc(t.samples, name, cmp.Compare[v1alpha1.ResourceName])
	if at == v1alpha1.MaxPolicySamples {
		return
	}
	t.samples = slices.Insert(t.samples, at, name)
	t.samples = t.samples[:min(len(t.samples), v1alpha1.MaxPolicySamples)]
}
