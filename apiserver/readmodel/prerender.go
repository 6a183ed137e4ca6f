package readmodel

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// preparedFinding is a finding that was rendered before the mutex is taken, which is most of the
// work of a write. Of the object it has only the metadata that decide what is news.
type preparedFinding struct {
	metav1.ObjectMeta

	stored    *stored
	updatedAt stamp
	// err says why it cannot be rendered.
	err error
	// raw is the object itself where it was no news, and so not worth rendering.
	raw *v1alpha1.Finding
}

// GetObjectKind is part of runtime.Object, as which lists hold it.
func (*preparedFinding) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject is part of runtime.Object. What is prepared never changes.
func (p *preparedFinding) DeepCopyObject() runtime.Object { return p }

// preRender does with an object what can be done without the mutex. The caller does not hold it.
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

// isNews reports whether an object would change what is held now.
func (m *Model) isNews(kind kind, object metav1.Object) bool {
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	m.mu.Lock()
	defer m.mu.Unlock()
	held, ok := m.versions[kind].live[key]
	return !ok || held.rv != object.GetResourceVersion() || held.uid != object.GetUID()
}

func (m *Model) renderFinding(object *v1alpha1.Finding) *preparedFinding {
	prepared := &preparedFinding{
		ObjectMeta: trimmed(&object.ObjectMeta),
		updatedAt:  m.stamp(object, object.Status.ObservedGeneration, object.Status.UpdatedAt),
	}
	prepared.Namespace = shared(object.Namespace)
	rendered, err := render.NewFinding(object)
	if err != nil {
		prepared.err = err
		return prepared
	}
	spec := &object.Spec
	prepared.stored = &stored{
		ID:              object.Name,
		CreatedAt:       render.Timestamp(findingstate.CreatedAt(object).Time),
		RepoID:          shared(spec.RepositoryRef.Name),
		ProjectID:       shared(spec.ProjectRef.Name),
		Class:           shared(spec.Class),
		Status:          shared(findingstate.State(spec)),
		UserStatus:      shared(findingstate.UserStatus(spec)),
		Severity:        shared(spec.Details.Severity),
		namespace:       prepared.Namespace,
		uid:             object.UID,
		resourceVersion: object.ResourceVersion,
		recorded:        prepared.updatedAt.recorded,
		comments:        spec.Triage.Comments,
		rendered:        rendered,
	}
	return prepared
}

// shared is a text that many objects have, kept once.
func shared[T ~string](text T) string { return unique.Make(string(text)).Value() }
