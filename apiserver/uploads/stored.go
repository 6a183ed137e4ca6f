package uploads

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Get returns an upload of the organization in the namespace as it is stored now: the watch may deliver it to this
// replica later.
func (s *Service) Get(ctx context.Context, namespace, id string) (*openapi.Upload, error) {
	if len(validation.IsDNS1123Label(id)) > 0 {
		return nil, problem.NotFound("upload") // no upload can have that id
	}
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	kind, _ := kube.KindOf(&v1alpha1.Scan{})
	var scans []*v1alpha1.Scan
	_, err := s.reader.In(namespace, kind).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.upload.id", id).String(),
	}, func(object runtime.Object) error {
		if scan, readable := object.(*v1alpha1.Scan); readable {
			scans = append(scans, scan)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, problem.TryAgain("the upload could not be read", err)
	case len(scans) == 0:
		return nil, problem.NotFound("upload")
	}
	return new(render.Upload(scans)), nil
}
