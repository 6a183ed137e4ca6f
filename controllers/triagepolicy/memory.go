package triagepolicy

import (
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// memory has what came of policies for the findings of a namespace when they were counted last: who counts again
// evaluates a policy over what has changed, and no more. It is used by one count at a time.
type memory struct {
	slots map[types.UID]int
	// facts are a digest of what expressions read of the finding, by slot.
	facts []uint64
	// policies by name, each with its outcomes by slot.
	policies map[string]*remembered
}

// remembered are the outcomes of one policy.
type remembered struct {
	// restsOn is a digest of what they follow from beside a finding's facts: the policy and all others.
	restsOn  [sha256.Size]byte
	outcomes []outcome
}

// outcome holds a rules.Outcome, and of the policy that decides its place among the others; 0 is not known. A policy
// that fails is evaluated again: what it says is not kept.
type outcome uint16

// outcomes is more than there are rules.Outcomes.
const outcomes = 8

func newMemory() *memory {
	return &memory{slots: map[types.UID]int{}, policies: map[string]*remembered{}}
}

// memoryOf is that of a namespace.
func (r *Reconciler) memoryOf(namespace string) *memory {
	known, _ := r.memories.LoadOrStore(namespace, newMemory())
	return known.(*memory) //nolint:forcetypeassert // nothing else is stored
}

// forget drops what is known of a policy that has gone.
func (r *Reconciler) forget(policy types.NamespacedName) {
	known := r.memoryOf(policy.Namespace)
	if delete(known.policies, policy.Name); len(known.policies) == 0 {
		r.memories.Delete(policy.Namespace)
	}
}

var seed = maphash.MakeSeed()

// version tells a state of an object's spec from every other.
type version struct {
	uid        types.UID
	generation int64
}

// versionOf is empty for an object that does not exist.
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

// slotOf returns the finding's slot. What is remembered of a finding that has changed is forgotten.
func (m *memory) slotOf(f *rules.Facts) int {
	digest := maphash.Comparable(seed, struct {
		finding, project, repository version
		status                       v1alpha1.UserStatus
	}{versionOf(f.Finding), versionOf(f.Project), versionOf(f.Repository), findingstate.PersonsStatus(f.Finding)})
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

// of returns what is remembered of a policy; nil where its outcomes change by themselves, with the time.
func (m *memory) of(policy *rules.Policy, others []rules.Policy, now time.Time) *remembered {
	if policy == nil {
		return nil
	}
	on := sha256.New()
	for _, p := range append([]rules.Policy{*policy}, others...) {
		if p.Program.UsesNow() {
			delete(m.policies, string(policy.Name))
			return nil
		}
		_, _ = fmt.Fprintf(on, "%s %d %d %q %q\n", p.Name, p.Spec.Priority, rules.WindowOf(p.Spec, now),
			p.Spec.Set.UserStatus, p.Spec.Match) // a hash takes all
	}
	known, digest := m.policies[string(policy.Name)], [sha256.Size]byte(on.Sum(nil))
	if known == nil || known.restsOn != digest {
		known = &remembered{restsOn: digest}
		m.policies[string(policy.Name)] = known
	}
	return known
}

// try returns what comes of a policy for the finding in the slot. It evaluates the policy only where that is not known.
func (k *remembered) try(slot int, others []rules.Policy, evaluate func() rules.Trial) rules.Trial {
	if k == nil {
		return evaluate()
	}
	for len(k.outcomes) <= slot {
		k.outcomes = append(k.outcomes, 0)
	}
	if known := int(k.outcomes[slot]) - 1; known >= 0 {
		trial := rules.Trial{Outcome: rules.Outcome(known % outcomes)}
		if trial.Outcome == rules.Shadowed {
			trial.By = &others[known/outcomes]
		}
		return trial
	}
	trial := evaluate()
	if trial.Outcome == rules.Failed {
		return trial
	}
	by := 0
	for i := range others {
		if trial.By == &others[i] {
			by = i
		}
	}
	k.outcomes[slot] = outcome(by*outcomes + int(trial.Outcome) + 1) //nolint:gosec // of at most rules.MaxInForce others
	return trial
}

// shrink begins anew where most of what is remembered is of findings that have gone.
func (m *memory) shrink(findings int) {
	const spare = 1000
	if len(m.facts) > 2*findings+spare {
		*m = *newMemory()
	}
}
