package readmodel

import (
	"sync/atomic"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// partition is what is known of a namespace. The model's mutex guards it.
//
// What is held is kept whether or not an organization owns the namespace; it is rendered and
// indexed only while one does.
type partition struct {
	namespace    string
	findings     map[string]*held
	projects     map[string]*render.Project
	repositories map[string]*render.Repository

	// view is what readers see, nil while no organization owns the namespace.
	view  *view
	index *index
	// dirty says that the index has changed since it was published.
	dirty bool
}

// held is a finding as it was last seen. Only item ever changes.
type held struct {
	object    *v1alpha1.Finding
	updatedAt time.Time
	// item is nil until the finding is rendered.
	item *Item
}

// view belongs to one organization for good: when its namespace changes hands the next owner
// gets another, so that a reader who came by an organization's name can never see what is
// rendered for the next.
type view struct {
	organization string
	namespace    string
	snapshot     atomic.Pointer[index]
}

func newPartition(namespace string) *partition {
	return &partition{
		namespace:    namespace,
		findings:     map[string]*held{},
		projects:     map[string]*render.Project{},
		repositories: map[string]*render.Repository{},
	}
}

// claim gives the partition to an organization, or takes it from all where that is "".
// It reports whether the owner is another than before.
func (p *partition) claim(organization string) bool {
	if organization == p.organization() {
		return false
	}
	for _, finding := range p.findings {
		finding.item = nil
	}
	p.view, p.index, p.dirty = nil, nil, false
	if organization != "" {
		p.view, p.index = &view{organization: organization, namespace: p.namespace}, newIndex()
		p.publish()
	}
	return true
}

// organization that owns the namespace; "" where none does.
func (p *partition) organization() string {
	if p.view == nil {
		return ""
	}
	return p.view.organization
}

// publish shows readers the index as it is now.
func (p *partition) publish() {
	if p.view != nil {
		p.view.snapshot.Store(p.index.snapshot())
	}
	p.dirty = false
}

// empty reports whether the partition may be forgotten.
func (p *partition) empty() bool {
	return p.view == nil && len(p.findings)+len(p.projects)+len(p.repositories) == 0
}

// show puts an item of a held finding into the index.
func (p *partition) show(finding *held, item *Item) {
	finding.item = item
	p.index.put(item)
	p.dirty = true
}

// hide takes a finding out.
func (p *partition) hide(name string) {
	delete(p.findings, name)
	if p.index != nil {
		p.index.remove(name)
		p.dirty = true
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
		project:      p.projects[string(object.Spec.ProjectRef.Name)],
		repository:   p.repositories[string(object.Spec.RepositoryRef.Name)],
	}
}

// current reports whether a finding is shown with what there is to join now. What is joined
// is replaced only where findings would show the difference, so pointers tell.
func (p *partition) current(finding *held) bool {
	spec := &finding.object.Spec
	return finding.item != nil &&
		finding.item.project == p.projects[string(spec.ProjectRef.Name)] &&
		finding.item.repository == p.repositories[string(spec.RepositoryRef.Name)]
}
