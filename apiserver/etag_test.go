package apiserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A client learns from the contract which reads may be conditional.
func TestTheContractDescribesTheTagOfEachReadThatHasOne(t *testing.T) {
	at := time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC)
	scan := builder.Scan("scan", at).Project("repo", "proj").In(acmeNamespace).Build()
	scan.Spec.Upload = &v1alpha1.ScanUpload{ID: "upload", Scans: 1}
	routes := serverOf(t, nothingStored{}, scan,
		builder.Repository("repo").In(acmeNamespace).Build(),
		builder.Project("proj").In(acmeNamespace).Build(),
		builder.Finding("finding").In(acmeNamespace).Project("repo", "proj").Build(),
		builder.Review("review").In(acmeNamespace).PullRequest("repo", 1).Reviewed("sha-1", at).Build(),
		builder.ReviewIssue("issue").In(acmeNamespace).Review("review").SeenIn("sha-1").Build(),
		builder.WebhookDelivery("delivery", at).In(acmeNamespace).Build(),
	)
	ids := strings.NewReplacer("{repo_id}", "repo", "{project_id}", "proj", "{finding_id}", "finding", "{sarif_id}", "upload",
		"/findings/{id}", "/findings/finding", "/repos/{id}", "/repos/repo", "/uploads/{id}", "/uploads/upload",
		"/scans/{id}", "/scans/scan", "issues/{id}", "issues/issue", "/reviews/{id}", "/reviews/review",
		"/webhook-deliveries/{id}", "/webhook-deliveries/delivery")
	spec, err := openapi.Load()
	harness.Must(t, err)
	for path, described := range spec.Paths.Map() {
		if described.Get == nil || path == "/v2/events" || path == "/v2/api-keys" { // a stream, and a list of the authenticator
			continue
		}
		answer := httptest.NewRecorder()
		routes.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, ids.Replace(path), http.NoBody))
		_, tagged := described.Get.Responses.Value("200").Value.Headers["etag"]
		if tagged && answer.Code != http.StatusOK {
			t.Errorf("%s: %d %s: add the object and its id above", path, answer.Code, answer.Body)
		}
		if answer.Code == http.StatusOK {
			harness.Same(t, path+" has a tag: describe if-none-match, the header etag and 304, or return untagged",
				tagged, answer.Header().Get("Etag") != "")
		}
		harness.Same(t, path+" describes the header etag, and so 304", tagged, described.Get.Responses.Value("304") != nil)
		harness.Same(t, path+" describes the header etag, and so if-none-match", tagged,
			described.Get.Parameters.GetByInAndName("header", openapi.HeaderIfNoneMatch) != nil)
	}
}
