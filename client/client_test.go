package client_test

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
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
	server := harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Ratelimit-Limit", "100, 100;w=60")
		w.Header().Set("Retry-After", "Sun, 01 Mar 2026 08:00:00 GMT")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":"Rate limit exceeded","detail":"","code":"rate_limited","field":""}`)
	}))
	findings, err := client.New(server, "key")
	harness.Must(t, err)
	result, err := findings.WhoAmIWithResponse(t.Context())
	harness.Must(t, err)
	harness.Same(t, "status", http.StatusTooManyRequests, result.StatusCode())
	if result.JSON429 == nil || result.JSON429.Error != "Rate limit exceeded" {
		t.Errorf("the body is lost: %s", result.Body)
	}
}

// An error is decoded into the field of its status, and a 304 has no body to decode. Preconditions are sent.
func TestEachStatusHasItsField(t *testing.T) {
	var status int
	var condition string
	server := harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		condition = r.Header.Get("If-Match") + r.Header.Get("If-None-Match")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status != http.StatusNotModified {
			fmt.Fprintf(w, `{"error":"Unauthorized","detail":"%d"}`, status)
		}
	}))
	findings, err := client.New(server, "key")
	harness.Must(t, err)
	fields := map[int]func(*client.UpdateFindingV1Result) *client.Error{
		400: func(r *client.UpdateFindingV1Result) *client.Error { return r.JSON400 },
		401: func(r *client.UpdateFindingV1Result) *client.Error { return r.JSON401 },
		403: func(r *client.UpdateFindingV1Result) *client.Error { return r.JSON403 },
		404: func(r *client.UpdateFindingV1Result) *client.Error { return r.JSON404 },
		412: func(r *client.UpdateFindingV1Result) *client.Error { return r.JSON412 },
		429: func(r *client.UpdateFindingV1Result) *client.Error { return r.JSON429 },
		500: func(r *client.UpdateFindingV1Result) *client.Error { return r.JSON500 },
	}
	known := `"abc"`
	match, noneMatch := client.UpdateFindingV1Params{IfMatch: &known}, client.GetFindingV2Params{IfNoneMatch: &known}
	for code, field := range fields {
		status = code
		result, err := findings.UpdateFindingV1WithResponse(t.Context(), "f", &match, client.FindingV1Update{UserStatus: "muted"})
		harness.Must(t, err)
		harness.Same(t, "If-Match", known, condition)
		if got := field(result); got == nil || got.Detail != strconv.Itoa(code) || result.JSON200 != nil {
			t.Errorf("%d is decoded to %+v", code, got)
		}
	}
	status = http.StatusNotModified
	result, err := findings.GetFindingV2WithResponse(t.Context(), "repo", "proj", "f", &noneMatch)
	harness.Must(t, err)
	harness.Same(t, "If-None-Match", known, condition)
	if result.StatusCode() != status || result.JSON200 != nil {
		t.Errorf("304 is decoded to %+v", result.JSON200)
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
