package api_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// event is an event of a stream; its name is "" if it contains only a position.
type event struct{ name, id, data string }

// stream is a client's stream of events.
type stream struct {
	t      *testing.T
	header http.Header
	status int
	// events is closed when the stream ends.
	events chan event
	cut    func()
	// last is the last received id.
	last string
}

// follows opens a stream, after the given event if there is one.
func (c *caller) follows(t *testing.T, query, after string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server.url("/v2/events"+query), http.NoBody)
	harness.Must(t, err)
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("X-Forwarded-For", c.address)
	if after != "" {
		request.Header.Set("Last-Event-ID", after)
	}
	transport := &http.Transport{}
	response, err := transport.RoundTrip(request) //nolint:bodyclose // the goroutine below closes it
	harness.Must(t, err)
	s := &stream{t: t, header: response.Header, status: response.StatusCode, events: make(chan event, 1000)}
	done := make(chan struct{})
	s.cut = sync.OnceFunc(func() {
		cancel()
		<-done
		transport.CloseIdleConnections()
	})
	t.Cleanup(s.cut)
	go func() {
		defer close(done)
		defer close(s.events)
		defer response.Body.Close() //nolint:errcheck // only read from
		var e event
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.name = value
			case "id":
				e.id = value
			case "data":
				e.data = value
			case "":
				if e != (event{}) {
					s.events <- e
				}
				e = event{}
			}
		}
	}()
	return s
}

// next returns the next event; ok is false if the stream has ended.
func (s *stream) next() (e event, ok bool) {
	s.t.Helper()
	for {
		select {
		case e, ok = <-s.events:
			if e.id != "" {
				s.last = e.id
			}
			if !ok || e.name != "" {
				return e, ok
			}
		case <-time.After(patience):
			s.t.Fatal("no event came")
		}
	}
}

// begins waits until the stream has sent its first position.
func (s *stream) begins() *stream {
	s.t.Helper()
	select {
	case e, ok := <-s.events:
		if !ok || e.name != "" {
			s.t.Fatalf("the stream (%d) begins with %+v", s.status, e)
		}
		s.last = e.id
	case <-time.After(patience):
		s.t.Fatal("no position came")
	}
	return s
}

// tells expects exactly these events next, each as its name, the action and the id.
func (s *stream) tells(want ...string) {
	s.t.Helper()
	harness.Same(s.t, "events", want, s.take(len(want)))
}

// take returns the next n events, each as its name, the action and the id, or those before the end of the stream.
func (s *stream) take(n int) (got []string) {
	s.t.Helper()
	for range n {
		e, ok := s.next()
		if !ok {
			return append(got, "end")
		}
		got = append(got, s.said(e))
	}
	return got
}

func (s *stream) said(e event) string {
	if e.name == "reset" {
		return "reset"
	}
	change := decoded[struct{ Change, ID string }](answer{t: s.t, body: []byte(e.data)})
	return strings.Join([]string{e.name, change.Change, change.ID}, " ")
}

// ends waits for the end of the stream.
func (s *stream) ends(reason string) {
	s.t.Helper()
	// Sooner than the next heartbeat, after 15 seconds, would reveal it.
	end := time.After(10 * time.Second)
	for {
		select {
		case _, ok := <-s.events:
			if !ok {
				return
			}
		case <-end:
			s.t.Fatalf("%s: the stream goes on", reason)
		}
	}
}

// twoReplicas returns two servers with the same cursor keys. The later one has listed all kinds last: for a kind
// without changes, its known position is at or after the oldest one that the earlier server remembers.
func twoReplicas(t *testing.T) (later, earlier *server) {
	t.Helper()
	folder := t.TempDir()
	harness.Must(t, os.WriteFile(filepath.Join(folder, "2026-01"), []byte(strings.Repeat("k", 32)), 0o600))
	servers := make([]*server, 2)
	for i := range servers {
		servers[i] = ownServer(t, apiserver.Options{CursorKeysDir: folder})
		harness.Must(t, servers[i].waitUntilReady(t.Context()))
	}
	return servers[1], servers[0]
}

// onceShown returns the caller at another replica, once that replica knows the key and shows the organization. The
// replica remembers no earlier events.
func (c *caller) onceShown(s *server) *caller {
	c.t.Helper()
	other := c.on(s)
	harness.Eventually(c.t, func(g Gomega) { g.Expect(other.get("/v2/events?follow=false").status).To(Equal(http.StatusOK)) })
	return other
}

func (o *organization) remove(object client.Object) {
	o.t.Helper()
	harness.Must(o.t, env.Client.Delete(o.t.Context(), object))
}

func TestEventsAreResumedOnAnyReplicaWithoutAGapOrARepeat(t *testing.T) {
	a, b := twoReplicas(t)
	o, other := newOrganization(t).on(a), newOrganization(t)
	atA := o.key("ci", v1alpha1.Scopes()...)
	atB := atA.onceShown(b)
	s := atA.follows(t, "", "").begins()
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no", "Content-Encoding": "", "Etag": "",
	} {
		harness.Same(t, name, want, s.header.Get(name))
	}
	if remaining := s.header.Get("X-Ratelimit-Remaining"); remaining == "" {
		t.Error("the stream does not count against the limit")
	}
	first := builder.Finding("f-1").In(o.namespace).Build()
	o.create(first)
	other.create(builder.Finding("f-foreign").In(other.namespace).Build())
	o.finding(atA, builder.Finding("f-2"))
	s.tells("finding created f-1", "finding created f-2")
	after := s.last
	atB.patch("/v1/findings/f-2", `{"user_status":"muted"}`).wants(200, "a decision at the other replica")
	s.tells("finding updated f-2")
	// The model shows a decision before the watch delivers it; the event is sent nevertheless.
	atA.patch("/v1/findings/f-1", `{"user_status":"active"}`).wants(200, "a decision at this replica")
	o.create(builder.Scan("s-1", time.Now()).In(o.namespace).Build())
	o.create(builder.Review("rv-1").In(o.namespace).PullRequest("repo", 1).Build())
	o.create(builder.WebhookDelivery("d-1", time.Now()).In(o.namespace).Build())
	o.remove(first)
	// Events of different kinds have no defined order.
	rest := []string{"delivery created d-1", "finding removed f-1", "finding updated f-1", "review created rv-1", "scan created s-1"}
	wants := func(s *stream) {
		t.Helper()
		got := s.take(len(rest))
		if slices.Index(got, rest[2]) > slices.Index(got, rest[1]) {
			t.Errorf("the finding was removed before it was changed: %q", got)
		}
		slices.Sort(got)
		harness.Same(t, "events", rest, got)
	}
	wants(s)
	// What is created later must not overtake these at the other replica: each kind has a watch of its own.
	for _, path := range []string{"/v2/webhook-deliveries/d-1", "/v2/scans/s-1", "/v2/reviews/rv-1"} {
		harness.Eventually(t, func(g Gomega) { g.Expect(atB.get(path).status).To(Equal(http.StatusOK), path) })
	}
	var later []string
	for i, c := range []*caller{atA, atB} {
		again := c.follows(t, "", after)
		again.tells("finding updated f-2")
		wants(again)
		// Everything that follows is new: no event was sent twice.
		name := fmt.Sprintf("f-later-%d", i)
		o.create(builder.Finding(name).In(o.namespace).Build())
		later = append(later, "finding created "+name)
		again.tells(later...)
		again.cut()
	}
	// An id received while nothing happened is valid at the other replica too.
	quiet := atA.follows(t, "", s.last)
	quiet.tells(later...)
	quiet.cut()
	once := atB.get("/v2/events?follow=false", header("Last-Event-ID", quiet.last)).wants(200, "what there is")
	if text := string(once.body); strings.Contains(text, "event:") || !strings.Contains(text, "\nid: ") {
		t.Errorf("with nothing new there is %s", text)
	}
}

func TestAnUnknownIDGetsOneReset(t *testing.T) {
	o, other := newOrganization(t), newOrganization(t)
	c, foreign := o.key("ci"), other.key("ci")
	s := c.follows(t, "", "").begins()
	o.create(builder.Finding("f-1").In(o.namespace).Build())
	s.tells("finding created f-1")
	for reason, id := range map[string]string{
		"another organization's": foreign.follows(t, "", "").begins().last,
		"cut":                    s.last[:len(s.last)-3], "changed": string(s.last[0]^1) + s.last[1:], "made up": "1", "long": strings.Repeat("A", 5000),
	} {
		again := c.follows(t, "?kinds=finding,operation,scan,review", id)
		again.tells("reset")
		name := "f-" + strings.ReplaceAll(strings.ReplaceAll(reason, " ", "-"), "'", "")
		o.create(builder.Finding(name).In(o.namespace).Build())
		again.tells("finding created " + name)
		again.cut()
	}
}

func TestAKeyIsToldOfWhatItsScopesLetItRead(t *testing.T) {
	o := newOrganization(t)
	reader, reviewer := o.key("reader", v1alpha1.ScopeFindingsRead), o.key("reviewer", v1alpha1.ScopeReviewsRead, v1alpha1.ScopeWebhooksRead)
	plain := o.key("plain")
	streams := map[*caller]*stream{reader: reader.follows(t, "", "").begins(), reviewer: reviewer.follows(t, "", "").begins()}
	some := plain.follows(t, "?kinds=review,scan", "").begins()
	o.create(builder.WebhookDelivery("d-1", time.Now()).In(o.namespace).Build())
	streams[reviewer].tells("delivery created d-1")
	o.create(builder.Review("rv-1").In(o.namespace).PullRequest("repo", 1).Build())
	streams[reviewer].tells("review created rv-1")
	some.tells("review created rv-1")
	o.create(builder.Finding("f-1").In(o.namespace).Build())
	o.create(builder.Scan("s-1", time.Now()).In(o.namespace).Build())
	some.tells("scan created s-1")
	got := streams[reader].take(2)
	slices.Sort(got)
	harness.Same(t, "the events for a key for findings", []string{"finding created f-1", "scan created s-1"}, got)
	o.create(builder.WebhookDelivery("d-2", time.Now()).In(o.namespace).Build())
	streams[reviewer].tells("delivery created d-2")
	counted := o.server.refusals(t, "scope")
	reader.get("/v2/events?kinds=finding,review").wantsError(403, "Forbidden", "a kind that the key may not read")
	harness.Same(t, "the refusals that are counted", counted+1, o.server.refusals(t, "scope"))
	plain.get("/v2/events?kinds=delivery").wantsError(403, "Forbidden", "deliveries take a key that lists their scope")
	for query, why := range map[string]string{
		"key": "an unknown kind", "delivery,key": "an unknown kind beside one that the key may not read", ",": "no kind",
	} {
		plain.get("/v2/events?kinds="+query).wantsError(400, "Invalid query parameter", why)
	}
	o.key("sender", v1alpha1.ScopeWebhooksVerify).get("/v2/events").wantsError(403, "Forbidden", "a key that may read nothing of it")
	if a := plain.do("HEAD", "/v2/events", ""); a.status != 200 || len(a.body) > 0 {
		t.Errorf("HEAD gets %d %s", a.status, a.body)
	}
}

func TestAStreamEndsAtOnceWithItsKey(t *testing.T) {
	o := newOrganization(t)
	for reason, end := range map[string]func(key *v1alpha1.APIKey){
		"disabled": func(key *v1alpha1.APIKey) { env.Patch(t, key, `{"spec":{"disabled":true}}`) },
		"deleted":  func(key *v1alpha1.APIKey) { o.remove(key) },
		"expired":  func(key *v1alpha1.APIKey) { env.Patch(t, key, `{"spec":{"expiresAt":"2026-01-01T00:00:00Z"}}`) },
		"rotated": func(key *v1alpha1.APIKey) {
			patch := testenv.MergePatch(`{"status":{"keyID":"another"}}`)
			harness.Must(t, controller.Status().Patch(t.Context(), key, patch))
		},
		"with fewer scopes": func(key *v1alpha1.APIKey) { env.Patch(t, key, `{"spec":{"scopes":["reviews:read"]}}`) },
	} {
		name := "key-" + strings.ReplaceAll(reason, " ", "-")
		s := o.key(name).follows(t, "", "").begins()
		key := &v1alpha1.APIKey{}
		key.Name, key.Namespace = name, o.namespace
		end(key)
		s.ends(reason)
	}
}

func TestAKeyHasFewStreamsAtATime(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	var open []*stream
	for range 4 {
		open = append(open, c.follows(t, "", "").begins())
	}
	c.get("/v2/events?follow=false").wants(200, "what ends by itself is no stream")
	refused := c.get("/v2/events")
	refused.wantsError(429, "Rate limit exceeded", "one more")
	if !strings.Contains(string(refused.body), `"code":"busy"`) || refused.header.Get("Retry-After") == "" {
		t.Errorf("got %s", refused.body)
	}
	o.key("other").follows(t, "", "").begins()
	open[0].cut()
	harness.Eventually(t, func(g Gomega) { g.Expect(c.do("HEAD", "/v2/events", "").status).To(Equal(200)) })
}

func TestStoppingEndsStreamsAndNothingOfThemStays(t *testing.T) {
	s := ownServer(t, apiserver.Options{})
	o := newOrganization(t).on(s)
	c := o.key("ci")
	c.get("/v2/whoami").wants(200, "the key")
	before := runtime.NumGoroutine()
	for range 20 {
		c.follows(t, "", "").begins().cut()
	}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(runtime.NumGoroutine()).To(BeNumerically("<=", before), "goroutines of streams that were cut")
	})
	open := c.follows(t, "", "").begins()
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	open.ends("the process ends")
	select {
	case err := <-stopped:
		harness.Must(t, err)
	case <-time.After(patience):
		t.Fatal("the process does not end")
	}
}
