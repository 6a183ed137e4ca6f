package finding

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// judgements tracks verdicts that are written but not in the cache yet. When policies or reviews change, the search for
// findings whose verdict differs still sees the old verdict of these, and may miss them. So a finding is judged again
// when its verdict arrives in the cache, unless nothing has changed meanwhile. That check spares most second
// judgements: for a new policy over 600 findings with a webhook endpoint, judging each again took 1,565 reconciles and
// status writes in place of 600 and 1,200.
type judgements struct {
	mu sync.Mutex
	// changes counts the changes of inputs of verdicts in all namespaces.
	changes uint64
	// last holds the value of changes at each namespace's last change. For a namespace that is not in it, that value is at
	// most forgotten.
	last      map[string]uint64
	forgotten uint64
	// pending holds the value of changes at the time when each finding was judged.
	pending map[types.NamespacedName]uint64
}

// maxNamespaces bounds the entries of last.
const maxNamespaces = 10_000

// changed records a change of inputs of verdicts in a namespace. Call it before the search for findings whose verdict
// differs.
func (j *judgements) changed(namespace string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.last == nil || len(j.last) >= maxNamespaces {
		j.last, j.forgotten = map[string]uint64{}, j.changes
	}
	j.changes++
	j.last[namespace] = j.changes
}

// begin returns the argument for end. Call it before reading policies, reviews, and the objects that findings refer to.
func (j *judgements) begin() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changes
}

// end records that a new verdict is about to be written to the finding.
func (j *judgements) end(finding types.NamespacedName, began uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pending == nil {
		j.pending = map[types.NamespacedName]uint64{}
	}
	j.pending[finding] = began
}

// isCurrent reports whether the verdict that has arrived in the cache is certainly still current. Call it once per
// verdict.
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
