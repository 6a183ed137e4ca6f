package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
)

// restClient calls the REST API as any client does.
type restClient struct {
	base, token string
	http        *http.Client
}

// answer is a response without its status.
type answer struct {
	header http.Header
	body   []byte
}

// call sends body as JSON and returns the status; an error means that no complete answer arrived.
func (c *restClient) call(ctx context.Context, method, path string, body any) (int, answer, error) {
	var content io.Reader = http.NoBody
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, answer{}, err
		}
		content = bytes.NewReader(encoded)
	}
	return c.send(ctx, method, path, "application/json", content)
}

// send is call with a raw body.
func (c *restClient) send(ctx context.Context, method, path, mediaType string, content io.Reader) (int, answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return 0, answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if content != http.NoBody {
		request.Header.Set("Content-Type", mediaType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, answer{}, err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	read, err := io.ReadAll(response.Body)
	return response.StatusCode, answer{header: response.Header, body: read}, err
}

// item holds the members of a finding that the tests use.
type item struct {
	ID         string `json:"id"`
	Status     string `json:"status"`
	UserStatus string `json:"user_status"`
	Comments   string `json:"comments"`
}

// page is a page of a list of findings.
type page struct {
	HasMore    bool   `json:"has_more"`
	Items      []item `json:"items"`
	NextCursor string `json:"next_cursor"`
	Total      int    `json:"total"`
}

func (a answer) item() (item, error) {
	var i item
	return i, json.Unmarshal(a.body, &i)
}

func (a answer) page() (page, error) {
	var p page
	return p, json.Unmarshal(a.body, &p)
}

// detail returns the detail of an error answer.
func (a answer) detail() string {
	var body struct{ Detail string }
	if json.Unmarshal(a.body, &body) != nil {
		return string(a.body)
	}
	return body.Detail
}

func findingPath(id string) string {
	return "/v2/repos/" + repository + "/projects/" + project + "/findings/" + id
}
