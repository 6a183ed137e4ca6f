package apiserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/changes"
	"github.com/appsec-dev/findings-operator/apiserver/console"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/session"
	"github.com/appsec-dev/findings-operator/apiserver/cursor"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// tells makes the watch report a new finding.
func (f *bigFacade) tells(name string, version int) {
	finding := builder.Finding(name).In(acmeNamespace).Project("repo-0", "project-0").Build()
	finding.UID, finding.ResourceVersion, finding.Generation = "uid-of-it", fmt.Sprint(version), 1
	f.news.Add(client.Object(finding))
}

// A stream outlives the timeouts of the server, which apply again to the connection afterwards.
func TestAStreamOutlivesTheTimeoutsOfTheServer(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newBigFacade(t, 1)
	var mu sync.Mutex
	version := 0
	tells := func() (name string) {
		mu.Lock()
		defer mu.Unlock()
		version++ // a watch reports versions in order
		name = fmt.Sprintf("f-new-%d", version)
		f.tells(name, 100+version)
		return name
	}
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel() // it mostly waits
			f.outlivesTimeouts(t, protocol, tells)
		})
	}
}

// outlivesTimeouts follows events beyond the timeouts of a server, and reads one that the watch reports then.
func (f *bigFacade) outlivesTimeouts(t *testing.T, protocol string, tells func() (name string)) {
	t.Helper()
	// ended is closed once the timeouts have passed, as seen by another request that began at the same time.
	ended := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/waits" {
			control := http.NewResponseController(w)
			for {
				if _, err := w.Write([]byte("a")); err != nil || control.Flush() != nil || r.Context().Err() != nil {
					close(ended)
					return
				}
			}
		}
		f.ServeHTTP(w, r)
	}))
	server.Config.WriteTimeout, server.Config.ReadTimeout = 2*time.Second, 2*time.Second
	if server.EnableHTTP2 = protocol == "HTTP/2.0"; server.EnableHTTP2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	defer server.Close()
	follow, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v2/events", http.NoBody)
	harness.Must(t, err)
	follow.Header = f.request(http.MethodGet, "/v2/events", "").Header
	stream, err := server.Client().Do(follow)
	harness.Must(t, err)
	defer stream.Body.Close() //nolint:errcheck // only read from
	harness.Same(t, "the protocol", protocol, stream.Proto)
	lines := bufio.NewScanner(stream.Body)
	reads := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the stream ended before %q: %v", want, lines.Err())
	}
	reads("id: ")
	other, err := server.Client().Get(server.URL + "/waits")
	harness.Must(t, err)
	_, _ = io.Copy(io.Discard, other.Body) // until the timeout cuts it off
	other.Body.Close()                     //nolint:errcheck,gosec // only read from
	<-ended
	reads(fmt.Sprintf(`"id":%q`, tells()))
}

// A client may take the changes more slowly than its organization makes them.
func TestEventsWithoutFollowingEndLikeAnyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		log := changes.New(changes.DefaultLimits, clock.RealClock{})
		log.Add("acme", changes.Position{})
		reader, version := log.Read("acme", changes.Set(0).With(changes.Findings), nil), uint64(0)
		change := func() {
			version++
			log.Put("acme", &changes.Change{Kind: changes.Findings, Version: version})
		}
		for range 2 * eventBatch {
			change()
		}
		events := &handlers.Events{
			Reader: reader, Kinds: changes.Set(0).With(changes.Findings), Once: true, Close: func() {},
			ID: func(changes.Position) string { // each change that is sent is followed by another, for long
				if version < 100*eventBatch {
					change()
				}
				return "1"
			},
		}
		handler := routerWith(&bytes.Buffer{}, func(c *gin.Context) {
			stateOf(c).authenticate = func() (auth.Identity, error) { return auth.Identity{}, nil }
			(&router{model: w.model, auth: w.auth, dataStaleness: time.Hour, metrics: newMetrics(prometheus.NewRegistry())}).sendEvents(c, events)
		})
		began := time.Now()
		handler.ServeHTTP(&slowClient{timed{ResponseRecorder: httptest.NewRecorder()}, eventPatience - time.Second},
			httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		harness.Same(t, "duration", writeTimeout, time.Since(began))
	})
}

// A client that reads nothing is disconnected, while other clients get all changes.
func TestAStreamThatNobodyReadsIsCutOff(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newBigFacade(t, 1)
	ended := make(chan struct{}, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	server.Listener = tinyBuffers{server.Listener}
	server.Start()
	readNoFurther(t, server, 1, f.request(http.MethodGet, "/v2/events", ""))
	reader := httptest.NewServer(f)
	defer reader.Close()
	request := f.request(http.MethodGet, reader.URL+"/v2/events", "")
	request.RequestURI = ""
	stream, err := reader.Client().Do(request)
	harness.Must(t, err)
	defer stream.Body.Close() //nolint:errcheck // only read from
	lines := bufio.NewScanner(stream.Body)
	for version := 1000; ; version++ {
		f.tells(fmt.Sprintf("f-%d", version), version)
		for lines.Scan() && !strings.Contains(lines.Text(), fmt.Sprintf(`"id":"f-%d"`, version)) {
			if strings.HasPrefix(lines.Text(), "event: reset") {
				t.Fatal("who reads is told of a gap")
			}
		}
		harness.Must(t, lines.Err())
		select {
		case <-ended:
			return
		default:
		}
	}
}

func TestAStreamDoesNotKeepItsLargestBuffer(t *testing.T) {
	answer := httptest.NewRecorder()
	stream := &eventStream{
		events: &handlers.Events{ID: func(changes.Position) string { return "AAAA" }}, flush: answer.Flush,
		client: &pacedWriter{to: answer, control: http.NewResponseController(answer), patience: eventPatience},
	}
	for range eventBatch {
		stream.event("finding", changes.Position{}, bytes.Repeat([]byte("-"), 200))
	}
	sent := stream.out.Len()
	harness.Same(t, "whether it is sent", true, stream.write())
	harness.Same(t, "what the client got", sent, answer.Body.Len())
	if got := stream.out.Cap(); got > maxKept {
		t.Errorf("after a write of %d bytes the stream keeps a buffer of %d", sent, got)
	}
}

// A refused request would be recorded against the key, although nobody asked for events. The console knows the scopes
// of events by itself: it imports nothing of the facade.
func TestAPageAsksForItsPlaceOnlyIfTheKeyMayFollowEvents(t *testing.T) {
	model, err := readmodel.New(readmodel.Options{Source: held(nil)})
	harness.Must(t, err)
	backend := &handlers.Backend{Model: model, Cursors: cursor.NewRandom(), EventStreams: handlers.NewEventStreams()}
	for _, scope := range v1alpha1.Scopes() {
		var asked []string
		pages, err := console.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path)
			_, _ = fmt.Fprintf(w, `{"key":"ada","scopes":[%q]}`, scope)
		}), session.Sealer{Keys: cursor.NewRandom().Derive})
		harness.Must(t, err)
		serve := func(context.Context, *page.Visit) (page.Response, error) {
			return page.Response{Body: templ.NopComponent}, nil
		}
		request := httptest.NewRequest(http.MethodGet, console.Path+"x", http.NoBody)
		pages.Serve(page.Route{Method: http.MethodGet, Serve: serve}, console.Request{HTTP: request})

		errLacking := errors.New("the scope is missing")
		_, err = backend.StreamEvents(t.Context(), handlers.Request{
			Identity: auth.Identity{Scopes: []v1alpha1.Scope{scope}},
			Require:  func(v1alpha1.Scope) error { return errLacking },
		})
		if may := !errors.Is(err, errLacking); slices.Contains(asked, "/v2/events") != may {
			t.Errorf("%s: the page asks for %q; the key may follow events: %t", scope, asked, may)
		}
	}
}
