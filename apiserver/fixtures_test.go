package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/cluster"
	"github.com/appsec-dev/findings-operator/apiserver/cursor"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	acme          = "acme"
	acmeNamespace = "org-acme"
)

// serverOf serves all operations over a read model of these objects and an API server that answers as stored does.
func serverOf(t testing.TB, stored http.RoundTripper, objects ...client.Object) http.Handler {
	t.Helper()
	return routesOf(t, backendOf(t, modelOf(t, objects...), stored))
}

func backendOf(f testing.TB, model *readmodel.Model, stored http.RoundTripper) *handlers.Backend {
	f.Helper()
	client, err := cluster.NewClient(&rest.Config{Host: "http://nowhere.invalid", Transport: stored})
	harness.Must(f, err)
	return &handlers.Backend{Model: model, Cursors: cursor.NewRandom(), Cluster: client, Exports: handlers.NewExports(), EventStreams: handlers.NewEventStreams()}
}

// routesOf are all operations, without the parts of the chain that need a cluster.
func routesOf(f testing.TB, backend *handlers.Backend) http.Handler {
	f.Helper()
	spec, err := openapi.Load()
	harness.Must(f, err)
	described, err := openapi.Operations(spec)
	harness.Must(f, err)
	r := &router{dataStaleness: DefaultDataStaleness, model: backend.Model, metrics: newMetrics(prometheus.NewRegistry()), log: slog.New(slog.DiscardHandler), templates: map[string]string{}}
	engine := newEngine()
	engine.Use(r.observe, func(c *gin.Context) {
		identity := &stateOf(c).identity
		identity.Organization, identity.Namespace, identity.KeyName = acme, acmeNamespace, "fuzz"
		identity.Scopes = v1alpha1.Scopes()
		stateOf(c).authenticate = func() (auth.Identity, error) { return *identity, nil }
	})
	harness.Must(f, r.addOperations(engine.Group(""), described, handlers.Operations(backend)))
	return engine
}

// modelOf is a read model of acme with these objects, until the test ends.
func modelOf(f testing.TB, objects ...client.Object) *readmodel.Model {
	f.Helper()
	organization := builder.Organization(acme).Build()
	organization.Status.Namespace = acmeNamespace
	model, err := readmodel.New(readmodel.Options{Source: held(nil, append(objects, organization)...)})
	harness.Must(f, err)
	harness.Background(f, model.Run)
	if err := wait.PollUntilContextTimeout(f.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return model.Ready(), nil
	}); err != nil {
		f.Fatal("wait for the read model: ", err)
	}
	return model
}

// held returns sources that list these objects, each with its kind, and have news of these resources.
func held(news map[string]watch.Interface, objects ...client.Object) func(kube.Kind) kube.Source {
	of := map[string][]client.Object{}
	for _, object := range objects {
		if _, wide := object.(*v1alpha1.Organization); !wide {
			object.SetNamespace(acmeNamespace)
		}
		object.SetUID(types.UID("uid-" + object.GetName()))
		object.SetResourceVersion("1")
		object.SetGeneration(1)
		object.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC)))
		kind, _ := kube.KindOf(object)
		of[kind.Resource] = append(of[kind.Resource], object)
	}
	return func(kind kube.Kind) kube.Source {
		source := &heldSource{objects: of[kind.Resource], news: news[kind.Resource]}
		if source.news == nil {
			source.news = watch.NewFake()
		}
		return source
	}
}

// heldSource lists its objects in one page.
type heldSource struct {
	objects []client.Object
	news    watch.Interface
}

func (h *heldSource) List(_ context.Context, _ metav1.ListOptions, each func(runtime.Object) error) (metav1.ListMeta, error) {
	for _, object := range h.objects {
		if err := each(object); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return metav1.ListMeta{ResourceVersion: "1"}, nil
}

func (h *heldSource) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return h.news, nil
}

// nothingStored answers like an API server that has nothing. A patch must be JSON all the same.
type nothingStored struct{}

func (nothingStored) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		content, err := io.ReadAll(request.Body)
		if err != nil || !json.Valid(content) || !utf8.Valid(content) {
			panic(fmt.Sprintf("a patch that is no JSON: %q, %v", content, err))
		}
	}
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(http.StatusNotFound)
	fmt.Fprint(answer, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`) //nolint:errcheck // a recorder takes all
	return answer.Result(), nil
}

// answerOf returns what the handler answers.
func answerOf(handler http.Handler, request *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}
