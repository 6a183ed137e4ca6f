package readmodel

import (
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/newest"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// Finding returns an organization's finding. It takes no lock. A finding that does not exist and an
// organization that does not exist give the same result.
func (m *Model) Finding(organization, id string) (*Item, bool) {
	return m.shown(organization).findings.Get(id)
}

// FindingIn returns an organization's finding if it belongs to that project and that repository, and the
// project exists in the repository: if Project does not return a project, FindingIn returns no finding of it.
// It takes no lock.
func (m *Model) FindingIn(organization, repoID, projectID, id string) (*Item, bool) {
	snapshot := m.shown(organization)
	item, ok := snapshot.findings.Get(id)
	if !ok || item.RepoID != repoID || item.ProjectID != projectID {
		return nil, false
	}
	if _, ok := snapshot.project(repoID, projectID); !ok {
		return nil, false
	}
	return item, true
}

// Apply adds an object returned by the Kubernetes API, so that the next read of this model shows it, and returns it as
// shown. A newer state in the model stays, but the returned item is still that of the given object. The error is
// ErrNoOrganization if no organization owns the object's namespace.
func (m *Model) Apply(object *v1alpha1.Finding) (*Item, error) {
	prepared := m.renderFinding(object)
	if prepared.err != nil {
		return nil, prepared.err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.held(findings, newest.Key(object))
	if err := m.write(change{kind: findings, object: prepared}); err != nil {
		return nil, err
	}
	p := m.partitions[object.Namespace]
	if p == nil || p.view == nil {
		return nil, fmt.Errorf("%w: none owns the namespace %s", ErrNoOrganization, object.Namespace)
	}
	if held := p.findings[object.Name]; held != nil && held.stored == prepared.stored {
		m.noteApplied(findings, prepared, before)
	}
	item := p.applied(prepared)
	if p.dirty() {
		p.publish()
	}
	return item, nil
}

// applied returns the item of a written state. If the model already holds a newer state, its shown time is raised to at
// least that of the returned item.
func (p *partition) applied(object *preparedFinding) *Item {
	held := p.findings[object.Name]
	if held != nil && held.resourceVersion == object.ResourceVersion {
		return held
	}
	item := p.joined(object.stored, render.Timestamp(object.updatedAt.at))
	if held != nil && held.uid == item.uid && !held.recorded && held.UpdatedAt < item.UpdatedAt {
		p.showFinding(p.joined(held.stored, item.UpdatedAt))
	}
	return item
}

func (m *Model) setFinding(p *partition, object *preparedFinding, name string) {
	if object == nil {
		p.hideFinding(name)
		m.signal()
		return
	}
	if object.raw != nil { // it may be newer than the held state by now
		object = m.renderFinding(object.raw)
	}
	if object.err != nil {
		m.log.Error(object.err, "A finding is left out of the REST API", "namespace", p.namespace, "finding", name)
		p.hideFinding(name)
		return
	}
	updatedAt := render.Timestamp(object.updatedAt.at)
	// For the same object, the shown time does not go back, except to the recorded one.
	if before := p.findings[name]; before != nil && before.uid == object.stored.uid && !object.updatedAt.recorded {
		updatedAt = max(updatedAt, before.UpdatedAt)
	}
	p.showFinding(p.joined(object.stored, updatedAt))
	m.signal()
}

// joined returns an item with the current data to join.
func (p *partition) joined(finding *stored, updatedAt string) *Item {
	return &Item{stored: finding, Shown: p.shown(finding, updatedAt)}
}

func (p *partition) shown(finding *stored, updatedAt string) render.Shown {
	shown := render.Shown{UpdatedAt: updatedAt, Project: p.project(finding.ProjectID),
		Repository: p.repository(finding.RepoID)}
	if p.view != nil {
		shown.Organization = p.view.shown
	}
	return shown
}

// current reports whether an item shows the current data to join. Joined data is replaced only if findings show the
// difference, so comparing pointers is enough.
func (p *partition) current(item *Item) bool {
	return item.Shown == p.shown(item.stored, item.UpdatedAt)
}

// showFinding holds an item and adds it to the index.
func (p *partition) showFinding(item *Item) {
	p.findings[item.ID] = item
	if p.view != nil {
		before, _ := p.indexes.findings.Put(item.ID, item)
		p.indexes.rows.put(before, item)
	}
}

// hideFinding removes a finding.
func (p *partition) hideFinding(name string) {
	delete(p.findings, name)
	if before, ok := p.indexes.findings.Remove(name); ok {
		p.indexes.rows.remove(before)
	}
}

// findingWork joins a finding again. It renders nothing.
func (p *partition) findingWork(name string) (work, bool) {
	if item := p.findings[name]; item == nil || p.current(item) {
		return work{}, false
	}
	return work{
		render: func() error { return nil },
		show: func() {
			if item := p.findings[name]; item != nil && !p.current(item) {
				p.showFinding(p.joined(item.stored, item.UpdatedAt))
			}
		},
	}, true
}
