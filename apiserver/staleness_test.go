package apiserver

import (
	"cmp"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/changes"
	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// watched is a read model whose watches the test controls.
type watched struct {
	model *readmodel.Model
	clock *testclock.FakeClock
	kinds map[string]kube.Kind
	news  map[string]*watch.FakeWatcher
	auth  *auth.Authenticator
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{
		clock: testclock.NewFakeClock(time.Now()), kinds: map[string]kube.Kind{}, news: map[string]*watch.FakeWatcher{},
	}
	source := func(kind kube.Kind) kube.Source {
		news := watch.NewFakeWithChanSize(10, false)
		w.kinds[kind.Resource], w.news[kind.Resource] = kind, news
		return &heldSource{news: news}
	}
	model, err := readmodel.New(readmodel.Options{Log: logr.Discard(), Clock: w.clock, Source: source})
	harness.Must(t, err)
	w.model = model
	w.auth, err = auth.New(auth.Options{Config: &rest.Config{Host: "127.0.0.1:1"}, Namespace: "findings-system"})
	harness.Must(t, err)
	go func() { _ = model.Run(t.Context()) }()
	harness.Eventually(t, func(g Gomega) { g.Expect(model.Ready()).To(BeTrue()) })
	return w
}

// bookmark sends a bookmark for each of these kinds, which have been silent, and waits until they were received.
func (w *watched) bookmark(t *testing.T, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		object := w.kinds[kind].New()
		object.SetResourceVersion("2")
		w.news[kind].Action(watch.Bookmark, object)
	}
	harness.Eventually(t, func(g Gomega) {
		for _, kind := range kinds {
			_, silence := w.model.Silence(kind)
			g.Expect(silence).To(BeZero(), kind)
		}
	})
}

func TestEachKindThatGoesDeafIsNamedAndMarksWhatRestsOnIt(t *testing.T) {
	w := newWatched(t)
	s := &Server{model: w.model, auth: w.auth}
	harness.Same(t, "what a model without silent kinds reports", "", s.silenceReport())
	for _, deaf := range w.model.Kinds() {
		w.clock.Step(silentAfter + time.Second)
		w.bookmark(t, slices.DeleteFunc(w.model.Kinds(), func(kind string) bool { return kind == deaf })...)
		if report := s.silenceReport(); strings.Count(report, "\n") != 1 || !strings.Contains(report, "[!] "+deaf+": no data for 2m31s") {
			t.Errorf("%s is deaf: the report is %q", deaf, report)
		}
		for asked, kinds := range resting() {
			_, code, age := w.get(asked, time.Hour)
			if code != http.StatusOK || (age != "") != slices.Contains(kinds, deaf) {
				t.Errorf("%s is deaf: %s answers %d with age %q", deaf, asked, code, age)
			}
			if seconds, _ := strconv.Atoi(age); age != "" && seconds < 151 {
				t.Errorf("%s is deaf: %s gives an age of %q", deaf, asked, age)
			}
			body, code, _ := w.get(asked, 2*time.Minute)
			refused := code == http.StatusInternalServerError && strings.Contains(body, `"code":"stale"`)
			if refused != slices.Contains(kinds, deaf) {
				t.Errorf("%s has been deaf for longer than is allowed: %s answers %d %s", deaf, asked, code, body)
			}
		}
		w.streams(t, deaf)
		w.bookmark(t, deaf)
	}
}

// streams checks that only streams of the silent kind end, and are not opened.
func (w *watched) streams(t *testing.T, deaf string) {
	t.Helper()
	for kind, dependsOn := range streamDependsOn {
		events := &handlers.Events{Kinds: changes.Set(0).With(changes.Kind(kind)), Close: func() {}}
		for staleness, alive := range map[time.Duration]bool{time.Hour: true, 2 * time.Minute: dependsOn != deaf} {
			r := &router{model: w.model, auth: w.auth, dataStaleness: staleness}
			harness.Same(t, deaf+" has been deaf for 151 s, of at most "+staleness.String()+": the stream of "+dependsOn+" goes on",
				alive, r.beat(&eventStream{events: events}))
			engine := newEngine()
			engine.Use(func(c *gin.Context) { c.Set(stateKey, &state{}) })
			engine.HEAD("/", r.checkDataAge(&openapi.Operation{ID: "streamEvents"}), func(c *gin.Context) { r.sendEvents(c, events) })
			answer := httptest.NewRecorder()
			engine.ServeHTTP(answer, httptest.NewRequest(http.MethodHead, "/", http.NoBody))
			if (answer.Code == http.StatusOK) != alive || (answer.Header().Get(api.DataAgeHeader) != "") != (dependsOn == deaf) {
				t.Errorf("%s is deaf: a stream of %s is answered with %d %s", deaf, dependsOn, answer.Code, answer.Body)
			}
		}
	}
}

// A finding that exists must not seem not to, while the model does not show its organization yet.
func TestNothingSeemsNotToExistWhileItsOrganizationIsNotShown(t *testing.T) {
	w := newWatched(t)
	for want, needed := range map[int][]v1alpha1.Scope{
		http.StatusInternalServerError: {v1alpha1.ScopeFindingsRead}, http.StatusOK: nil,
	} {
		engine := newEngine()
		engine.Use(func(c *gin.Context) {
			c.Set(stateKey, &state{identity: auth.Identity{Organization: "acme"}, needed: needed})
		})
		engine.GET("/", (&router{model: w.model}).checkOrganization, func(c *gin.Context) { c.Status(http.StatusOK) })
		answer := answerOf(engine, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		if answer.Code != want {
			t.Errorf("with the scopes %q: %d %s", needed, answer.Code, answer.Body)
		}
	}
}

// asking is an operation by its scope and operationId; one of the two is empty.
type asking struct {
	scope     v1alpha1.Scope
	operation string
}

// resting returns the kinds that responses depend on.
func resting() map[asking][]string {
	out := map[asking][]string{}
	for scope, kinds := range dependsOn {
		out[asking{scope: scope}] = kinds
	}
	for operation, kinds := range alsoDependsOn {
		out[asking{operation: operation}] = kinds
	}
	return out
}

// get calls an operation, with staleness as the maximum age of data.
func (w *watched) get(asked asking, staleness time.Duration) (body string, code int, age string) {
	r := &router{model: w.model, auth: w.auth, dataStaleness: staleness}
	engine := newEngine()
	engine.Use(func(c *gin.Context) { c.Set(stateKey, &state{}) })
	contract := &openapi.Operation{ID: asked.operation, Scopes: []v1alpha1.Scope{asked.scope}}
	engine.GET("/", r.checkDataAge(contract), func(c *gin.Context) { c.Status(http.StatusOK) })
	answer := answerOf(engine, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	return answer.Body.String(), answer.Code, answer.Header().Get(api.DataAgeHeader)
}

// Responses of an operation whose scope is missing here would never state the age of their data.
func TestEveryScopeRestsOnKindsThatAreWatched(t *testing.T) {
	w := newWatched(t)
	for _, scope := range v1alpha1.Scopes() {
		if len(dependsOn[scope]) == 0 {
			t.Errorf("%s rests on nothing", scope)
		}
	}
	for asked, kinds := range resting() {
		for _, kind := range kinds {
			if !slices.Contains(w.model.Kinds(), kind) {
				t.Errorf("%s rests on %s, which nobody watches", asked, kind)
			}
		}
	}
}

// live holds kinds, and operations by their ids, whose responses show what the API server returns at that moment.
var live = []string{"triageoperations", "redeliverWebhookDelivery"}

// A response whose kind is missing here would be up to date by its headers, however old that kind's data is.
func TestEveryResponseRestsOnTheKindThatItShows(t *testing.T) {
	w := newWatched(t)
	spec, err := openapi.Load()
	harness.Must(t, err)
	operations, err := openapi.Operations(spec)
	harness.Must(t, err)
	shown := 0
	for id, operation := range operations {
		described := spec.Paths.Find(operation.Path).GetOperation(operation.Method)
		for _, response := range described.Responses.Map() {
			content := response.Value.Content.Get("application/json")
			if content == nil {
				continue
			}
			resource := kindOfSchema(path.Base(content.Schema.Ref))
			if !slices.Contains(w.model.Kinds(), resource) || slices.Contains(live, resource) || slices.Contains(live, id) {
				continue
			}
			shown++
			if !slices.Contains(slices.Concat(dependsOn[operation.Scopes[0]], alsoDependsOn[id]), resource) {
				t.Errorf("%s shows %s: add them to its operationId in alsoDependsOn, or to its scope in dependsOn", id, resource)
			}
		}
	}
	if shown < 20 {
		t.Errorf("only %d responses show a kind; did the names of schemas change?", shown)
	}
}

// kindOfSchema returns the resource of the kind that begins the schema's name: that of ReviewIssueList are reviewissues.
func kindOfSchema(schema string) (resource string) {
	for end := range schema {
		resource = cmp.Or(kube.Resource(schema[:end]), resource)
	}
	return cmp.Or(kube.Resource(schema), resource)
}

func TestEveryWatchedKindMakesResponsesStale(t *testing.T) {
	rested := slices.Concat(slices.Collect(maps.Values(resting()))...)
	for _, kind := range newWatched(t).model.Kinds() {
		if !slices.Contains(rested, kind) && !slices.Contains(live, kind) {
			t.Errorf("no response rests on %s: add them to dependsOn or alsoDependsOn in apiserver/staleness.go", kind)
		}
	}
}
