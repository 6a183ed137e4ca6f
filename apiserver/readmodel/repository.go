package readmodel

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

func (m *Model) setRepository(p *partition, object *v1alpha1.Repository, name string) {
	before := p.repositories[name]
	if before == nil {
		before = &heldRepository{}
	}
	var joined *render.Repository
	if object == nil {
		delete(p.repositories, name)
		p.indexes.repositories.Remove(name)
		m.signal()
	} else {
		if joined = render.NewRepository(object); joined.Equal(before.joined) {
			joined = before.joined
		}
		p.repositories[name] = &heldRepository{
			object:    &v1alpha1.Repository{ObjectMeta: trimmed(&object.ObjectMeta), Spec: object.Spec, Status: object.Status},
			updatedAt: m.stamp(object).after(before.updatedAt),
			joined:    joined,
		}
		m.enqueueRow(p, repositories, name)
	}
	if joined != before.joined {
		for _, rows := range []kind{projects, reviews, reviewIssues, findings} {
			m.enqueue(rejoin{namespace: p.namespace, rows: rows, by: byRepository, name: name})
		}
	}
}

func (p *partition) repositoryWork(name string) (work, bool) {
	held := p.repositories[name]
	if held == nil {
		return work{}, false
	}
	organization, x := p.organization(), p.indexes.repositories
	var rendered map[*v1alpha1.Project][]byte
	if before, ok := x.Get(name); ok && before.joined == held.joined {
		rendered = before.projects
	}
	var within []render.DatedProject
	for _, name := range sets.List(p.projectsOf[name]) {
		project := p.projects[name]
		within = append(within, render.DatedProject{
			Project: project.object, UpdatedAt: project.updatedAt.at, JSON: rendered[project.object],
		})
	}
	item := &repositoryItem{
		id:        name,
		fullName:  provision.Fold(held.object.Spec.FullName),
		createdAt: render.Timestamp(held.object.CreationTimestamp.Time),
		updatedAt: render.Timestamp(held.updatedAt.at),
		projects:  make(map[*v1alpha1.Project][]byte, len(within)),
		joined:    held.joined,
	}
	if commit := held.object.Spec.LastCommit; commit != nil {
		item.lastCommittedAt = render.OptionalTimestamp(commit.CommittedAt)
	}
	return work{
		render: func() (err error) {
			item.json, err = render.RepositoryJSON(organization, held.object, held.updatedAt.at, within)
			for _, project := range within {
				item.projects[project.Project] = project.JSON
			}
			return err
		},
		show: func() {
			if p.repositories[name] != nil {
				x.Put(name, item)
			}
		},
		hide: func() { x.Remove(name) },
	}, true
}
