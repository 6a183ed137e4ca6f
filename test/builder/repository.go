package builder

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// RepositoryBuilder builds a Repository.
type RepositoryBuilder struct {
	base[*RepositoryBuilder, *v1alpha1.Repository]
}

// Repository starts a repository at provider "github".
func Repository(name string) *RepositoryBuilder {
	b := &RepositoryBuilder{}
	return b.start(b, "Repository", name, &v1alpha1.Repository{
		Spec: v1alpha1.RepositorySpec{Provider: "github", FullName: "acme/" + name},
	})
}

// URL sets the repository's page.
func (b *RepositoryBuilder) URL(url string) *RepositoryBuilder {
	b.object.Spec.URL = url
	return b
}
