package reviewimport

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/safely"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Otherwise its scans would be reported as those of a review that has died, and the cause would be only in the log.
func TestAReviewThatPanicsIsRecordedAsFailed(t *testing.T) {
	var scan v1alpha1.Scan // as it was written last
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scan = v1alpha1.Scan{}
		if err := json.NewDecoder(r.Body).Decode(&scan); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(&scan); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	c, err := importer.NewClient(&rest.Config{Host: server.URL})
	harness.Must(t, err)
	im, batches := New(c, pr, Options{Record: &Record{}}), []*importer.Batch{{Tool: "lint"}}
	recorder := im.recorder(&Commit{SHA: "c0"}, batches, v1alpha1.ScanLease{})
	err = recorder.during(t.Context(), newSummary(pr, batches), func() error { panic("no such result") })
	if safely.Stack(err) == "" {
		t.Errorf("got %v, want the panic", err)
	}
	if spec := scan.Spec; spec.Outcome != v1alpha1.ScanFailed || !strings.Contains(spec.Message, "panic: no such result") {
		t.Errorf("the scan is %q, and says %q", spec.Outcome, spec.Message)
	}
}
