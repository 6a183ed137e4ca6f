package uploads

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// storing returns a service whose API server holds so many succeeded Scans of one upload and returns at most perPage in
// a response, and a function that returns how many it has returned. It refuses the first continue token as
// expired, with one that continues at the same place.
func storing(t *testing.T, n, perPage int) (*Service, func() int) {
	t.Helper()
	sent, expired := 0, false
	url := harness.ServeJSON(t, func(r *http.Request) (code int, content any) {
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		if from > 0 && !expired {
			expired = true
			refusal := apierrors.NewResourceExpired("the list is too old")
			refusal.ErrStatus.Continue = strconv.Itoa(from)
			return harness.Refusal(refusal)
		}
		to := min(n, from+perPage)
		if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 {
			to = min(to, from+limit)
		}
		list := v1alpha1.ScanList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ScanList"}}
		if to < n {
			list.Continue = strconv.Itoa(to)
		}
		for i := from; i < to; i++ {
			scan := v1alpha1.Scan{
				TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Scan"},
				ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprintf("s-%05d", i), Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}"},
					ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "scanner/gosec"}},
				},
			}
			scan.Spec.Outcome, scan.Spec.Upload = v1alpha1.ScanSucceeded, &v1alpha1.ScanUpload{ID: "u-1", Scans: int32(n)}
			list.Items = append(list.Items, scan)
		}
		sent += len(list.Items)
		return http.StatusOK, list
	})
	reader, err := kube.NewReader(&rest.Config{Host: url})
	harness.Must(t, err)
	return &Service{reader: reader}, func() int { return sent }
}

func TestAnUploadWithTooManyScansIsNotReadWhole(t *testing.T) {
	s, sent := storing(t, 5000, 20)
	upload, err := s.Get(t.Context(), "org-acme", "u-1")
	harness.Must(t, err)
	if upload.Status != nil || len(upload.Scans) != maxScans || len(upload.Warnings) != 1 {
		t.Errorf("status %v, %d scans, warnings %q; want no status, %d scans and a warning",
			upload.Status, len(upload.Scans), upload.Warnings, maxScans)
	}
	harness.Same(t, "scan count", maxScans, int(upload.ScanCount))
	if sent() > 2*maxScans {
		t.Errorf("%d Scans were read", sent())
	}
}

func TestALargeUploadIsReadPageByPage(t *testing.T) {
	s, _ := storing(t, maxScans, 20)
	upload, err := s.Get(t.Context(), "org-acme", "u-1")
	harness.Must(t, err)
	harness.Same(t, "status", new(openapi.ScanStatusCompleted), upload.Status)
	harness.Same(t, "scans", maxScans, len(upload.Scans))
}

func TestScansOfAnUploadAreTrimmed(t *testing.T) {
	s, _ := storing(t, 1, 1)
	scans, err := s.scansOf(t.Context(), "org-acme", "u-1")
	harness.Must(t, err)
	if len(scans) != 1 || scans[0].Annotations != nil || scans[0].ManagedFields != nil {
		t.Errorf("got %+v", scans)
	}
}
