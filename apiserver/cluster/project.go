package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const projectNoun = "project"

// Project returns the project as it is stored now. It lists the one name, because the facade may list projects but not
// get them.
func (c *Client) Project(ctx context.Context, namespace, name string) (stored *v1alpha1.Project, err error) {
	if !kube.IsName(name) {
		return nil, problem.NotFound(projectNoun)
	}
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	_, err = sourceOf[*v1alpha1.Project](c, namespace).List(ctx, named, func(object runtime.Object) error {
		stored, _ = object.(*v1alpha1.Project) // nil if it is unreadable
		return nil
	})
	switch {
	case err != nil:
		return nil, problem.TryAgain("the "+projectNoun+" could not be read", err)
	case stored == nil:
		return nil, problem.NotFound(projectNoun)
	}
	return stored, nil
}
