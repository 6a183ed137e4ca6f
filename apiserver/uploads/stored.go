package uploads

import (
	"context"
	"fmt"

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

// textTooMany is the warning for an upload with more Scans than an import stores.
const textTooMany = "more than %[1]d scans, the most that an upload stores, have the id of this upload: " +
	"only %[1]d are listed, and the status is not known"

// Get returns an upload of the organization in the namespace as it is stored now: the watch may deliver it to this
// replica later. Whoever may create Scans can give any number of them the same id: of more than maxScans, some are
// shown, without a status.
func (s *Service) Get(ctx context.Context, namespace, id string) (*openapi.Upload, error) {
	if len(validation.IsDNS1123Label(id)) > 0 {
		return nil, problem.NotFound("upload") // no upload can have that id
	}
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	scans, err := s.scansOf(ctx, namespace, id)
	switch {
	case err != nil:
		return nil, problem.TryAgain("the upload could not be read", err)
	case len(scans) == 0:
		return nil, problem.NotFound("upload")
	case len(scans) > maxScans:
		upload := render.Upload(scans[:maxScans])
		upload.ScanCount = min(upload.ScanCount, maxScans)
		upload.Status, upload.Warnings = nil, append(upload.Warnings, fmt.Sprintf(textTooMany, maxScans))
		return &upload, nil
	}
	return new(render.Upload(scans)), nil
}

// scansOf returns the trimmed Scans of an upload; of more than maxScans, the first maxScans+1.
func (s *Service) scansOf(ctx context.Context, namespace, id string) (scans []*v1alpha1.Scan, err error) {
	kind, _ := kube.KindOf(&v1alpha1.Scan{})
	options := metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.upload.id", id).String(),
		Limit:         maxScans + 1,
	}
	err = kube.Pages(func(token string) (next string, err error) {
		options.Continue = token
		page, err := s.reader.In(namespace, kind).List(ctx, options, func(object runtime.Object) error {
			if scan, readable := object.(*v1alpha1.Scan); readable && len(scans) <= maxScans {
				kube.Trim(scan)
				scans = append(scans, scan)
			}
			return nil
		})
		if len(scans) > maxScans {
			return "", err
		}
		return page.Continue, err
	})
	return scans, err
}
