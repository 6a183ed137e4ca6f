package apiserver

import (
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
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
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "http") {
		t.Errorf("the policy is %q", policy)
	}
	if strings.Contains(page.Body.String(), "//") {
		t.Errorf("the page names another host:\n%s", page.Body)
	}
	mediaTypes := map[string]string{
		".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".png": "image/png",
	}
	for _, match := range regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(page.Body.String(), -1) {
		get("/"+match[1], http.StatusOK, mediaTypes[path.Ext(match[1])])
	}
	script := get("/docs/start.js", http.StatusOK, mediaTypes[".js"]).Body.String()
	if !strings.Contains(script, `url: "openapi.json"`) || !strings.Contains(script, "validatorUrl: null") {
		t.Errorf("the script is\n%s", script)
	}
	get("/docs/", http.StatusUnauthorized, "application/json") // a path that does not exist needs a key
}
