package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// restClient calls the REST API as any client would: it has only the address and the key.
type restClient struct{ apiclient.Client }

func newRESTClient(r *run) *restClient {
	return &restClient{apiclient.Client{Base: r.env["FINDINGS_URL"], Token: r.env["FINDINGS_API_KEY"]}}
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

func (c *restClient) decode(t *testing.T, method, path string, body map[string]string, into any) {
	t.Helper()
	content := ""
	if body != nil {
		content = string(harness.JSON(t, body))
	}
	answer, err := c.Do(t.Context(), method, path, content)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if answer.Status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
	}
	if err := json.Unmarshal(answer.Body, into); err != nil {
		t.Fatalf("%s %s answered %q: %v", method, path, answer.Body, err)
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
