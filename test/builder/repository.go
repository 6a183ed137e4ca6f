package builder

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// RepositoryBuilder builds a Repository.
type RepositoryBuilder struct{ object v1alpha1.Repository }

// Repository starts a repository at provider "github".
func Repository(name string) *RepositoryBuilder {
	return &RepositoryBuilder{object: v1alpha1.Repository{
		TypeMeta:   typeMeta("Repository"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.RepositorySpec{Provider: "github", FullName: "acme/" + name},
	}}
}

// In sets the namespace.
func (b *RepositoryBuilder) In(namespace string) *RepositoryBuilder {
	b.object.Namespace = namespace
	return b
}

// URL sets the repository's page.
func (b *RepositoryBuilder) URL(url string) *RepositoryBuilder {
	b.object.Spec.URL = url
	return b
}

// Mutate changes what has no method of its own.
func (b *RepositoryBuilder) Mutate(change func(*v1alpha1.Repository)) *RepositoryBuilder {
	change(&b.object)
	return b
}

// Build returns the repository.
func (b *RepositoryBuilder) Build() *v1alpha1.Repository { return &b.object }
