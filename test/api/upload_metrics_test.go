package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/apiserver/uploads"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// metrics returns the values of the server's metrics, by their names with their labels.
func (s *server) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	_, metrics, err := s.health(t.Context(), "/metrics")
	harness.Must(t, err)
	values, err := harness.Values(metrics)
	harness.Must(t, err)
	return values
}

// ofUploads returns the server's counters of uploads.
func (s *server) ofUploads(t *testing.T) map[string]float64 {
	t.Helper()
	values := s.metrics(t)
	maps.DeleteFunc(values, func(name string, _ float64) bool {
		return !strings.HasPrefix(name, "findings_upload") || strings.Contains(name, "_bucket") || strings.Contains(name, "_sum")
	})
	return values
}

func TestUploadsAreCounted(t *testing.T) {
	_, c := bounded(t, uploads.Limits{Total: 2, PerOrganization: 1, Bytes: 2 << 20})
	want := map[string]float64{
		"findings_uploads_accepted_total": 0, "findings_uploads_running": 0, "findings_uploads_waiting": 0,
		"findings_upload_duration_seconds_count": 0, "findings_upload_bytes_total": 0,
	}
	label := func(metric, label string, values ...string) {
		for _, value := range values {
			want[fmt.Sprintf("%s{%s=%q}", metric, label, value)] = 0
		}
	}
	label("findings_uploads_refused_total", "reason", "organization_limit", "replica_limit", "organization_memory",
		"replica_memory", "too_long", "too_slow", "interrupted", "malformed", "not_admitted", "stopping")
	label("findings_uploads_ended_total", "outcome", "completed", "previewed", "refused", "busy", "stopped", "failed")
	label("findings_upload_results_total", "action", "created", "updated", "reopened", "unchanged", "closed", "skipped")
	harness.Same(t, "metrics before the first upload", want, c.server.ofUploads(t))

	first, preview := sarif("one", "two"), sarif("one", "three")
	c.upload("", first).wants(http.StatusOK, "the first")
	c.upload("?dry_run=true", preview).wants(http.StatusOK, "a dry run")
	c.upload("?started_at=2020-01-01T00:00:00Z", first).wants(http.StatusConflict, "one that is older")
	c.upload("", preview).wants(http.StatusOK, "one that closes")
	c.upload("", "no SARIF").wants(http.StatusBadRequest, "what is no SARIF")
	c.upload("?fail_on=new", first).wants(http.StatusBadRequest, "a gate without a pull request")
	c.upload("?pull_request=1", first).wants(http.StatusBadRequest, "a pull request without a commit")
	want["findings_uploads_accepted_total"], want["findings_upload_duration_seconds_count"] = 4, 4
	want["findings_upload_bytes_total"] = float64(3*len(first) + 2*len(preview) + len("no SARIF"))
	want[`findings_uploads_refused_total{reason="malformed"}`] = 3
	want[`findings_uploads_ended_total{outcome="completed"}`] = 2
	want[`findings_uploads_ended_total{outcome="previewed"}`] = 1
	want[`findings_uploads_ended_total{outcome="refused"}`] = 1
	want[`findings_upload_results_total{action="created"}`] = 3
	want[`findings_upload_results_total{action="unchanged"}`] = 1
	want[`findings_upload_results_total{action="closed"}`] = 1
	harness.Eventually(t, func(g Gomega) { g.Expect(cmp.Diff(want, c.server.ofUploads(t))).To(BeEmpty()) })
}
