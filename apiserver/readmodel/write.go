package readmodel

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// kind is a kind of resource that is watched.
type kind int

// The kinds, in the order that they are first listed in: what findings are joined with comes
// before them, so that each is rendered once.
const (
	organizations kind = iota
	repositories
	projects
	findings
	kinds
)

func (k kind) String() string {
	return [kinds]string{"organizations", "repositories", "projects", "findings"}[k]
}

// change is a write to the read model: an object as somebody saw it, or its deletion.
type change struct {
	kind    kind
	object  metav1.Object
	deleted bool
}

// write is the one way into the read model: watch events, lists and patch results all come
// through here. What is not news changes nothing. The caller holds the mutex.
func (m *Model) write(c change) error {
	key := types.NamespacedName{Namespace: c.object.GetNamespace(), Name: c.object.GetName()}
	state := version{uid: c.object.GetUID(), rv: c.object.GetResourceVersion()}
	known := m.versions[c.kind]
	settle := known.put
	if c.deleted {
		settle = known.remove
	}
	news, err := settle(key, state, m.clock.Now())
	if err != nil {
		return fmt.Errorf("%s of %s: %w", key, c.kind, err)
	}
	if news {
		m.take(c, key)
	}
	return nil
}

// take brings the partition up to a change that is news.
func (m *Model) take(c change, key types.NamespacedName) {
	switch c.kind {
	case organizations:
		m.takeOrganization(c, key.Name)
	case repositories:
		m.takeRepository(c, key)
	case projects:
		m.takeProject(c, key)
	case findings:
		m.takeFinding(c, key)
	}
	if p := m.partitions[key.Namespace]; p != nil && p.empty() {
		delete(m.partitions, key.Namespace)
	}
}

func (m *Model) takeOrganization(c change, name string) {
	before, after := m.namespaces[name], ""
	if organization, ok := c.object.(*v1alpha1.Organization); ok && !c.deleted {
		after = organization.Status.Namespace
	}
	if before == after {
		return
	}
	if after == "" {
		delete(m.namespaces, name)
	} else {
		m.namespaces[name] = after
	}
	for _, namespace := range []string{before, after} {
		if namespace != "" {
			m.settleOwner(namespace)
		}
	}
	m.publishOrganizations()
}

func (m *Model) takeRepository(c change, key types.NamespacedName) {
	p := m.partition(key.Namespace)
	before, after := p.repositories[key.Name], (*render.Repository)(nil)
	if repository, ok := c.object.(*v1alpha1.Repository); ok && !c.deleted {
		after = render.NewRepository(repository)
	}
	if after.Equal(before) {
		return
	}
	if after == nil {
		delete(p.repositories, key.Name)
	} else {
		p.repositories[key.Name] = after
	}
	m.enqueue(rejoin{namespace: key.Namespace, field: repoField, name: key.Name})
}

func (m *Model) takeProject(c change, key types.NamespacedName) {
	p := m.partition(key.Namespace)
	before, after := p.projects[key.Name], (*render.Project)(nil)
	if project, ok := c.object.(*v1alpha1.Project); ok && !c.deleted {
		after = render.NewProject(project)
	}
	if after.Equal(before) {
		return
	}
	if after == nil {
		delete(p.projects, key.Name)
	} else {
		p.projects[key.Name] = after
	}
	m.enqueue(rejoin{namespace: key.Namespace, field: projectField, name: key.Name})
}

func (m *Model) takeFinding(c change, key types.NamespacedName) {
	p := m.partition(key.Namespace)
	object, ok := c.object.(*v1alpha1.Finding)
	if c.deleted || !ok {
		p.hide(key.Name)
		m.signal()
		return
	}
	finding := &held{object: trim(object), updatedAt: m.updatedAt(object, p.findings[key.Name])}
	p.findings[key.Name] = finding
	if p.view == nil {
		return
	}
	item, err := p.jobFor(finding.object, finding.updatedAt).render()
	if err != nil {
		m.log.Error(err, "A finding is left out of the REST API", "namespace", key.Namespace, "finding", key.Name)
		p.hide(key.Name)
		return
	}
	p.show(finding, item)
	m.signal()
}

// updatedAt is the time to show for a new state of a finding. It never goes back as long as
// the object is the same.
func (m *Model) updatedAt(object *v1alpha1.Finding, before *held) time.Time {
	updatedAt := findingstate.UpdatedAt(object, m.clock.Now()).Time
	if before != nil && before.object.UID == object.UID && updatedAt.Before(before.updatedAt) {
		return before.updatedAt
	}
	return updatedAt
}

// trim returns the object without what is neither shown nor needed to decide on a patch.
func trim(object *v1alpha1.Finding) *v1alpha1.Finding {
	return &v1alpha1.Finding{
		ObjectMeta: metav1.ObjectMeta{
			Name:              object.Name,
			Namespace:         object.Namespace,
			UID:               object.UID,
			ResourceVersion:   object.ResourceVersion,
			Generation:        object.Generation,
			CreationTimestamp: object.CreationTimestamp,
		},
		Spec: object.Spec,
	}
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
