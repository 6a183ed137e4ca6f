package cluster

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// mostNamed bounds the repositories that are read by a full name. Repositories on several hosts may share one.
const mostNamed = 100

// RepositoriesNamed returns the ids of at most mostNamed repositories that are stored with the full name now, sorted.
// The API server selects them, so the case of letters counts, unlike in the read model.
func (c *Client) RepositoriesNamed(ctx context.Context, namespace, fullName string) (ids []string, err error) {
	named := metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.fullName", fullName).String(), Limit: mostNamed,
	}
	err = selected(ctx, c, namespace, "repository", named, func(repository *v1alpha1.Repository) error {
		ids = append(ids, repository.Name)
		return nil
	})
	slices.Sort(ids)
	return ids, err
}

// IsRepositoryNamed reports whether the repository is stored with the full name now, in any case of letters.
func (c *Client) IsRepositoryNamed(ctx context.Context, namespace, name, fullName string) (is bool, err error) {
	one := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	err = selected(ctx, c, namespace, "repository", one, func(repository *v1alpha1.Repository) error {
		is = provision.SameName(repository.Spec.FullName, fullName)
		return nil
	})
	return is, err
}
