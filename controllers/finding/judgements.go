package finding

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// judgements tracks verdicts that are written but not in the cache yet. A search for findings whose verdict differs
// after policies or reviews have changed still sees their old verdict, and may pass over them. So each finding is
// judged again when its verdict arrives in the cache, unless nothing has changed meanwhile. That is nearly always so,
// and spares a second evaluation of every policy over every finding: when a policy began over 600 findings with an
// endpoint for their events, judging each again took 1,565 reconciles and status writes in place of 600 and 1,200.
type judgements struct {
	mu sync.Mutex
	// changes counts the changes of the inputs of verdicts in all namespaces.
	changes uint64
	// last holds, for each namespace, the value of changes at its last change. For namespaces that it does not hold, the
	// value is at most forgotten.
	last      map[string]uint64
	forgotten uint64
	// underway holds, for each finding, the value of changes when it was judged.
	pending map[types.NamespacedName]uint64
}

// maxNamespaces bounds the namespaces whose last change is kept.
const maxNamespaces = 10_000

// changed records a change of the inputs of the verdicts in a namespace. Call it before the search for findings whose
// verdict differs.
func (j *judgements) changed(namespace string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.last == nil || len(j.last) >= maxNamespaces {
		j.last, j.forgotten = map[string]uint64{}, j.changes
	}
	j.changes++
	j.last[namespace] = j.changes
}

// begin returns the argument for end. Call it before reading policies, reviews, and the objects that findings refer
// to.
func (j *judgements) begin() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changes
}

// end records that a finding is about to get another verdict.
func (j *judgements) end(finding types.NamespacedName, began uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pending == nil {
		j.pending = map[types.NamespacedName]uint64{}
	}
	j.pending[finding] = began
}

// isCurrent reports whether the verdict that has arrived is certainly still current. Call it once per verdict.
func (j *judgements) isCurrent(finding types.NamespacedName) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	began, known := j.pending[finding]
	delete(j.pending, finding)
	return known && began >= max(j.forgotten, j.last[finding.Namespace])
}

// forget drops the entry of a finding that no longer exists.
func (j *judgements) forget(finding types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.pending, finding)
}
