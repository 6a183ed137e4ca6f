package builder

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// ProjectBuilder builds a Project.
type ProjectBuilder struct {
	base[*ProjectBuilder, *v1alpha1.Project]
}

// Project starts a project of repository "repo".
func Project(name string) *ProjectBuilder {
	b := &ProjectBuilder{}
	return b.start(b, "Project", name, &v1alpha1.Project{
		Spec: v1alpha1.ProjectSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "repo"},
			DisplayName:   "Project " + name,
		},
	})
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
