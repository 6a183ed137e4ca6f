package readmodel

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// projectItem is a project as it is shown on its own.
type projectItem struct {
	repoID, owner string
	json          []byte
}

// Project returns the JSON of an organization's project, in the shape of a single project, if it is in that
// repository. It takes no lock.
func (m *Model) Project(organization, repoID, projectID string) ([]byte, bool) {
	item, ok := m.shown(organization).project(repoID, projectID)
	if !ok {
		return nil, false
	}
	return item.json, true
}

// project returns a project if it is in that repository.
func (x *indexes) project(repoID, projectID string) (*projectItem, bool) {
	item, ok := x.projects.Get(projectID)
	if !ok || item.repoID != repoID {
		return nil, false
	}
	return item, true
}

func (m *Model) setProject(p *partition, object *v1alpha1.Project, name string) {
	before := p.projects[name]
	if before == nil {
		before = &heldProject{}
	} else {
		p.projectsOf.remove(before.object.Spec.RepositoryRef.Name, name)
		m.enqueueRepositoryOf(p, before.object)
	}
	var joined *render.Project
	if object == nil {
		delete(p.projects, name)
		p.indexes.projects.Remove(name)
		m.signal()
	} else {
		if joined = render.NewProject(object); joined.Equal(before.joined) {
			joined = before.joined
		}
		p.projects[name] = &heldProject{
			object:    &v1alpha1.Project{ObjectMeta: trimmed(&object.ObjectMeta), Spec: object.Spec, Status: object.Status},
			updatedAt: m.stamp(object).after(before.updatedAt),
			joined:    joined,
		}
		p.projectsOf.add(object.Spec.RepositoryRef.Name, name)
		m.enqueueRow(p, projects, name)
		m.enqueueRepositoryOf(p, object)
	}
	if joined != before.joined {
		m.enqueue(rejoin{namespace: p.namespace, rows: findings, by: byProject, name: name})
	}
}

// enqueueRepositoryOf enqueues the repository that shows the project.
func (m *Model) enqueueRepositoryOf(p *partition, project *v1alpha1.Project) {
	m.enqueueRow(p, repositories, string(project.Spec.RepositoryRef.Name))
}

func (p *partition) projectWork(name string) (work, bool) {
	held := p.projects[name]
	if held == nil {
		return work{}, false
	}
	organization, x := p.organization(), p.indexes.projects
	repository := p.repository(string(held.object.Spec.RepositoryRef.Name))
	item := &projectItem{
		repoID: string(held.object.Spec.RepositoryRef.Name), owner: held.joined.Owner(),
	}
	return work{
		render: func() (err error) {
			item.json, err = render.ProjectJSON(organization, held.object, held.updatedAt.at, repository)
			return err
		},
		show: func() {
			if p.projects[name] != nil {
				x.Put(name, item)
			}
		},
		hide: func() { x.Remove(name) },
	}, true
}
