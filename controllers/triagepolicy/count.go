package triagepolicy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/policies"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// tally counts what one generation of a policy matches.
type tally struct {
	matched, decides, shadowed, overridden, failed int32
	shadowedBy                                     map[v1alpha1.ResourceName]bool
	failure                                        *v1alpha1.PolicyFailure
	samples                                        []v1alpha1.ResourceName
	newest                                         time.Time
	// full means that the maximum number of other policies is in force.
	full bool
	// costly means that the count was given up, and that this generation is not in force yet.
	costly bool
	// stopped means that this generation matched too many findings at the last count.
	stopped bool
}

// compile compiles the declared spec.
func (r *Reconciler) compile(_ context.Context, s *scope) error {
	program, err := policies.Compile(s.Object.Spec.Match)
	wrong, is := rules.IsCompileError(err)
	if err != nil && !is {
		return err
	}
	if s.compileErr = wrong; err == nil {
		s.declared = &rules.Policy{Name: v1alpha1.ResourceName(s.Object.Name), Spec: &s.Object.Spec, Program: program}
	}
	return nil
}

// inForce returns the generation that is in force now; nil if there is none.
func (r *Reconciler) inForce(s *scope) *rules.Policy {
	in := s.Object.Status.InForce
	if in == nil {
		return nil
	}
	program, err := policies.Compile(in.Spec.Match)
	if err != nil {
		return nil
	}
	return &rules.Policy{Name: v1alpha1.ResourceName(s.Object.Name), Spec: &in.Spec, Program: program}
}

// count evaluates the policy over all findings of the namespace that are not closed. If the declared generation may not
// come into force, the one in force is counted too: it may have to stay, and may match too many findings by now. Each
// has a time limit of its own, so that a costly generation in force can be replaced by a cheap one.
func (r *Reconciler) count(ctx context.Context, s *scope) error {
	began := r.local.Now()
	defer func() { r.lastCount.Store(s.Object.Namespace, r.local.Since(began)) }()
	others, err := policies.InForce(ctx, r.Client, s.Object.Namespace)
	if err != nil {
		return err
	}
	others = slices.DeleteFunc(others, func(p rules.Policy) bool { return string(p.Name) == s.Object.Name })
	s.counted.full = full(s, others)
	s.counted.stopped = rules.Stopped(s.Object)
	list := &v1alpha1.FindingList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the findings: %w", err)
	}
	from := sources{findings: list.Items, others: others, memory: r.memoryOf(s.Object.Namespace)}
	from.memory.shrink(len(list.Items))
	declared, earlier := generation{policy: s.Object.Name}, generation{policy: s.Object.Name, earlier: true}
	if in := s.Object.Status.InForce; in == nil || in.Generation == s.Object.Generation {
		delete(from.memory.policies, earlier) // none is in force
	}
	if s.declared != nil {
		complete, err := r.countOne(ctx, s, from, s.declared, declared, &s.counted)
		if err != nil {
			return err
		}
		if !complete {
			s.giveUp()
		}
	}
	if inForce := r.alsoCounted(s); inForce != nil {
		complete, err := r.countOne(ctx, s, from, inForce, earlier, &s.earlier)
		if err != nil {
			return err
		}
		s.earlierCounted, s.partial = complete, s.partial || !complete
	}
	return nil
}

// sources are what the counts of one reconcile read.
type sources struct {
	findings []v1alpha1.Finding
	// others are the other policies in force.
	others []rules.Policy
	memory *memory
}

// countOne counts the outcomes of one generation, which policy holds, for each finding that is not closed. It returns
// false if time ran out before the last.
func (r *Reconciler) countOne(ctx context.Context, s *scope, from sources, policy *rules.Policy, key generation,
	into *tally) (bool, error) {
	before := from.memory.of(policy, key, s.Object.Status.InForce != nil, from.others, s.Now)
	began := r.local.Now()
	for i := range from.findings {
		finding := &from.findings[i]
		if finding.Spec.Closed != nil {
			continue
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if r.local.Since(began) > r.maxCount {
			return false, nil
		}
		facts, err := policies.Facts(ctx, r.Client, finding)
		if err != nil {
			return false, err
		}
		into.add(before.try(from.memory.slotOf(facts), from.others, func() rules.Trial {
			r.evaluations.Inc()
			return policy.Try(from.others, facts, s.Now)
		}), finding)
	}
	return true, nil
}

// alsoCounted returns the generation in force if it has to be counted too, after the declared one was; nil otherwise.
func (r *Reconciler) alsoCounted(s *scope) *rules.Policy {
	earlier := r.inForce(s)
	if earlier == nil {
		return nil
	}
	switch s.whyNot() {
	case v1alpha1.ReasonNotCompiled:
		return earlier
	case v1alpha1.ReasonTooMany, v1alpha1.ReasonTooCostly:
	default:
		return nil // it is replaced, or goes out of force
	}
	sameMatch := earlier.Spec.Match == s.declared.Spec.Match
	if countAlike(earlier.Spec, s.declared.Spec) || sameMatch && s.partial {
		return nil // the count of the declared one is enough, or none will be recorded
	}
	return earlier
}

// countAlike reports whether two generations of a policy have the same counts: their specs agree in everything that
// rules.Policy.Try reads.
func countAlike(a, b *v1alpha1.TriagePolicySpec) bool {
	return a.Match == b.Match && a.Priority == b.Priority && a.Set.UserStatus == b.Set.UserStatus
}

// giveUp ends a count that takes too long. A generation in force stays, but a new one must not come into force: it
// would cost as much each time findings change.
func (s *scope) giveUp() {
	s.partial = true
	in := s.Object.Status.InForce
	s.counted.costly = in == nil || in.Generation != s.Object.Generation
}

// full reports whether no more policies may be in force. A stale cache may let too many in; the lowest-ranked are then
// taken out again.
func full(s *scope, others []rules.Policy) bool {
	in := s.Object.Status.InForce
	if in == nil {
		return len(others) >= rules.MaxInForce
	}
	mine := rules.Policy{Name: v1alpha1.ResourceName(s.Object.Name), Spec: &in.Spec}
	before, _ := slices.BinarySearchFunc(others, mine, rules.InOrder)
	return before >= rules.MaxInForce
}

// add counts the policy's outcome for one finding.
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

// sample keeps the first names in alphabetical order, so that the status changes only if one of
// these changes.
func (t *tally) sample(name v1alpha1.ResourceName) {
	at, _ := slices.BinarySearchFunc(t.samples, name, cmp.Compare[v1alpha1.ResourceName])
	if at == v1alpha1.MaxPolicySamples {
		return
	}
	t.samples = slices.Insert(t.samples, at, name)
	t.samples = t.samples[:min(len(t.samples), v1alpha1.MaxPolicySamples)]
}
