package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

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
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	keep := readable(func(project *v1alpha1.Project) error {
		stored = project
		return nil
	})
	err = selected[*v1alpha1.Project](ctx, c, namespace, projectNoun, named, keep)
	if err == nil && stored == nil {
		err = problem.NotFound(projectNoun)
	}
	return stored, err
}
