package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/cluster"
	"github.com/appsec-dev/findings-operator/apiserver/console/session"
	"github.com/appsec-dev/findings-operator/apiserver/cursor"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/ratelimit"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/apiserver/uploads"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// bigFacade handles requests over many findings through the whole chain, as clients see it: routes, key, limit
// in memory, validation, operation, log and metrics. The API server behind it lists a key, its organization and
// the signing keys, and accepts every patch of a finding.
type bigFacade struct {
	http.Handler
	router *router
	model  *readmodel.Model
	token  string
	// news delivers later changes of findings, organizations those of organizations.
	news, organizations *watch.FakeWatcher
	cluster             *stubCluster
	// exports limits concurrent exports.
	exports *slots.Slots
	// sessions seals the console's sessions.
	sessions session.Sealer
}

const (
	benchRepositories = 50
	benchProjects     = 500
)

// facadeOf returns a facade with that many findings, which benchmarks and tests share.
func facadeOf(tb testing.TB, findings int) *bigFacade {
	tb.Helper()
	facades.Lock()
	defer facades.Unlock()
	if facades.of == nil {
		facades.of = map[int]*bigFacade{}
	}
	if facades.of[findings] == nil {
		facades.of[findings] = newBigFacade(tb, findings)
	}
	return facades.of[findings]
}

var facades struct {
	sync.Mutex
	of map[int]*bigFacade
}

func newBigFacade(tb testing.TB, findings int) *bigFacade {
	tb.Helper()
	stub := newStubCluster(tb)
	config := &rest.Config{Host: "http://stub.invalid", Transport: stub, QPS: -1}
	authenticator, err := auth.New(auth.Options{Config: config, Namespace: "findings-system", Staleness: time.Hour, Log: logr.Discard()})
	harness.Must(tb, err)
	news, organizations := watch.NewFakeWithChanSize(1, false), watch.NewFakeWithChanSize(2, false)
	source := held(map[string]watch.Interface{"findings": news, "organizations": organizations}, benchObjects(findings)...)
	model, err := readmodel.New(readmodel.Options{Source: source})
	harness.Must(tb, err)
	// They run until the process ends: later benchmarks use them too.
	go authenticator.Run(context.Background()) //nolint:errcheck // it never ends
	go model.Run(context.Background())         //nolint:errcheck // it never ends
	if err := wait.PollUntilContextTimeout(tb.Context(), time.Millisecond, 5*time.Minute, true, func(context.Context) (bool, error) {
		_, err := authenticator.Authenticate("Bearer "+stub.token, time.Now())
		return model.Ready() && err == nil, nil
	}); err != nil {
		tb.Fatal("wait for keys and read model: ", err)
	}
	registry := prometheus.NewRegistry()
	limiter, err := ratelimit.New(ratelimit.Options{Registerer: registry})
	harness.Must(tb, err)
	tracer, err := tracing.New(context.Background(), tracing.Options{})
	harness.Must(tb, err)
	cursors := cursor.NewRandom()
	r := &router{
		dataStaleness: DefaultDataStaleness,
		auth:          authenticator, model: model, limiter: limiter, tracer: tracer, metrics: newMetrics(registry),
		sessions: &session.Sealer{Keys: cursors.Derive},
		log:      slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	backend := &handlers.Backend{Model: model, Cursors: cursors, Exports: handlers.NewExports(), EventStreams: handlers.NewEventStreams()}
	backend.Cluster, err = cluster.NewClient(config)
	harness.Must(tb, err)
	backend.Uploads, err = uploads.New(uploads.Options{Config: config, Log: slog.New(slog.DiscardHandler)})
	harness.Must(tb, err)
	handler, err := r.handler(handlers.Operations(backend))
	harness.Must(tb, err)
	return &bigFacade{
		Handler: handler, router: r, model: model, token: stub.token, news: news, organizations: organizations, cluster: stub,
		exports: backend.Exports, sessions: *r.sessions,
	}
}

// benchObjects returns findings of about 3 KB, one review per ten findings, and what they belong to.
func benchObjects(findings int) []client.Object {
	organization := builder.Organization(acme).Build()
	organization.Status.Namespace = acmeNamespace
	objects := []client.Object{organization}
	for i := range benchRepositories {
		objects = append(objects, builder.Repository(fmt.Sprintf("repo-%d", i)).Build())
	}
	for i := range benchProjects {
		project := builder.Project(fmt.Sprintf("project-%d", i)).In(acmeNamespace).Build()
		project.Spec.RepositoryRef.Name = v1alpha1.ResourceName(fmt.Sprintf("repo-%d", i%benchRepositories))
		project.Spec.Owner = fmt.Sprintf("team-%d", i%20)
		objects = append(objects, project)
	}
	for i := range findings / 10 {
		review := builder.Review(fmt.Sprintf("rv-%05d", i)).PullRequest(fmt.Sprintf("repo-%d", i%benchRepositories), int32(i+1)).Build() //nolint:gosec // small
		at := v1alpha1.NewTime(benchEpoch.Add(time.Duration(i) * time.Minute))
		review.Status.ObservedGeneration, review.Status.UpdatedAt = 1, &at
		if i%1000 == 0 {
			review.Spec.PRStatus = v1alpha1.PullRequestMerged
		}
		objects = append(objects, review)
	}
	for i := range findings {
		objects = append(objects, benchFinding(i))
	}
	return objects
}

var benchEpoch = time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC)

// benchLines are the lines that texts consist of.
var benchLines = func() (lines []string) {
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf("if value%d < limit { return \"x\" }\n", i))
	}
	return lines
}()

// benchFinding returns a finding of about 3 KB; one in a thousand is muted.
func benchFinding(i int) *v1alpha1.Finding {
	random := rand.New(rand.NewPCG(uint64(i), 7)) //nolint:gosec // the same each time
	text := func(lines int) string {
		var out strings.Builder
		for range lines {
			out.WriteString(benchLines[random.IntN(len(benchLines))])
		}
		return out.String()
	}
	project := random.IntN(benchProjects)
	finding := builder.Finding(fmt.Sprintf("f-%08d", i)).
		Project(fmt.Sprintf("repo-%d", project%benchRepositories), fmt.Sprintf("project-%d", project)).
		DetectedAt(benchEpoch.Add(time.Duration(random.IntN(1_000_000)) * time.Second)).Build()
	spec := &finding.Spec
	spec.Details.Severity = []v1alpha1.Level{"high", "medium", "low"}[random.IntN(3)]
	spec.Details.Description, spec.Details.Code = text(20), text(25)
	spec.Details.Remediation, spec.Details.ExploitWalkthrough = text(12), text(12)
	builder.Scanned(random, spec)
	if i%1000 == 0 {
		spec.Triage.UserStatus = v1alpha1.UserStatusMuted
	}
	finding.Status.ObservedGeneration, finding.Status.UpdatedAt = 1, spec.DetectedAt
	return finding
}

// stubCluster answers the requests that the authenticator and a triage send to the API server.
type stubCluster struct {
	token string
	key   *v1alpha1.APIKey

	mu    sync.Mutex
	lists map[string][]byte
}

func newStubCluster(tb testing.TB) *stubCluster {
	tb.Helper()
	signing := tokens.GenerateSigningKey()
	now := time.Now()
	claims := tokens.Claims{
		KeyUID: "uid-key", Organization: acme, ID: "token-1", IssuedAt: now, ExpiresAt: now.Add(24 * time.Hour),
	}
	token, err := signing.Sign(claims)
	harness.Must(tb, err)
	plenty := int32(1_000_000_000)
	expires := v1alpha1.NewTime(claims.ExpiresAt)
	key := builder.APIKey("key").In(acmeNamespace).Build()
	key.UID, key.ResourceVersion = "uid-key", "1"
	key.Spec.RateLimit, key.Spec.Scopes = &v1alpha1.RateLimit{RequestsPerMinute: &plenty}, v1alpha1.Scopes()
	key.Status.KeyID, key.Status.ExpiresAt = claims.ID, &expires
	used := v1alpha1.NewTime(now.Add(apitime.MaxAhead)) // no use is recorded meanwhile
	key.Status.LastUsedAt = &used
	organization := builder.Organization(acme).Build()
	organization.UID, organization.ResourceVersion = "uid-acme", "1"
	organization.Status.Namespace = acmeNamespace
	data, err := tokens.EncodeKeySet(signing.Public())
	harness.Must(tb, err)
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: tokens.SigningKeysConfigMap, Namespace: "findings-system", UID: "uid-keys", ResourceVersion: "1"},
		Data:       data,
	}
	listed := metav1.ListMeta{ResourceVersion: "1"}
	lists := map[string]any{
		"apikeys":       keyList(key),
		"organizations": v1alpha1.OrganizationList{TypeMeta: metav1.TypeMeta{Kind: "OrganizationList", APIVersion: "appsec.dev/v1alpha1"}, ListMeta: listed, Items: []v1alpha1.Organization{*organization}},
		"configmaps":    corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}, ListMeta: listed, Items: []corev1.ConfigMap{*configMap}},
	}
	stub := &stubCluster{token: token, key: key, lists: map[string][]byte{}}
	for resource, list := range lists {
		stub.lists[resource] = harness.JSON(tb, list)
	}
	return stub
}

func keyList(key *v1alpha1.APIKey) v1alpha1.APIKeyList {
	return v1alpha1.APIKeyList{
		TypeMeta: metav1.TypeMeta{Kind: "APIKeyList", APIVersion: "appsec.dev/v1alpha1"},
		ListMeta: metav1.ListMeta{ResourceVersion: key.ResourceVersion}, Items: []v1alpha1.APIKey{*key},
	}
}

// changeKey changes the key once.
func (s *stubCluster) changeKey(tb testing.TB, change func(*v1alpha1.APIKeySpec)) {
	tb.Helper()
	key := s.key.DeepCopy()
	key.ResourceVersion = "2"
	change(&key.Spec)
	s.store(tb, "apikeys", keyList(key))
}

// store makes the object the answer to reads of the resource, or of the object, with that name.
func (s *stubCluster) store(tb testing.TB, name string, object any) {
	tb.Helper()
	content := harness.JSON(tb, object)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[name] = content
}

// RoundTrip answers lists. A watch never delivers events. A patch returns a newer version of the finding, or an empty
// API key if it is of a status, and nothing is stored.
func (s *stubCluster) RoundTrip(request *http.Request) (*http.Response, error) {
	resource := request.URL.Path[strings.LastIndexByte(request.URL.Path, '/')+1:]
	answer := &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": []string{"application/json"}},
	}
	switch {
	case request.Method == http.MethodPatch && resource == "status": // a key was used
		answer.Body = io.NopCloser(strings.NewReader(`{"kind":"APIKey","apiVersion":"appsec.dev/v1alpha1"}`))
	case request.Method == http.MethodPatch:
		answer.Body = io.NopCloser(bytes.NewReader(s.patch(resource)))
	case request.URL.Query().Get("sendInitialEvents") != "":
		answer.StatusCode = http.StatusUnprocessableEntity
		answer.Body = io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
	case request.URL.Query().Get("watch") != "":
		answer.Body = endless{request.Context()}
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		answer.Body = io.NopCloser(bytes.NewReader(s.lists[resource]))
	}
	return answer, nil
}

var patched struct {
	sync.Mutex
	version int
}

// patch returns the finding with that name, in a newer version.
func (s *stubCluster) patch(name string) []byte {
	var number int
	if _, err := fmt.Sscanf(name, "f-%d", &number); err != nil {
		panic(err)
	}
	patched.Lock()
	patched.version++
	version := patched.version
	patched.Unlock()
	finding := benchFinding(number)
	finding.Namespace, finding.UID, finding.Generation = acmeNamespace, types.UID("uid-"+name), 1
	finding.ResourceVersion = fmt.Sprint(1 + version)
	finding.Spec.Triage.UserStatus = []v1alpha1.UserStatus{v1alpha1.UserStatusActive, v1alpha1.UserStatusOpen}[version%2]
	content, err := json.Marshal(finding)
	if err != nil {
		panic(err)
	}
	return content
}

// endless is a body without data until its request ends.
type endless struct{ ctx context.Context }

func (e endless) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, io.EOF
}

func (endless) Close() error { return nil }

// request returns a request with the key.
func (f *bigFacade) request(method, target, body string) *http.Request {
	request := httptest.NewRequest(method, target, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+f.token)
	if body == "" {
		request.Body = http.NoBody
	} else {
		request.Header.Set("Content-Type", "application/json")
	}
	return request
}

// body returns the body of the response to a GET.
func (f *bigFacade) body(tb testing.TB, target string) []byte {
	tb.Helper()
	answer := answerOf(f, f.request(http.MethodGet, target, ""))
	if answer.Code != http.StatusOK {
		tb.Fatalf("%s is answered with %d %s", target, answer.Code, answer.Body)
	}
	return answer.Body.Bytes()
}

// placeOf returns the path of a finding below its repository.
func (f *bigFacade) placeOf(tb testing.TB, id string) string {
	tb.Helper()
	item, ok := f.model.Finding(acme, id)
	if !ok {
		tb.Fatalf("there is no finding %s", id)
	}
	return item.RepoID + "/projects/" + item.ProjectID + "/findings/" + id
}

// discarded accepts a response and keeps nothing.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header               { return d.header }
func (d *discarded) WriteHeader(status int)            { d.status = status }
func (d *discarded) Flush()                            {}
func (d *discarded) Write(content []byte) (int, error) { return len(content), nil }
