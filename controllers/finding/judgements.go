package finding

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// judgements remembers what the verdicts rest on that are on their way into the cache. Whoever looks for findings that
// are decided otherwise since policies or reviews have changed sees of these what was before, and may pass over them:
// so each is looked at again when it arrives, unless nothing has changed meanwhile. Nearly always nothing has, and a
// policy over many findings would be evaluated twice over each.
type judgements struct {
	mu sync.Mutex
	// changes counts how often what verdicts rest on has changed.
	changes uint64
	// underway has that count as it was when the finding was judged.
	underway map[types.NamespacedName]uint64
}

// changed notes that what verdicts rest on has changed. It comes before the search for what is decided otherwise.
func (j *judgements) changed() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.changes++
}

// begin returns what end is to be called with. It comes before policies, reviews, and what findings refer to are read.
func (j *judgements) begin() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changes
}

// end notes that a finding is about to get another verdict.
func (j *judgements) end(finding types.NamespacedName, began uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.underway == nil {
		j.underway = map[types.NamespacedName]uint64{}
	}
	j.underway[finding] = began
}

// stands reports whether the verdict that has arrived is sure to be that of now. It is asked once per verdict.
func (j *judgements) stands(finding types.NamespacedName) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	began, known := j.underway[finding]
	delete(j.underway, finding)
	return known && began == j.changes
}

// forget drops what is known of a finding that has gone.
func (j *judgements) forget(finding types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.underway, finding)
}
