package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The controllers hold all of an organization's operations, also those that they refuse.
func TestNoOperationIsMadeWhileFarMoreExistThanMayBeKept(t *testing.T) {
	const decision, undo = `{"ids":["f-1"],"set":{"user_status":"active"}}`, `{"undo":"op-1"}`
	const taken, refused = http.StatusNotFound, http.StatusConflict // taken is the answer of the API server, which has nothing
	for _, c := range []struct {
		exist int
		body  string
		want  int
	}{
		{2*triageoperation.MaxOperations - 1, decision, taken},
		{2 * triageoperation.MaxOperations, decision, refused},
		{4*triageoperation.MaxOperations - 1, undo, taken}, // a wrong decision can be taken back
		{4 * triageoperation.MaxOperations, undo, refused},
	} {
		operations := make([]client.Object, c.exist)
		for i := range operations {
			operations[i] = builder.TriageOperation(fmt.Sprint("op-", i), "G1").Build()
		}
		model := fuzzModel(t, builder.WebhookDelivery("d-1", time.Now()).Build(), operations...)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v2/triage-operations", strings.NewReader(c.body))
		request.Header.Set("Content-Type", "application/json")
		answer := answerOf(routesOf(t, backendOf(t, model, nothingStored{})), request)
		harness.Same(t, fmt.Sprintf("the status of %s with %d operations: %s", c.body, c.exist, answer.Body), c.want, answer.Code)
	}
}

// A commit took no body at first, and clients send what they send then.
func TestACommitNeedsNoBody(t *testing.T) {
	server := routesOf(t, backendOf(t, fuzzModel(t, builder.WebhookDelivery("d-1", time.Now()).Build()), nothingStored{}))
	const form, taken, refused = "application/x-www-form-urlencoded", http.StatusNotFound, http.StatusBadRequest
	for _, c := range []struct {
		reason, media, body string
		want                int // taken is the answer of the API server, which has nothing
	}{
		{"no body", "", "", taken},
		{"an empty form", form, "", taken},
		{"an empty JSON body", applicationJSON[0], "", taken},
		{"an empty object", applicationJSON[0], "{}", taken},
		{"a uid", applicationJSON[0], `{"uid":"u-1"}`, taken},
		{"an unset uid", applicationJSON[0], `{"uid":""}`, taken},
		{"a uid that would be ignored", form, `{"uid":"u-1"}`, refused},
		{"a misspelt uid", applicationJSON[0], `{"uuid":"u-1"}`, refused},
		{"no object", applicationJSON[0], `null`, refused},
		{"a body that is too long", applicationJSON[0], `{"uid":"` + strings.Repeat("a", 64<<10) + `"}`, refused},
	} {
		for _, length := range []int64{int64(len(c.body)), -1} {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v2/triage-operations/op-1/commit", strings.NewReader(c.body))
			request.ContentLength = length
			if c.media != "" {
				request.Header.Set("Content-Type", c.media)
			}
			answer := answerOf(server, request)
			harness.Same(t, fmt.Sprintf("the status of %s with the length %d: %s", c.reason, length, answer.Body), c.want, answer.Code)
		}
	}
}

// listed answers with a list of operations of 40 KB each, and calls atEnd once all of them are read.
type listed struct {
	list  []byte
	atEnd func()
}

func newListed(t *testing.T, operations int, atEnd func()) listed {
	t.Helper()
	list := v1alpha1.TriageOperationList{}
	list.APIVersion, list.Kind = v1alpha1.GroupVersion.String(), "TriageOperationList"
	for i := range operations {
		operation := builder.TriageOperation(fmt.Sprint("op-", i), "G1").In(acmeNamespace).Build()
		operation.Spec.Set.Comments = new(strings.Repeat("\U0001F600", 10_000))
		list.Items = append(list.Items, *operation)
	}
	return listed{harness.JSON(t, list), atEnd}
}

func (l listed) RoundTrip(*http.Request) (*http.Response, error) {
	end := len(l.list) - len("]}")
	body := io.MultiReader(bytes.NewReader(l.list[:end]), ending(l.atEnd), bytes.NewReader(l.list[end:]))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": applicationJSON}, Body: io.NopCloser(body)}, nil
}

// ending is an empty reader that calls itself.
type ending func()

func (e ending) Read([]byte) (int, error) {
	e()
	return 0, io.EOF
}

// unread is a client that does not read its response until it is told to.
type unread struct {
	*httptest.ResponseRecorder
	began sync.Once
	asks  chan struct{}
	reads chan struct{}
}

func newUnread() *unread {
	return &unread{ResponseRecorder: httptest.NewRecorder(), asks: make(chan struct{}), reads: make(chan struct{})}
}

func (u *unread) Write(chunk []byte) (int, error) {
	u.began.Do(func() { close(u.asks) })
	<-u.reads
	return u.ResponseRecorder.Write(chunk)
}

// limitOwnBodies leaves an organization one place until the test ends.
func limitOwnBodies(t *testing.T) {
	t.Helper()
	before := ownBodies
	ownBodies = slots.New(2, 1)
	t.Cleanup(func() { ownBodies = before })
}

// A page of stored objects is held by its response alone, unlike what the read model holds in any case.
func TestAFewLongPagesOfStoredObjectsAreSentAtATime(t *testing.T) {
	limitOwnBodies(t)
	server := serverOf(t, newListed(t, 100, func() {}))
	list := func(handler http.Handler, size int) *httptest.ResponseRecorder {
		request := httptest.NewRequest(http.MethodGet, fmt.Sprint("/v2/triage-operations?size=", size), http.NoBody)
		request.Header.Set("If-None-Match", "*") // a page has no state that a client could have
		return answerOf(handler, request)
	}
	client, done := newUnread(), make(chan struct{})
	go func() {
		defer close(done)
		server.ServeHTTP(client, httptest.NewRequest(http.MethodGet, "/v2/triage-operations?size=100", http.NoBody))
	}()
	<-client.asks
	refused := list(server, 100)
	if refused.Code != http.StatusTooManyRequests || !strings.Contains(refused.Body.String(), `"code":"busy"`) {
		t.Errorf("a second long page gets %d %.200s", refused.Code, refused.Body)
	}
	harness.Same(t, "when a client that reads nothing is gone", "20", refused.Header().Get("Retry-After"))
	harness.Same(t, "the status of a short page", http.StatusOK, list(server, 5).Code)
	harness.Same(t, "the status of a long page for the console", http.StatusOK, list(inside(server), 100).Code)
	close(client.reads)
	<-done
	harness.Same(t, "the status of the one that was not read", http.StatusOK, client.Code)
	harness.Same(t, "the status of a long page after it", http.StatusOK, list(server, 100).Code)
	harness.Same(t, "pages that are being sent", 0, ownBodies.InUse())
}

// Each of these is rendered for its request.
func TestAFewLongCountsTrendsAndUploadsAreSentAtATime(t *testing.T) {
	limitOwnBodies(t)
	const day = "2026-03-01"
	var objects []client.Object
	for i := range 1000 {
		name := fmt.Sprintf("%0200d", i)
		trend := builder.FindingTrend("trend-"+name, "2026q1").Project(name).Rows(v1alpha1.FindingTrendDay{Day: day}).Build()
		finding := builder.Finding("f-" + name).Build()
		finding.Spec.RuleID = name + strings.Repeat("r", 100)
		objects = append(objects, builder.Project(name).Build(), trend, finding)
	}
	for i := range 32 {
		scan := builder.Scan(fmt.Sprint("scan-", i), time.Now()).Build()
		scan.Spec.Upload = &v1alpha1.ScanUpload{ID: "u-1", Scans: 32}
		scan.Spec.Warnings = slices.Repeat([]string{strings.Repeat("w", v1alpha1.MaxScanWarning)}, v1alpha1.MaxScanWarnings)
		objects = append(objects, scan)
	}
	server := serverOf(t, nothingStored{}, objects...)
	for _, target := range []string{
		"/v2/finding-counts?field=rule&values=1000", "/v2/trends?group=project_id&values=1000&from=" + day + "&to=" + day, "/v2/uploads/u-1",
	} {
		answer := func(method, ifNoneMatch string) *httptest.ResponseRecorder {
			request := httptest.NewRequest(method, target, http.NoBody)
			request.Header.Set("If-None-Match", ifNoneMatch)
			return answerOf(server, request)
		}
		sent := answer(http.MethodGet, "")
		if sent.Code != http.StatusOK || sent.Body.Len() <= chunkBytes {
			t.Errorf("%s: %d, %d bytes: the answer must be long", target, sent.Code, sent.Body.Len())
		}
		free, err := ownBodies.Take(acme)
		harness.Must(t, err)
		if refused := answer(http.MethodGet, ""); refused.Code != http.StatusTooManyRequests || !strings.Contains(refused.Body.String(), `"code":"busy"`) {
			t.Errorf("%s is answered with %d %.200s while another long answer is sent", target, refused.Code, refused.Body)
		}
		harness.Same(t, "the status meanwhile of HEAD "+target, http.StatusOK, answer(http.MethodHead, "").Code)
		unmodified := answer(http.MethodGet, sent.Header().Get("ETag"))
		harness.Same(t, "the status meanwhile of what the client has: "+target, http.StatusNotModified, unmodified.Code)
		free()
	}
}

func TestAListOfStoredObjectsHoldsOnlyItsPage(t *testing.T) {
	const most = 4 << 20 // of 8
	var before, atEnd int64
	server := serverOf(t, newListed(t, 200, func() { atEnd = harness.Heap() }))
	before = harness.Heap()
	answer := answerOf(server, httptest.NewRequest(http.MethodGet, "/v2/triage-operations?size=1", http.NoBody))
	if answer.Code != http.StatusOK || atEnd == 0 || atEnd-before > most {
		t.Errorf("%d bytes more on the heap once all are read, want at most %d: %d %.200s", atEnd-before, most, answer.Code, answer.Body)
	}
}
