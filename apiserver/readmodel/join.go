package readmodel

import "context"

// joinBatch is how many findings are rendered between two turns with the mutex.
const joinBatch = 256

// rejoin names findings of a namespace that are to be rendered anew: those of a repository,
// of a project, or everything.
type rejoin struct {
	namespace string
	field     field
	name      string
}

// enqueue asks for findings to be rendered in the background. What waits already is not added.
func (m *Model) enqueue(r rejoin) {
	if _, ok := m.queued[r]; ok {
		return
	}
	m.queued[r] = struct{}{}
	m.queue = append(m.queue, r)
	select {
	case m.enqueued <- struct{}{}:
	default: // the joiner has been told already
	}
}

// runJoiner renders what is enqueued, in batches, so that no writer waits for long.
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

// joinNext renders the findings of the next entry of the queue, and reports whether there was one.
func (m *Model) joinNext(ctx context.Context) bool {
	next, names, ok := m.dequeue()
	if !ok {
		return false
	}
	for len(names) > 0 && ctx.Err() == nil {
		batch := names[:min(joinBatch, len(names))]
		names = names[len(batch):]
		m.joinFindings(next.namespace, batch)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.joining = false
	m.settleReady()
	return ctx.Err() == nil
}

// dequeue takes the next entry of the queue and lists the names of its findings.
func (m *Model) dequeue() (next rejoin, names []string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 {
		return rejoin{}, nil, false
	}
	next, m.queue = m.queue[0], m.queue[1:]
	delete(m.queued, next)
	m.joining = true
	if p := m.partitions[next.namespace]; p != nil && p.view != nil {
		names = p.namesOf(next)
	}
	return next, names, true
}

// namesOf lists the findings that an entry of the queue asks for.
func (p *partition) namesOf(r rejoin) []string {
	if r.field == everything {
		names := make([]string, 0, len(p.findings))
		for name := range p.findings {
			names = append(names, name)
		}
		return names
	}
	// Whatever is not in the index has yet to be rendered, and will then be joined with what is there.
	selected := p.index.pick(r.field, r.name, FindingFilter{})
	names := make([]string, 0, selected.count)
	for _, id := range selected.buckets {
		p.index.byCreated.Ascend(entry{bucket: id, item: &Item{}}, func(e entry) bool {
			if e.bucket == id {
				names = append(names, e.item.ID)
			}
			return e.bucket == id
		})
	}
	return names
}

// joinFindings renders a batch. The rendering runs without the mutex; a finding that has
// changed meanwhile was rendered by its own write and is left alone.
func (m *Model) joinFindings(namespace string, names []string) {
	work := m.outdated(namespace, names)
	for i := range work {
		work[i].item, work[i].err = work[i].job.render()
	}
	m.finish(namespace, work)
}

// finish shows what was rendered.
func (m *Model) finish(namespace string, work []rendering) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.partitions[namespace]
	if p == nil || p.view == nil {
		return
	}
	for _, done := range work {
		name := done.job.object.Name
		if p.findings[name] != done.finding || p.organization() != done.job.organization {
			continue
		}
		if done.err != nil {
			m.log.Error(done.err, "A finding keeps its old project and repository", "namespace", namespace, "finding", name)
			continue
		}
		p.show(done.finding, done.item)
	}
	m.signal()
}

// rendering is a job with what it is for and what came out.
type rendering struct {
	finding *held
	job     job
	item    *Item
	err     error
}

// outdated returns a job for each of the findings that is not shown with what there is to join now.
func (m *Model) outdated(namespace string, names []string) []rendering {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.partitions[namespace]
	if p == nil || p.view == nil {
		return nil
	}
	var work []rendering
	for _, name := range names {
		if finding := p.findings[name]; finding != nil && !p.current(finding) {
			work = append(work, rendering{finding: finding, job: p.jobFor(finding.object, finding.updatedAt)})
		}
	}
	return work
}
