package readmodel

import (
	"fmt"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Finding returns an organization's finding. It takes no lock. A finding that is not there
// and an organization that is not there look the same.
func (m *Model) Finding(organization, id string) (*Item, bool) {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return nil, false
	}
	return snapshot.findings.get(id)
}

// Apply takes the object that the Kubernetes API has returned for a patch, so that the next
// read of this model shows it, and returns it as it is shown. Where the model already holds
// a newer state that stays, and the item returned is still that of the object given.
// The object must not be changed afterwards. The error is ErrNoOrganization where no
// organization owns the object's namespace.
func (m *Model) Apply(object *v1alpha1.Finding) (*Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.write(change{kind: findings, object: object}); err != nil {
		return nil, err
	}
	p := m.partitions[object.Namespace]
	if p == nil || p.view == nil {
		return nil, fmt.Errorf("%w: none owns the namespace %s", ErrNoOrganization, object.Namespace)
	}
	if p.dirty() {
		p.publish()
	}
	finding := p.findings[object.Name]
	if finding != nil && finding.item != nil && finding.object.ResourceVersion == object.ResourceVersion {
		return finding.item, nil
	}
	return p.jobFor(trim(object), m.stamp(object, object.Status.ObservedGeneration, object.Status.UpdatedAt).at).render()
}

func (m *Model) takeFinding(p *partition, object *v1alpha1.Finding, name string) {
	if object == nil {
		p.hideFinding(name)
		m.signal()
		return
	}
	finding := &held{object: trim(object), updatedAt: m.stamp(object, object.Status.ObservedGeneration, object.Status.UpdatedAt)}
	if before := p.findings[name]; before != nil {
		finding.updatedAt = finding.updatedAt.after(before.updatedAt)
	}
	p.findings[name] = finding
	if p.view == nil {
		return
	}
	item, err := p.jobFor(finding.object, finding.updatedAt.at).render()
	if err != nil {
		m.log.Error(err, "A finding is left out of the REST API", "namespace", p.namespace, "finding", name)
		p.hideFinding(name)
		return
	}
	p.showFinding(finding, item)
	m.signal()
}

// trim returns the object without what is neither shown nor needed to decide on a patch.
func trim(object *v1alpha1.Finding) *v1alpha1.Finding {
	return &v1alpha1.Finding{ObjectMeta: trimmed(&object.ObjectMeta), Spec: object.Spec}
}

// showFinding puts an item of a held finding into the index.
func (p *partition) showFinding(finding *held, item *Item) {
	finding.item = item
	p.indexes.findings.put(item.ID, item)
}

// hideFinding takes a finding out.
func (p *partition) hideFinding(name string) {
	delete(p.findings, name)
	if p.view != nil {
		p.indexes.findings.remove(name)
	}
}

// job is what rendering a finding takes. It is independent of the partition, so that it may
// run without the mutex.
type job struct {
	organization string
	object       *v1alpha1.Finding
	updatedAt    time.Time
	project      *render.Project
	repository   *render.Repository
}

// jobFor returns the job that renders an object with what there is to join now.
func (p *partition) jobFor(object *v1alpha1.Finding, updatedAt time.Time) job {
	return job{
		organization: p.organization(),
		object:       object,
		updatedAt:    updatedAt,
		project:      p.project(object.Spec.ProjectRef.Name),
		repository:   p.repository(object.Spec.RepositoryRef.Name),
	}
}

// current reports whether a finding is shown with what there is to join now. What is joined
// is replaced only where findings would show the difference, so pointers tell.
func (p *partition) current(finding *held) bool {
	spec := &finding.object.Spec
	return finding.item != nil &&
		finding.item.project == p.project(spec.ProjectRef.Name) &&
		finding.item.repository == p.repository(spec.RepositoryRef.Name)
}

// render turns a job into an item.
func (j job) render() (*Item, error) {
	v1, v2, err := render.Finding(j.organization, j.object, j.updatedAt, j.project, j.repository)
	if err != nil {
		return nil, err
	}
	spec := &j.object.Spec
	return &Item{
		ID:         j.object.Name,
		CreatedAt:  render.Timestamp(findingstate.CreatedAt(j.object).Time),
		UpdatedAt:  render.Timestamp(j.updatedAt),
		RepoID:     string(spec.RepositoryRef.Name),
		ProjectID:  string(spec.ProjectRef.Name),
		Class:      spec.Class,
		Status:     string(findingstate.State(spec)),
		UserStatus: string(findingstate.UserStatus(spec)),
		Severity:   string(spec.Details.Severity),
		V1:         v1,
		V2:         v2,
		Object:     j.object,
		project:    j.project,
		repository: j.repository,
	}, nil
}

// findingWork renders a finding anew. A finding that has changed meanwhile was rendered by
// its own write and is left alone.
func (p *partition) findingWork(name string) (work, bool) {
	finding := p.findings[name]
	if finding == nil || p.current(finding) {
		return work{}, false
	}
	job := p.jobFor(finding.object, finding.updatedAt.at)
	var item *Item
	return work{
		render: func() (err error) {
			item, err = job.render()
			return err
		},
		show: func() {
			if p.findings[name] == finding {
				p.showFinding(finding, item)
			}
		},
	}, true
}
