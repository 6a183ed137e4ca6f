package triageoperation

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
)

// memory is what this process remembers of the current part of an operation, until the next part or the end of the
// operation is stored.
type memory struct {
	operation types.UID
	part      int32
	// complete means that no earlier process has begun the part.
	complete bool
	// sent holds, by entry, the generation of the finding that the last write was based on; 0 if no write was sent. A
	// stored write has raised the generation.
	sent []int64
	// results holds the outcomes so far, by entry. The outcome is 0 until the finding is decided about.
	results []result
}

// remember returns the memory of the current part, and creates it if needed. begun means that an earlier run may have
// begun the part.
func (r *Reconciler) remember(s *scope, entries int, begun bool) *memory {
	if mem := r.recall(s, entries); mem != nil {
		return mem
	}
	m := &memory{
		operation: s.Object.UID, part: s.Status.DoneParts, complete: !begun,
		sent: make([]int64, entries), results: make([]result, entries),
	}
	r.memories.Store(client.ObjectKeyFromObject(s.Object), m)
	return m
}

// recall returns the memory of the current part; nil if there is none.
func (r *Reconciler) recall(s *scope, entries int) *memory {
	kept, _ := r.memories.Load(client.ObjectKeyFromObject(s.Object))
	m, is := kept.(*memory)
	if is && m.operation == s.Object.UID && m.part == s.Status.DoneParts && len(m.sent) == entries {
		return m
	}
	return nil
}

// forget drops an operation's memory. Call it once the end of the operation is stored, and when the operation is
// deleted.
func (r *Reconciler) forget(operation types.NamespacedName) { r.memories.Delete(operation) }

// recorded returns the outcomes that an earlier run stored in the part, by entry, with the reasons that are remembered.
// The memory may be nil.
func (m *memory) recorded(outcomes string, entries int) []result {
	results := make([]result, entries)
	for i := range min(entries, len(outcomes)) {
		results[i].outcome = rules.Outcome(outcomes[i])
		if m != nil && m.results[i].outcome == results[i].outcome {
			results[i].why = m.results[i].why
		}
	}
	return results
}

// mayHaveDecided reports whether an earlier run through the part may have decided about the entry.
func (m *memory) mayHaveDecided(i int) bool { return !m.complete || m.sent[i] > 0 }

// next returns the entry to use for the next attempt. If the finding still has the generation that the last write was
// based on, that write was not stored, even if a scan had changed the finding before.
func (m *memory) next(entry rules.Entry, i int) *rules.Entry {
	entry.Generation = max(entry.Generation, m.sent[i])
	return &entry
}

// refused returns how many findings have failed because the API server refused them for RefusalPatience.
func (m *memory) refused() (count int) {
	for i := range m.results {
		if m.results[i].refused {
			count++
		}
	}
	return count
}
