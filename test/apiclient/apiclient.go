// Package apiclient calls the REST API for tests and holds every answer against openapi.yaml.
package apiclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxAnswer bounds what is read of one answer, in bytes; it is more than any test asks for.
const maxAnswer = 64 << 20

// Client calls one deployment with one key.
type Client struct {
	// Base is the service's address, for example "http://127.0.0.1:8080".
	Base string
	// Token is the API key; none is sent where it is empty.
	Token string
}

// httpClient follows no redirect: the service has none, and a test has to see one.
var httpClient = &http.Client{
	Timeout:       time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Change alters a request before it is sent.
type Change func(*http.Request)

// Header sets a header.
func Header(name, value string) Change {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// Without leaves a header out.
func Without(name string) Change {
	return func(r *http.Request) { r.Header.Del(name) }
}

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Uncompressed says that the body came compressed; Body is what it held.
	Uncompressed bool
}

// Do sends a request. A body goes as JSON, unless a change says otherwise. The error of an
// answer that is not as the contract says comes with the answer.
func (c *Client) Do(ctx context.Context, method, path, body string, changes ...Change) (*Answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Base, "/")+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, change := range changes {
		change(request)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	answer := &Answer{Status: response.StatusCode, Header: response.Header, Body: content,
		Uncompressed: response.Uncompressed}
	if err := Check(request, answer); err != nil {
		return answer, fmt.Errorf("answer %d %.300q is not as the contract says: %w", answer.Status, content, err)
	}
	return answer, nil
}
