package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The generator takes null for a further value of an enumeration unless it is told the type.
func TestNullIsNoValueOfAnEnumeration(t *testing.T) {
	content, err := os.ReadFile("client.gen.go")
	harness.Must(t, err)
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, `"<nil>"`) {
			t.Errorf("give the enumeration an x-go-type: %s", strings.TrimSpace(line))
		}
	}
}

// A proxy may write these headers in forms of its own.
func TestAHeaderOfAnotherFormHidesNoStatus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Ratelimit-Limit", "100, 100;w=60")
		w.Header().Set("Retry-After", "Sun, 01 Mar 2026 08:00:00 GMT")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":"Rate limit exceeded","detail":"","code":"rate_limited","field":""}`)
	}))
	defer server.Close()
	findings, err := client.New(server.URL, "key")
	harness.Must(t, err)
	result, err := findings.WhoAmIWithResponse(t.Context())
	harness.Must(t, err)
	harness.Same(t, "status", http.StatusTooManyRequests, result.StatusCode())
	if result.JSON429 == nil || result.JSON429.Error != "Rate limit exceeded" {
		t.Errorf("the body is lost: %s", result.Body)
	}
}

// Else one of two clients that are made at the same time could get the key of the other.
func TestNewWritesNothingIntoTheCallersOptions(t *testing.T) {
	shared := append(make([]client.ClientOption, 0, 2), client.WithHTTPClient(http.DefaultClient))
	_, err := client.New("http://nowhere.invalid", "key", shared...)
	harness.Must(t, err)
	if shared[:2][1] != nil {
		t.Error("the key is in the caller's array")
	}
}
