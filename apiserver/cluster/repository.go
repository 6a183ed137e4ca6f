package cluster

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// mostNamed bounds the repositories that are read by a full name. Repositories on several hosts may share one.
const mostNamed = 100

// RepositoriesNamed returns the ids of at most mostNamed repositories that are stored with the full name now, sorted.
// The API server selects them, so the case of letters counts, unlike in the read model.
func (c *Client) RepositoriesNamed(ctx context.Context, namespace, fullName string) (ids []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	named := metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.fullName", fullName).String(), Limit: mostNamed,
	}
	_, err = sourceOf[*v1alpha1.Repository](c, namespace).List(ctx, named, func(object runtime.Object) error {
		if repository, readable := object.(*v1alpha1.Repository); readable {
			ids = append(ids, repository.Name)
		}
		return nil
	})
	if err != nil {
		return nil, problem.TryAgain("the repository could not be read", err)
	}
	slices.Sort(ids)
	return ids, nil
}
