// Package apiclient calls the REST API for tests and checks every answer against openapi.yaml.
package apiclient

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxAnswer bounds how much of an answer is read, in bytes; it is more than any test needs.
const maxAnswer = 64 << 20

// Client calls one deployment with one key.
type Client struct {
	// Base is the service's address, for example "http://127.0.0.1:8080".
	Base string
	// Token is the API key; if empty, no key is sent.
	Token string
}

// httpClient follows no redirects: the service sends none, and a test must notice one.
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

// Without removes a header.
func Without(name string) Change {
	return func(r *http.Request) { r.Header.Del(name) }
}

// Gzip compresses a body.
func Gzip(body string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, body)
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err)
	}
	return out.String()
}

// Answer is a response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Uncompressed reports that the body was compressed; Body is the decompressed content.
	Uncompressed bool
}

// Do sends a request. The body is sent as JSON unless a change sets another type. If the answer
// violates the contract, Do returns both the answer and an error.
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
