package apiclient

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestAnAnswerThatViolatesTheContractIsNoticed(t *testing.T) {
	const (
		list = `{"items":[],"has_more":false,"next_cursor":"","total":0}`
		none = `{"error":"Unauthorized","detail":"","code":"%s","field":""}`
		key  = `{"organization_id":"o","key":"ci","scopes":[],"requests_per_minute":9,"requires_reason":false,"expires_at":"%s"}`
	)
	for name, c := range map[string]struct {
		path, body, media, remaining string
		status                       int
		wantError                    bool
	}{
		"as described":          {"/v1/findings", list, jsonMediaType, "1", http.StatusOK, false},
		"a missing member":      {"/v1/findings", `{"items":[],"has_more":false,"next_cursor":""}`, jsonMediaType, "1", http.StatusOK, true},
		"a text for a number":   {"/v1/findings", `{"items":[],"has_more":false,"next_cursor":"","total":"0"}`, jsonMediaType, "1", http.StatusOK, true},
		"an item that is empty": {"/v1/findings", `{"items":[{}],"has_more":false,"next_cursor":"","total":1}`, jsonMediaType, "1", http.StatusOK, true},
		"no JSON":               {"/v1/findings", `{"items":[`, jsonMediaType, "1", http.StatusOK, true},
		"a header out of range": {"/v1/findings", list, jsonMediaType, "-1", http.StatusOK, true},
		"an undescribed status": {"/v1/findings", list, jsonMediaType, "1", http.StatusTeapot, true},
		"another media type":    {"/v1/findings", list, "text/html", "1", http.StatusOK, true},
		"an error of no shape":  {"/v1/findings", list, jsonMediaType, "1", http.StatusUnauthorized, true},
		"an error":              {"/v1/findings", fmt.Sprintf(none, "unauthorized"), jsonMediaType, "1", http.StatusUnauthorized, false},
		"an unlisted code":      {"/v1/findings", fmt.Sprintf(none, "unheard_of"), jsonMediaType, "1", http.StatusUnauthorized, true},
		"a time":                {"/v2/whoami", fmt.Sprintf(key, "2026-01-02T03:04:05Z"), jsonMediaType, "1", http.StatusOK, false},
		"a text for a time":     {"/v2/whoami", fmt.Sprintf(key, "tomorrow"), jsonMediaType, "1", http.StatusOK, true},
		"no error for no path":  {"/v9/nothing", list, jsonMediaType, "1", http.StatusNotFound, true},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+c.path, http.NoBody)
			harness.Must(t, err)
			answer := &Answer{Status: c.status, Body: []byte(c.body), Header: http.Header{
				"X-Request-Id": {"r"}, "X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Remaining": {c.remaining},
				"X-Ratelimit-Reset": {"1"}, "Content-Type": {c.media},
			}}
			if err := Check(request, answer); (err != nil) != c.wantError {
				t.Errorf("error %v, want one: %t", err, c.wantError)
			}
		})
	}
}
