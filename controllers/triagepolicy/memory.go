package triagepolicy

import (
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// memory caches the policies' outcomes for the findings of a namespace, so that the next count evaluates a policy only
// over findings that have changed. Only one count uses it at a time.
type memory struct {
	slots map[types.UID]int
	// facts holds, by slot, a digest of everything that expressions can read of a finding.
	facts []uint64
	// policies holds the outcomes of each counted generation of each policy, at most maxRemembered.
	policies map[generation]*remembered
}

// maxRemembered is how many generations of an organization's policies are remembered: with 100,000 findings they take
// about 60 MB, however many policies kubectl creates. There is room for 200 policies, which is as many as REST lets
// an organization have, and for the earlier generation of each that is in force.
const maxRemembered = 3 * rules.MaxInForce

// generation identifies one of the two generations of a policy that a count may evaluate: the declared one, or the
// earlier one that is still in force.
type generation struct {
	policy  string
	earlier bool
}

// remembered holds the outcomes of one policy.
type remembered struct {
	// inputs is a digest of everything but a finding's facts that outcomes depend on: the policy, and those in force that
	// have precedence over it.
	inputs [sha256.Size]byte
	// othersReadNow means that a policy with precedence depends on the time: outcomes that depend on it are not kept.
	othersReadNow bool
	outcomes      []outcome
}

// outcome encodes a rules.Outcome and the index of the deciding policy among the others; 0 means unknown. Failures are
// not kept, since an outcome has no room for their messages: the policy is evaluated again.
type outcome uint16

// outcomeBase is the base in which an outcome encodes its two numbers. It is larger than every rules.Outcome.
const outcomeBase = 8

func newMemory() *memory {
	return &memory{slots: map[types.UID]int{}, policies: map[generation]*remembered{}}
}

// memoryOf returns the memory of a namespace.
func (r *Reconciler) memoryOf(namespace string) *memory {
	mem, _ := r.memories.LoadOrStore(namespace, newMemory())
	return mem.(*memory) //nolint:forcetypeassert // nothing else is stored
}

// forget drops the outcomes of a deleted policy.
func (r *Reconciler) forget(policy types.NamespacedName) {
	mem := r.memoryOf(policy.Namespace)
	delete(mem.policies, generation{policy.Name, false})
	delete(mem.policies, generation{policy.Name, true})
	if len(mem.policies) == 0 {
		r.memories.Delete(policy.Namespace)
	}
}

var seed = maphash.MakeSeed()

// version identifies one state of an object's spec.
type version struct {
	uid        types.UID
	generation int64
}

// versionOf returns the object's version; empty for an object that does not exist.
func versionOf[O interface {
	comparable
	client.Object
}](object O) (v version) {
	var absent O
	if object == absent {
		return v
	}
	return version{object.GetUID(), object.GetGeneration()}
}

// slotOf returns the finding's slot. It forgets the outcomes in it if the finding's facts have changed.
func (m *memory) slotOf(f *rules.Facts) int {
	digest := maphash.Comparable(seed, struct {
		finding, project, repository version
		status                       v1alpha1.UserStatus
	}{versionOf(f.Finding), versionOf(f.Project), versionOf(f.Repository), findingstate.StatusWithoutPolicies(f.Finding)})
	slot, known := m.slots[f.Finding.UID]
	switch {
	case !known:
		slot = len(m.facts)
		m.slots[f.Finding.UID] = slot
		m.facts = append(m.facts, digest)
	case m.facts[slot] != digest:
		m.facts[slot] = digest
		for _, policy := range m.policies {
			if slot < len(policy.outcomes) {
				policy.outcomes[slot] = 0
			}
		}
	}
	return slot
}

// of returns the remembered outcomes of a generation, which policy holds; nil if its expression reads the time, or if
// there is no room for them. inForce reports whether either generation of the policy is in force. others are in force,
// and must be sorted.
func (m *memory) of(policy *rules.Policy, key generation, inForce bool, others []rules.Policy,
	now time.Time) *remembered {
	if policy.Program.UsesNow() {
		delete(m.policies, key)
		return nil
	}
	if m.policies[key] == nil && !m.makeRoom(key, inForce, others) {
		return nil
	}
	on, othersReadNow := sha256.New(), false
	preceding, _ := slices.BinarySearchFunc(others, *policy, rules.InOrder)
	for _, p := range append([]rules.Policy{*policy}, others[:preceding]...) {
		othersReadNow = othersReadNow || p.Program.UsesNow()
		_, _ = fmt.Fprintf(on, "%s %d %d %q %q\n", p.Name, p.Spec.Priority, rules.WindowOf(p.Spec, now),
			p.Spec.Set.UserStatus, p.Spec.Match) // writing to a hash never fails
	}
	before, digest := m.policies[key], [sha256.Size]byte(on.Sum(nil))
	if before == nil || before.inputs != digest {
		before = &remembered{inputs: digest, othersReadNow: othersReadNow}
		m.policies[key] = before
	}
	return before
}

// makeRoom reports whether there is room for another generation. If need be, and only for a policy in force, it first
// forgets a generation of a policy that is not.
func (m *memory) makeRoom(of generation, inForce bool, others []rules.Policy) bool {
	if len(m.policies) < maxRemembered {
		return true
	}
	if !inForce {
		return false
	}
	for key := range m.policies {
		named := func(p rules.Policy) bool { return string(p.Name) == key.policy }
		if key.policy != of.policy && !slices.ContainsFunc(others, named) {
			delete(m.policies, key)
			return true
		}
	}
	return false
}

// try returns a policy's outcome for the finding in the slot, and evaluates the policy only if the outcome is unknown.
func (k *remembered) try(slot int, others []rules.Policy, evaluate func() rules.Trial) rules.Trial {
	if k == nil {
		return evaluate()
	}
	for len(k.outcomes) <= slot {
		k.outcomes = append(k.outcomes, 0)
	}
	if stored := int(k.outcomes[slot]) - 1; stored >= 0 {
		trial := rules.Trial{Outcome: rules.Outcome(stored % outcomeBase)}
		if trial.Outcome == rules.Shadowed {
			trial.By = &others[stored/outcomeBase]
		}
		return trial
	}
	trial := evaluate()
	restsOnOthers := trial.Outcome == rules.Decides || trial.Outcome == rules.Shadowed
	if trial.Outcome == rules.Failed || k.othersReadNow && restsOnOthers {
		return trial
	}
	by := 0
	for i := range others {
		if trial.By == &others[i] {
			by = i
		}
	}
	k.outcomes[slot] = outcome(by*outcomeBase + int(trial.Outcome) + 1) //nolint:gosec // at most rules.MaxInForce others
	return trial
}

// shrink clears the memory if most of its findings no longer exist.
func (m *memory) shrink(findings int) {
	const spare = 1000
	if len(m.facts) > 2*findings+spare {
		*m = *newMemory()
	}
}
