package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// start starts a PostgreSQL, or skips the test if none is installed.
func start(t *testing.T) *Server {
	t.Helper()
	server, err := Start(t.Context())
	if errors.Is(err, ErrMissing) {
		needs.Missing(t, "%v", err)
	}
	harness.Must(t, err)
	t.Cleanup(func() {
		harness.NoError(t, "stop", server.Stop())
		if _, err := os.Stat(server.folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", server.folder, err)
		}
	})
	return server
}

// item returns the i-th of 250 items, newest first; each time is shared by two items.
func item(i int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"id":"x-%03d","created_at":"2026-03-01T12:%02d:%02dZ","updated_at":"2026-03-01T12:%02d:%02dZ","pr_status":%q,"open_issue_count":%d,"last_review_at":null}`,
		249-i, (249-i)/2/60, (249-i)/2%60, (249-i)/2/60, (249-i)/2%60, []string{"open", "merged"}[i%2], i%50))
}

// acme has the same 250 rows for each kind.
func acme() Source {
	return Source{
		Organization: "acme", Singles: []Single{{"issues", "i-1", "/v2/issues/i-1"}, {"projects", "p", "/v2/repos/r/projects/p"}},
		Get: func(path string) ([]byte, error) { return []byte(`{"id":"` + path + `"}`), nil },
		Walk: func(_ string, each func(json.RawMessage) error) error {
			for i := range 250 {
				if err := each(item(i)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

type page struct {
	Items      []json.RawMessage `json:"items"`
	HasMore    bool              `json:"has_more"`
	NextCursor string            `json:"next_cursor"`
	Total      int               `json:"total"`
}

func get(t *testing.T, handler http.Handler, path string) []byte {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	if recorder.Code != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, recorder.Code, recorder.Body)
	}
	return recorder.Body.Bytes()
}

func list(t *testing.T, handler http.Handler, path string) page {
	t.Helper()
	return harness.Decoded[page](t, get(t, handler, path))
}

func TestItAnswersWithTheRowsItWasGivenPageByPage(t *testing.T) {
	server := start(t)
	harness.Must(t, server.Load(t.Context(), acme()))
	handler, err := Handler(t.Context(), server.DSN, "acme")
	harness.Must(t, err)
	for _, path := range []string{"/v1/findings?size=100", "/v2/repos?size=100", "/v1/reviews?size=100"} {
		var got []string
		for at := path; at != ""; {
			p := list(t, handler, at)
			for _, item := range p.Items {
				got = append(got, string(item))
			}
			if p.Total != 250 || p.HasMore != (p.NextCursor != "") {
				t.Fatalf("%s: %d in all, more: %t, cursor %q", at, p.Total, p.HasMore, p.NextCursor)
			}
			at = ""
			if p.HasMore {
				at = path + "&cursor=" + p.NextCursor
			}
		}
		if len(got) != 250 {
			t.Fatalf("%s has %d rows", path, len(got))
		}
		for i := range got {
			if got[i] != string(item(i)) {
				t.Fatalf("%s: row %d is %s, not %s", path, i, got[i], item(i))
			}
		}
	}
	for path, want := range map[string]int{
		"status=open": 125, "custom=open_with_issues": 120, "custom=merged_with_issues": 125, "custom=reviewed": 0, "custom=not_reviewed": 250,
		"start_time=2026-03-01T12:02:00Z": 10, "end_time=2026-03-01T12:00:01Z": 2, "status=open&start_time=2026-03-01T12:02:00Z&end_time=2026-03-01T12:02:01Z": 1,
	} {
		p := list(t, handler, "/v1/reviews?size=100&"+path)
		if len(p.Items) != min(want, 100) || len(p.Items) > 0 && p.Total != want {
			t.Errorf("%s: %d rows of %d, want %d", path, len(p.Items), p.Total, want)
		}
	}
	for _, path := range []string{"/v2/issues/i-1", "/v2/projects/p", "/v2/findings/x-007"} {
		harness.Contains(t, path, string(get(t, handler, path)), `"id":`)
	}
}
