package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// restClient calls the REST API as any client would: it has only the address and the key.
type restClient struct {
	base, key string
	http      *http.Client
}

func newRESTClient(r *run) *restClient {
	return &restClient{base: r.env["FINDINGS_URL"], key: r.env["FINDINGS_API_KEY"], http: &http.Client{Timeout: 20 * time.Second}}
}

// call returns the status and the body; an error means that no complete answer arrived.
func (c *restClient) call(ctx context.Context, method, path string, body any) (int, []byte, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return harness.Answer(c.http, request)
}

// item is a finding as a client sees it.
type item map[string]any

func (i item) text(member string) string {
	text, _ := i[member].(string)
	return text
}

// list walks every page of a list, at least two items at a time, and checks the guarantees of a walk.
func (c *restClient) list(t *testing.T, path string, size int) []item {
	t.Helper()
	var all []item
	seen := map[string]bool{}
	for cursor := ""; ; {
		var page struct {
			HasMore    bool   `json:"has_more"`
			Items      []item `json:"items"`
			NextCursor string `json:"next_cursor"`
			Total      int    `json:"total"`
		}
		c.get(t, fmt.Sprintf("%s?size=%d&cursor=%s", path, size, url.QueryEscape(cursor)), &page)
		for _, finding := range page.Items {
			if id := finding.text("id"); seen[id] {
				t.Fatalf("GET %s lists %s twice", path, id)
			} else {
				seen[id] = true
			}
		}
		all = append(all, page.Items...)
		if !page.HasMore {
			if page.Total != len(all) {
				t.Fatalf("GET %s: total is %d, and the pages hold %d", path, page.Total, len(all))
			}
			return all
		}
		cursor = page.NextCursor
	}
}

func (c *restClient) get(t *testing.T, path string, into any) {
	t.Helper()
	c.decode(t, http.MethodGet, path, nil, into)
}

func (c *restClient) patch(t *testing.T, path string, body map[string]string) item {
	t.Helper()
	var finding item
	c.decode(t, http.MethodPatch, path, body, &finding)
	return finding
}

func (c *restClient) decode(t *testing.T, method, path string, body, into any) {
	t.Helper()
	status, answer, err := c.call(t.Context(), method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatalf("%s %s answered %q: %v", method, path, answer, err)
	}
}

// find returns the finding with an id from the v1 list.
func (c *restClient) find(t *testing.T, id string) item {
	t.Helper()
	for _, finding := range c.list(t, "/v1/findings", 1000) {
		if finding.text("id") == id {
			return finding
		}
	}
	t.Fatalf("GET /v1/findings does not list %s", id)
	return nil
}
