package readmodel

import (
	"context"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// joinBatch is how many rows are rendered between two acquisitions of the mutex.
const joinBatch = 256

// by selects the rows of a kind to render again.
type by int

const (
	byAll by = iota
	byName
	byRepository
	byProject
	byReview
)

// rejoin identifies rows of a namespace to render again: one row, those of a repository, a project or a review,
// or all.
type rejoin struct {
	namespace string
	rows      kind
	by        by
	name      string
}

// hasReviews reports whether the rows are reviews or issues of the namespace.
func (r rejoin) hasReviews(namespace string) bool {
	return r.namespace == namespace && (r.rows == reviews || r.rows == reviewIssues)
}

// queue holds what is to be rendered, without duplicates. Single rows come first, also between the batches of a group:
// an object that was just changed must not wait for all rows that a renamed repository affects. Batches of rows and
// groups alternate, or else an organization that keeps changing an object would starve the groups.
type queue struct {
	rows, groups []rejoin
	queued       map[rejoin]struct{}
	// popped counts the entries ever popped, and joined those of them that are joined.
	popped, joined progress
	// group is the last group popped. It is still being joined if more groups are popped than joined.
	group rejoin
	// groupNext means that rows had their turn since the last group.
	groupNext bool
}

// progress counts entries of the queue.
type progress struct{ groups, rows int }

// mark is a place in the queue.
type mark struct {
	progress
	// moved means that the mark has moved behind the rows that were queued by the entries before it.
	moved bool
}

func (q *queue) empty() bool { return len(q.rows)+len(q.groups) == 0 }

// push adds an entry unless it is queued already.
func (q *queue) push(r rejoin) {
	if _, ok := q.queued[r]; ok {
		return
	}
	q.queued[r] = struct{}{}
	if r.by == byName {
		q.rows = append(q.rows, r)
	} else {
		q.groups = append(q.groups, r)
	}
}

// popRows removes and returns the next single rows, at most a batch.
func (q *queue) popRows() []rejoin {
	next := q.rows[:min(joinBatch, len(q.rows))]
	q.rows = q.rows[len(next):]
	for _, r := range next {
		delete(q.queued, r)
	}
	q.popped.rows += len(next)
	return next
}

// popGroup removes and returns the next group.
func (q *queue) popGroup() rejoin {
	next := q.groups[0]
	q.groups = q.groups[1:]
	delete(q.queued, next)
	q.popped.groups++
	q.group, q.groupNext = next, false
	return next
}

// end returns the mark behind everything that is queued.
func (q *queue) end() mark {
	return mark{progress: progress{q.popped.groups + len(q.groups), q.popped.rows + len(q.rows)}}
}

// endOfReviews returns a mark behind all reviews and issues of the namespace that are queued or being joined.
func (q *queue) endOfReviews(namespace string) mark {
	end := q.end()
	end.groups = q.joined.groups
	if q.group.hasReviews(namespace) {
		end.groups = q.popped.groups
	}
	for i, r := range slices.Backward(q.groups) {
		if r.hasReviews(namespace) {
			end.groups = q.popped.groups + i + 1
			break
		}
	}
	return end
}

// hasJoined reports whether the entries before the mark are joined, and the rows that these have queued: issues queue
// their review if its counts change. Once the entries are joined, it moves the mark behind those rows.
func (q *queue) hasJoined(at *mark) bool {
	if q.joined.groups < at.groups || q.joined.rows < at.rows {
		return false
	}
	if !at.moved {
		at.rows, at.moved = q.end().rows, true
	}
	return q.joined.rows >= at.rows
}

// enqueue requests rows to be rendered in the background.
func (m *Model) enqueue(r rejoin) {
	m.queue.push(r)
	select {
	case m.enqueued <- struct{}{}:
	default: // the joiner has been woken already
	}
}

// enqueueRow requests a single row to be rendered in the background.
func (m *Model) enqueueRow(p *partition, rows kind, name string) {
	m.enqueue(rejoin{namespace: p.namespace, rows: rows, by: byName, name: name})
}

// runJoiner renders the queued rows in batches, so that no writer waits for long.
func (m *Model) runJoiner(ctx context.Context) error {
	for {
		for m.joinNext(ctx) {
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.enqueued:
		}
	}
}

// joinNext renders the next queue entry, and reports whether there was one.
func (m *Model) joinNext(ctx context.Context) bool {
	rows, filling, ok := m.dequeue()
	if !ok {
		return false
	}
	for len(rows) > 0 && ctx.Err() == nil {
		batch := rows[:min(joinBatch, len(rows))]
		rows = rows[len(batch):]
		m.join(batch)
		if len(rows) > 0 {
			m.join(m.dequeueRows())
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.joining, m.queue.joined = false, m.queue.popped
	m.signal() // the last rows may have been published before the queue was empty
	if ctx.Err() != nil {
		return false
	}
	if filling != nil {
		m.joinedKind(filling)
	}
	if m.starting != nil && m.queue.hasJoined(m.starting) {
		m.becomeReady()
	}
	return true
}

// dequeue removes and returns the next entries: a batch of single rows, or the rows of a group. filling is the view
// that gets all rows of a kind with them, if any.
func (m *Model) dequeue() (rows []rejoin, filling *view, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.queue.empty() {
		return nil, nil, false
	}
	m.joining = true
	if len(m.queue.groups) == 0 || len(m.queue.rows) > 0 && !m.queue.groupNext {
		m.queue.groupNext = true
		return m.queue.popRows(), nil, true
	}
	group := m.queue.popGroup()
	if p := m.partitions[group.namespace]; p != nil && p.view != nil {
		rows = p.rowsOf(group)
		if group.by == byAll && p.view.unjoined > 0 { // an earlier claim may have left groups in the queue
			filling = p.view
		}
	}
	return rows, filling, true
}

// joinedKind notes that all rows of a kind are joined, and after the last kind shows the view to readers.
func (m *Model) joinedKind(filling *view) {
	filling.unjoined--
	if p := m.partitions[filling.namespace]; filling.unjoined == 0 && p != nil && p.view == filling {
		p.publish()
		m.publishOrganizations()
	}
}

func (m *Model) dequeueRows() []rejoin {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queue.popRows()
}

// rowsOf lists the rows of a group.
func (p *partition) rowsOf(group rejoin) (rows []rejoin) {
	for name := range p.namesOf(group) {
		rows = append(rows, rejoin{namespace: group.namespace, rows: group.rows, by: byName, name: name})
	}
	return rows
}

// namesOf returns the names of the rows of a group. There are none by name, which selects a single row.
func (p *partition) namesOf(group rejoin) iter.Seq[string] {
	switch group.by {
	case byAll:
		return p.tables()[group.rows].names()
	case byProject:
		return p.findingsWith(projectField, group.name)
	case byReview:
		return maps.Keys(p.issuesOf[group.name])
	case byRepository:
		switch group.rows {
		case projects:
			return maps.Keys(p.projectsOf[group.name])
		case reviews:
			return maps.Keys(p.reviewsOf[group.name])
		case reviewIssues:
			return p.issuesBelow(group.name)
		case findings:
			return p.findingsWith(repoField, group.name)
		}
	}
	return func(func(string) bool) {}
}

// issuesBelow returns the names of the issues of a repository.
func (p *partition) issuesBelow(repository string) iter.Seq[string] {
	names := sets.Set[string]{}
	for review := range p.reviewsOf[repository] {
		maps.Copy(names, p.issuesOf[review])
	}
	return maps.Keys(names)
}

// findingsWith yields the names of the findings with a value of a field. It reads the index: a finding that is not
// indexed has yet to be rendered, and will be joined with the current data.
func (p *partition) findingsWith(field index.Field, value string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range p.indexes.findings.With(field, value) {
			if !yield(i.ID) {
				return
			}
		}
	}
}

// work is the rendering of one row.
type work struct {
	row  rejoin
	view *view
	// render runs without the mutex; show runs with the mutex after render has succeeded.
	render func() error
	show   func()
	// hide, if not nil, runs with the mutex after render has failed.
	hide func()
	err  error
}

// join renders a batch, without the mutex.
func (m *Model) join(rows []rejoin) {
	batch := m.prepare(rows)
	for i := range batch {
		batch[i].err = batch[i].render()
	}
	m.finish(batch)
}

// prepare collects the data for rendering. Rows that no longer exist, or that are up to date, are left out.
func (m *Model) prepare(rows []rejoin) []work {
	m.mu.Lock()
	defer m.mu.Unlock()
	var batch []work
	for _, r := range rows {
		p := m.partitions[r.namespace]
		if p == nil || p.view == nil {
			continue
		}
		if w, ok := m.workFor(p, r.rows, r.name); ok {
			w.row, w.view = r, p.view
			batch = append(batch, w)
		}
	}
	return batch
}

// showNow renders a row at once. The caller holds the mutex, and an organization owns the partition.
func (m *Model) showNow(p *partition, rows kind, name string) error {
	w, ok := m.workFor(p, rows, name)
	if !ok {
		return nil
	}
	if err := w.render(); err != nil {
		return err
	}
	w.show()
	return nil
}

func (m *Model) workFor(p *partition, rows kind, name string) (work, bool) {
	switch rows {
	case repositories:
		return p.repositoryWork(name)
	case projects:
		return p.projectWork(name)
	case reviews:
		return p.reviewWork(name)
	case reviewIssues:
		return m.issueWork(p, name)
	case webhookDeliveries:
		return directWork(p.deliveries, p.indexes.deliveries, name), true
	case scans:
		return directWork(p.scans, p.indexes.scans, name), true
	case triageOperations: // no reader sees them
		return work{}, false
	case trends:
		return directWork(p.trends, p.indexes.trends, name), true
	default:
		return p.findingWork(name)
	}
}

// finish shows the rendered rows, unless the namespace has got another owner meanwhile.
func (m *Model) finish(batch []work) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue.joined.rows = m.queue.popped.rows
	for _, w := range batch {
		p := m.partitions[w.row.namespace]
		if p == nil || p.view != w.view {
			continue
		}
		if w.err == nil {
			w.show()
			continue
		}
		m.log.Error(w.err, "What is shown in the REST API is not what is stored",
			"kind", w.row.rows.String(), "namespace", w.row.namespace, "name", w.row.name)
		if w.hide != nil {
			w.hide()
		}
	}
	if len(batch) > 0 {
		m.signal()
	}
}
