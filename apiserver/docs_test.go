package apiserver

import (
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestTheDocumentationNeedsNoOtherHost(t *testing.T) {
	f := facadeOf(t, 2000)
	get := func(path string, want int, mediaType string) *httptest.ResponseRecorder {
		t.Helper()
		answer := answerOf(f, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)) // without a key
		harness.Same(t, path, want, answer.Code)
		harness.Same(t, path+": Content-Type", mediaType, answer.Header().Get("Content-Type"))
		return answer
	}
	page := get("/docs", http.StatusOK, "text/html; charset=utf-8")
	policy := page.Header().Get("Content-Security-Policy")
	harness.Contains(t, "the policy", policy, "default-src 'none'")
	harness.Lacks(t, "the policy", policy, "http")
	harness.Lacks(t, "the page names no other host", page.Body.String(), "//")
	mediaTypes := map[string]string{
		".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".png": "image/png",
	}
	for _, match := range regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(page.Body.String(), -1) {
		get("/"+match[1], http.StatusOK, mediaTypes[path.Ext(match[1])])
	}
	script := get("/docs/start.js", http.StatusOK, mediaTypes[".js"]).Body.String()
	harness.Contains(t, "the script", script, `url: "openapi.json"`, "validatorUrl: null")
	get("/docs/", http.StatusUnauthorized, "application/json") // a path that does not exist needs a key
}
