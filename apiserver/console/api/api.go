// Package api calls the operations of the REST API within the process that serves them, on behalf of the holder of an
// API key: through the same routes and checks as any other client, with the same responses.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/appsec-dev/findings-operator/client"
)

// ours are the options for reading responses: the service never writes duplicate members, so the check is skipped.
var ours = jsontext.AllowDuplicateNames(true)

// Client calls operations with one key. Each request of a user gets its own Client.
type Client struct {
	handler http.Handler
	// key is the API key.
	key string
	// requestID identifies the user's request, also in the log lines of the operations.
	requestID string
	// dataAge is the greatest age of the data behind the successful responses.
	dataAge atomic.Int64
}

// DataAgeHeader is the header of a response whose data may be old: its age in seconds.
const DataAgeHeader = "X-Data-Age"

// New returns a client that calls the operations that handler serves.
func New(handler http.Handler, key, requestID string) *Client {
	return &Client{handler: handler, key: key, requestID: requestID}
}

// RequestID returns what identifies the user's request in the service's logs.
func (c *Client) RequestID() string { return c.requestID }

// DataAge returns how old the resources that were read so far may be, in seconds; 0 if none is older than usual.
func (c *Client) DataAge() int { return int(c.dataAge.Load()) }

// Failure is a response other than the requested one.
type Failure struct {
	Status int
	// Body is the body of the response.
	Body client.Error
	// RetryAt is when to try again; zero if retrying would not help.
	RetryAt time.Time
	// Location is the path of the resource that the failure is about; empty if there is none.
	Location string
	// DataAge is how old the data behind the failure may be, in seconds; 0 if it is not older than usual.
	DataAge int
}

// Failed returns a failure that the console itself found.
func Failed(status int, detail string) *Failure {
	return &Failure{Status: status, Body: client.Error{Detail: detail}}
}

// Is reports whether the error is a failure with that status.
func Is(err error, status int) bool {
	failure, is := errors.AsType[*Failure](err)
	return is && failure.Status == status
}

const (
	// codeStale is the code of a response of 500 for which the service is not to blame.
	codeStale = "stale"
	// codeBusy is the code of a response of 429 to a request that exceeds a limit on concurrent work.
	codeBusy = "busy"
)

// IsStale reports whether the service currently does not return a resource because its data of that kind is too old. A
// page can be shown without it.
func IsStale(err error) bool {
	failure, is := errors.AsType[*Failure](err)
	return is && failure.Status == http.StatusInternalServerError && failure.Body.Code == codeStale
}

// IsBusy reports whether the service currently does not return a resource because too many such requests are under way.
func IsBusy(err error) bool {
	failure, is := errors.AsType[*Failure](err)
	return is && failure.Status == http.StatusTooManyRequests && failure.Body.Code == codeBusy
}

// Refused returns the failure of a request that a form can correct: it is invalid, or conflicts with existing data.
func Refused(err error) (failure *Failure, is bool) {
	failure, is = errors.AsType[*Failure](err)
	return failure, is && (failure.Status == http.StatusBadRequest || failure.Status == http.StatusConflict)
}

func (f *Failure) Error() string { return fmt.Sprintf("%d: %s", f.Status, f.Body.Detail) }

// Get reads a resource into the given value, and returns its ETag.
func (c *Client) Get(ctx context.Context, path string, query url.Values, into any) (tag string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		return "", err
	}
	request.URL.RawQuery = query.Encode()
	return c.do(request, into)
}

// Place returns the current position in the stream of events, from which a page can follow it.
func (c *Client) Place(ctx context.Context) (place string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/v2/events?follow=false", http.NoBody)
	if err != nil {
		return "", err
	}
	err = c.call(request, func(answer *recorder) error {
		// Changes that came meanwhile precede the position, each with an id of its own.
		for line := range strings.Lines(answer.body.String()) {
			if id, is := strings.CutPrefix(line, "id: "); is {
				place = strings.TrimSpace(id)
			}
		}
		return nil
	})
	return place, err
}

// Send sends a body, on condition of the ETag unless it is empty, and reads the response into the given value.
func (c *Client) Send(ctx context.Context, method, path, tag string, body, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if tag != "" {
		request.Header.Set("If-Match", tag)
	}
	_, err = c.do(request, into)
	return err
}

func (c *Client) do(request *http.Request, into any) (tag string, err error) {
	err = c.call(request, func(answer *recorder) error {
		if err := jsonv2.Unmarshal(answer.body.Bytes(), into, ours); err != nil {
			return fmt.Errorf("read the answer of %s %s: %w", request.Method, request.URL.Path, err)
		}
		c.noteDataAge(answer.header)
		tag = answer.header.Get("ETag")
		return nil
	})
	return tag, err
}

// call sends a request and passes the response to read, unless it is a failure.
func (c *Client) call(request *http.Request, read func(*recorder) error) error {
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("X-Request-Id", c.requestID)
	answer := newRecorder()
	defer answer.release()
	if err := c.serve(answer, request); err != nil {
		return err
	}
	if answer.status >= http.StatusBadRequest {
		return failureOf(answer.status, answer.header, answer.body.Bytes())
	}
	return read(answer)
}

func dataAge(header http.Header) int64 {
	age, _ := strconv.ParseInt(header.Get(DataAgeHeader), 10, 64) // without the header 0
	return age
}

// noteDataAge keeps the greatest age. Several responses may be read at the same time.
func (c *Client) noteDataAge(header http.Header) {
	age := dataAge(header)
	for {
		if known := c.dataAge.Load(); age <= known || c.dataAge.CompareAndSwap(known, age) {
			return
		}
	}
}

// serve returns a panic as an error: pages call several operations concurrently, each in its own goroutine, where no
// other code would recover.
func (c *Client) serve(answer *recorder, request *http.Request) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%s %s panicked: %v", request.Method, request.URL.Path, cause)
		}
	}()
	c.handler.ServeHTTP(answer, request)
	return nil
}

// failureOf reads a response with a status of 400 or more.
func failureOf(status int, header http.Header, body []byte) error {
	f := &Failure{Status: status, Location: header.Get("Location"), DataAge: int(dataAge(header))}
	if err := json.Unmarshal(body, &f.Body); err != nil {
		return fmt.Errorf("read an error of status %d: %w", status, err)
	}
	if seconds, err := strconv.Atoi(header.Get("Retry-After")); err == nil {
		f.RetryAt = time.Now().Add(time.Duration(seconds) * time.Second)
	}
	return f
}

// recorder holds a response. The contract bounds the size of responses.
type recorder struct {
	header http.Header
	status int
	body   *bytes.Buffer
}

// bodies are buffers of earlier responses: allocating one as large as a page of findings takes a tenth of the page's
// time.
var bodies = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// maxKept bounds the size of a buffer that is reused.
const maxKept = 1 << 20

func newRecorder() *recorder {
	body, _ := bodies.Get().(*bytes.Buffer)
	body.Reset()
	return &recorder{header: http.Header{}, body: body}
}

// release returns the body to the pool. Everything read from it was copied.
func (r *recorder) release() {
	if r.body.Cap() <= maxKept {
		bodies.Put(r.body)
	}
}

// Flush does nothing: the response is only read when it is complete.
func (r *recorder) Flush() {}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(content []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(content)
}
