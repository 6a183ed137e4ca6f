package readmodel

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// preparedFinding is a finding that was rendered before taking the mutex, which is most of the work of a write. It
// keeps only the object's metadata that decide whether it is newer.
type preparedFinding struct {
	metav1.ObjectMeta

	stored    *stored
	updatedAt stamp
	// err is why it cannot be rendered.
	err error
	// raw is the object itself if it was not newer, and so was not rendered.
	raw *v1alpha1.Finding
}

// GetObjectKind implements runtime.Object, so that lists can hold it.
func (*preparedFinding) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. It returns p, because p never changes.
func (p *preparedFinding) DeepCopyObject() runtime.Object { return p }

// preRender does the work on an object that does not need the mutex. The caller must not hold it.
func (m *Model) preRender(object metav1.Object) metav1.Object {
	finding, ok := object.(*v1alpha1.Finding)
	if !ok {
		return object
	}
	if !m.isNews(findings, finding) {
		return &preparedFinding{ObjectMeta: trimmed(&finding.ObjectMeta), raw: finding}
	}
	return m.renderFinding(finding)
}

// isNews reports whether the held state of an object differs from this one.
func (m *Model) isNews(kind kind, object metav1.Object) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.versions[kind].Holds(object)
}

func (m *Model) renderFinding(object *v1alpha1.Finding) *preparedFinding {
	prepared := &preparedFinding{
		ObjectMeta: trimmed(&object.ObjectMeta),
		updatedAt:  m.stamp(object),
	}
	prepared.Namespace = shared(object.Namespace)
	rendered, err := render.NewFinding(object)
	if err != nil {
		prepared.err = err
		return prepared
	}
	spec := &object.Spec
	common := traitsOf(spec)
	created := render.Timestamp(findingstate.CreatedAt(object).Time)
	prepared.stored = &stored{
		ID:              object.Name,
		graded:          gradeOf(spec.Details.Severity, common.Value().score) + created,
		RepoID:          shared(spec.RepositoryRef.Name),
		ProjectID:       shared(spec.ProjectRef.Name),
		Class:           shared(spec.Class),
		Status:          shared(findingstate.State(object)),
		UserStatus:      shared(findingstate.UserStatus(object)),
		Severity:        shared(spec.Details.Severity),
		Stale:           findingstate.Stale(object),
		Suppressed:      spec.Suppression != nil,
		Basis:           findingstate.Basis(spec),
		namespace:       prepared.Namespace,
		uid:             object.UID,
		resourceVersion: object.ResourceVersion,
		recorded:        prepared.updatedAt.recorded,
		comments:        unique.Make(spec.Triage.Comments),
		declared:        spec.Triage.Basis,
		grounds:         groundsOf(object),
		rendered:        rendered,
		traits:          common,
		policy:          unique.Make(string(findingstate.DecidingPolicy(object))),
		text:            findingquery.Text(&spec.Details),
		path:            shared(spec.Details.Place().FilePath),
		history:         render.NewHistory(findingstate.Recorded(object).Status.Transitions),
	}
	if s := prepared.stored; s.declared == s.Basis {
		s.declared = s.Basis // usually they are equal, and share memory then
	}
	return prepared
}

// shared returns a text that many objects have, stored once.
func shared[T ~string](text T) string { return unique.Make(string(text)).Value() }
