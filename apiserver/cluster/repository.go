package cluster

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// RepositoriesNamed returns the ids of the repositories that are stored with the full name now, sorted, and the ids of
// those that cannot be read, which may have it. All are listed, because the API server's selectors compare the case of
// letters.
func (c *Client) RepositoriesNamed(ctx context.Context, namespace, fullName string) (ids, unreadable []string,
	err error) {
	err = listAll[*v1alpha1.Repository](ctx, c, namespace, "repositories", func(object runtime.Object) error {
		switch stored := object.(type) {
		case *v1alpha1.Repository:
			if provision.SameName(stored.Spec.FullName, fullName) {
				ids = append(ids, stored.Name)
			}
		case *kube.Unreadable:
			unreadable = append(unreadable, stored.Name)
		}
		return nil
	})
	slices.Sort(ids)
	return ids, unreadable, err
}
