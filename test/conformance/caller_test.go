package conformance

import (
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	// patience bounds waits for the deployment's controllers.
	patience = time.Minute
	// replicaDelay is how long another replica may show the state before a PATCH.
	replicaDelay = time.Second
	interval     = 20 * time.Millisecond
)

// caller calls the deployment in one test; an answer that breaks the contract fails the test.
type caller struct {
	t *testing.T
	apiclient.Client
	// apiKey is the caller's key as it was created; nil if the test has not created it.
	apiKey *v1alpha1.APIKey
	// waits is set if the suite has not set the limit: when other tests or clients have used it up,
	// the request is sent again in the next window.
	waits bool
}

// in returns the same caller in another test.
func (c *caller) in(t *testing.T) *caller {
	enter(t)
	return &caller{t: t, Client: c.Client, waits: c.waits}
}

// anonymous returns a caller without a key.
func anonymous(t *testing.T) *caller {
	enter(t)
	return &caller{t: t, Client: apiclient.Client{Base: *baseURL}, waits: true}
}

// answer is a response in one test.
type answer struct {
	t *testing.T
	*apiclient.Answer
	request string
}

func (c *caller) do(method, path, body string, changes ...apiclient.Change) answer {
	c.t.Helper()
	for {
		a := c.once(method, path, body, changes...)
		if !c.waits || a.Status != http.StatusTooManyRequests {
			return a
		}
		wait := a.number("Retry-After")
		c.t.Logf("waiting %d seconds for a limit that is used up", wait)
		if !harness.Pause(c.t.Context(), time.Duration(wait)*time.Second) {
			c.t.Fatal("the test has ended")
		}
	}
}

// once sends a request once, whatever the answer.
func (c *caller) once(method, path, body string, changes ...apiclient.Change) answer {
	c.t.Helper()
	got, err := c.Do(c.t.Context(), method, path, body, changes...)
	if got == nil {
		c.t.Fatalf("%s %.200s: %v", method, path, err)
	}
	if err != nil {
		c.t.Errorf("%s %.200s: %v", method, path, err)
	}
	a := answer{c.t, got, method + " " + path}
	keepAnswer(a)
	return a
}

func (c *caller) get(path string, changes ...apiclient.Change) answer {
	c.t.Helper()
	return c.do(http.MethodGet, path, "", changes...)
}

func (c *caller) patch(path, body string, changes ...apiclient.Change) answer {
	c.t.Helper()
	return c.do(http.MethodPatch, path, body, append([]apiclient.Change{apiclient.Header("Content-Type", "application/json")}, changes...)...)
}

func (c *caller) post(path, body string, changes ...apiclient.Change) answer {
	c.t.Helper()
	return c.do(http.MethodPost, path, body, append([]apiclient.Change{apiclient.Header("Content-Type", "application/json")}, changes...)...)
}

// wants fails the test unless the answer has that status.
func (a answer) wants(status int, reason string) answer {
	a.t.Helper()
	if a.Status != status {
		a.t.Errorf("%s: %.200s: got %d %.300s, want %d", reason, a.request, a.Status, a.Body, status)
	}
	return a
}

// messages are the contract's messages for each status; 400 has two.
var messages = map[int][]string{
	400: {"Invalid request body", "Invalid query parameter"},
	401: {"Unauthorized"},
	403: {"Forbidden"},
	404: {"Resource not found"},
	405: {"Method not allowed"},
	409: {"Conflict"},
	412: {"Precondition failed"},
	429: {"Rate limit exceeded"},
	500: {"Internal server error"},
}

// wantsError fails the test unless the answer is exactly that error, with a detail.
func (a answer) wantsError(status int, message, reason string) answer {
	a.t.Helper()
	a.wants(status, reason)
	got := a.object()
	if got["error"] != message {
		a.t.Errorf("%s: %.200s: error is %q, want %q", reason, a.request, got["error"], message)
	}
	if detail, _ := got["detail"].(string); detail == "" {
		a.t.Errorf("%s: %.200s: the detail is empty", reason, a.request)
	}
	return a
}

// wantsCode fails the test unless the error has that code and names no field.
func (a answer) wantsCode(code string) {
	a.t.Helper()
	wantsMembers(a.t, a.request, record{"code": code, "field": ""}, a.object())
}

// wantsDetail fails the test unless the error's detail contains the text.
func (a answer) wantsDetail(text string) {
	a.t.Helper()
	if detail, _ := a.object()["detail"].(string); !strings.Contains(detail, text) {
		a.t.Errorf("%.200s: the detail is %q, want %q in it", a.request, detail, text)
	}
}

func (a answer) badQuery(reason string) answer {
	a.t.Helper()
	return a.wantsError(400, "Invalid query parameter", reason)
}

func (a answer) badRequest(reason string) answer {
	a.t.Helper()
	return a.wantsError(400, "Invalid request body", reason)
}

func (a answer) notFound(reason string) answer {
	a.t.Helper()
	return a.wantsError(404, "Resource not found", reason)
}

// object returns the body as a JSON object.
func (a answer) object() record {
	a.t.Helper()
	var value record
	if err := json.Unmarshal(a.Body, &value); err != nil {
		a.t.Fatalf("%s: the body is no JSON object: %.300s", a.request, a.Body)
	}
	return value
}

// page returns the body as a page of a list.
func (a answer) page() page {
	a.t.Helper()
	a.wants(200, "a page")
	var value page
	if err := json.Unmarshal(a.Body, &value); err != nil {
		a.t.Fatalf("%s: the body is no page: %.300s", a.request, a.Body)
	}
	return value
}

// number returns the value of a header as an integer.
func (a answer) number(header string) int {
	a.t.Helper()
	value, err := strconv.Atoi(a.Header.Get(header))
	if err != nil {
		a.t.Fatalf("%s: the header %s is %q, and no whole number", a.request, header, a.Header.Get(header))
	}
	return value
}

// record is a JSON object as a client sees it.
type record map[string]any

func (r record) text(member string) string {
	text, _ := r[member].(string)
	return text
}

func (r record) object(member string) record {
	object, _ := r[member].(map[string]any)
	return object
}

func (r record) list(member string) []any {
	list, _ := r[member].([]any)
	return list
}

// records returns a list of objects; an item that is no object is nil.
func (r record) records(member string) []record {
	var records []record
	for _, item := range r.list(member) {
		object, _ := item.(map[string]any)
		records = append(records, object)
	}
	return records
}

// page is a list's envelope.
type page struct {
	Items      []record `json:"items"`
	HasMore    bool     `json:"has_more"`
	NextCursor string   `json:"next_cursor"`
	Total      int      `json:"total"`
}

func (p page) ids() []string { return idsOf(p.Items) }

func idsOf(items []record) []string {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.id()
	}
	return ids
}

// id returns the row's id, or that of the finding that the row is about.
func (r record) id() string {
	if id, is := r["finding_id"].(string); is {
		return id
	}
	return r.text("id")
}

// with adds parameters to a path that may already have some.
func with(path, parameters string) string {
	switch {
	case parameters == "":
		return path
	case strings.Contains(path, "?"):
		return path + "&" + parameters
	default:
		return path + "?" + parameters
	}
}

// walk reads a list to its end and checks the rules for all pages on each page.
func (c *caller) walk(path string) []record {
	c.t.Helper()
	return c.walkFrom(path, "")
}

// walkFrom returns the rows of the pages from that cursor on.
func (c *caller) walkFrom(path, cursor string) []record {
	c.t.Helper()
	var all []record
	for page := range c.pages(path, cursor) {
		all = append(all, page.Items...)
	}
	return all
}

// pages yields the pages from that cursor on.
func (c *caller) pages(path, cursor string) iter.Seq[page] {
	return func(yield func(page) bool) {
		c.t.Helper()
		for range 2000 {
			page := c.get(with(path, "cursor="+url.QueryEscape(cursor))).page()
			if page.HasMore != (page.NextCursor != "") {
				c.t.Fatalf("%s: has_more is %v and next_cursor %q", path, page.HasMore, page.NextCursor)
			}
			if !yield(page) || !page.HasMore {
				return
			}
			cursor = page.NextCursor
		}
		c.t.Fatalf("%s: the list has no end", path)
	}
}
