package builder

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// ProjectBuilder builds a Project.
type ProjectBuilder struct{ object v1alpha1.Project }

// Project starts a project of repository "repo".
func Project(name string) *ProjectBuilder {
	return &ProjectBuilder{object: v1alpha1.Project{
		TypeMeta:   typeMeta("Project"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ProjectSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "repo"},
			DisplayName:   "Project " + name,
		},
	}}
}

// In sets the namespace.
func (b *ProjectBuilder) In(namespace string) *ProjectBuilder {
	b.object.Namespace = namespace
	return b
}

// Repository sets the repository.
func (b *ProjectBuilder) Repository(name string) *ProjectBuilder {
	b.object.Spec.RepositoryRef.Name = v1alpha1.ResourceName(name)
	return b
}

// User sets the users' assessment of the project.
func (b *ProjectBuilder) User(assessment v1alpha1.ProjectAssessment) *ProjectBuilder {
	b.object.Spec.User = assessment
	return b
}

// Mutate changes what has no method of its own.
func (b *ProjectBuilder) Mutate(change func(*v1alpha1.Project)) *ProjectBuilder {
	change(&b.object)
	return b
}

// Build returns the project.
func (b *ProjectBuilder) Build() *v1alpha1.Project { return &b.object }
