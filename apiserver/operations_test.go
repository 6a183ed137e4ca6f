package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	for exist, want := range map[int]int{
		2*triageoperation.MaxOperations - 1: http.StatusNotFound, // by the API server, which has nothing
		2 * triageoperation.MaxOperations:   http.StatusConflict,
	} {
		operations := make([]client.Object, exist)
		for i := range operations {
			operations[i] = builder.TriageOperation(fmt.Sprint("op-", i), "G1").Build()
		}
		model := fuzzModel(t, builder.WebhookDelivery("d-1", time.Now()).Build(), operations...)
		body := strings.NewReader(`{"ids":["f-1"],"set":{"user_status":"active"}}`)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v2/triage-operations", body)
		request.Header.Set("Content-Type", "application/json")
		answer := answerOf(routesOf(t, backendOf(t, model, nothingStored{})), request)
		harness.Same(t, fmt.Sprintf("the status with %d operations: %s", exist, answer.Body), want, answer.Code)
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
	content, err := json.Marshal(list)
	harness.Must(t, err)
	return listed{content, atEnd}
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

// A page of stored objects is held by its response alone, unlike what the read model holds in any case.
func TestAFewLongPagesOfStoredObjectsAreSentAtATime(t *testing.T) {
	before := ownPages
	ownPages = slots.New(2, 1)
	t.Cleanup(func() { ownPages = before })
	server := serverOf(t, newListed(t, 100, func() {}))
	list := func(handler http.Handler, size int) *httptest.ResponseRecorder {
		return answerOf(handler, httptest.NewRequest(http.MethodGet, fmt.Sprint("/v2/triage-operations?size=", size), http.NoBody))
	}
	client, done := newUnread(), make(chan struct{})
	go func() {
		defer close(done)
		server.ServeHTTP(client, httptest.NewRequest(http.MethodGet, "/v2/triage-operations?size=100", http.NoBody))
	}()
	<-client.asks
	refused := list(server, 100)
	if refused.Code != http.StatusTooManyRequests || !strings.Contains(refused.Body.String(), `"code":"busy"`) || refused.Header().Get("Retry-After") == "" {
		t.Errorf("a second long page gets %d %.200s", refused.Code, refused.Body)
	}
	harness.Same(t, "the status of a short page", http.StatusOK, list(server, 5).Code)
	harness.Same(t, "the status of a long page for the console", http.StatusOK, list(inside(server), 100).Code)
	close(client.reads)
	<-done
	harness.Same(t, "the status of the one that was not read", http.StatusOK, client.Code)
	harness.Same(t, "the status of a long page after it", http.StatusOK, list(server, 100).Code)
	harness.Same(t, "pages that are being sent", 0, ownPages.InUse())
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
