package reviewimport

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/safely"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// Otherwise its scans would be reported as those of a review that has died, and the cause would be only in the log.
func TestAReviewThatPanicsIsRecordedAsFailed(t *testing.T) {
	var scan v1alpha1.Scan // as it was written last
	c := answeredBy(t, func(r *http.Request) (code int, object any) {
		scan = v1alpha1.Scan{}
		if err := json.NewDecoder(r.Body).Decode(&scan); err != nil {
			t.Error(err)
		}
		return http.StatusOK, &scan
	})
	im, batches := New(c, pr, Options{Record: &Record{}}), []*importer.Batch{{Tool: "lint"}}
	recorder := im.recorder(&Commit{SHA: "c0"}, batches, v1alpha1.ScanLease{})
	err := recorder.during(t.Context(), newSummary(pr, batches), func() error { panic("no such result") })
	if safely.Stack(err) == "" {
		t.Errorf("got %v, want the panic", err)
	}
	if spec := scan.Spec; spec.Outcome != v1alpha1.ScanFailed || !strings.Contains(spec.Message, "panic: no such result") {
		t.Errorf("the scan is %q, and says %q", spec.Outcome, spec.Message)
	}
}
