package schema_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// sparse is the fraction of odd texts that are tried per field, one in so many: trying all takes
// minutes.
const sparse = 8

// writers is the number of concurrent writes of odd objects per kind.
const writers = 4

// Every reader can read what the API server accepts: as the answer to the write, in a list and in a watch.
func TestWhatTheSchemaAcceptsDecodes(t *testing.T) {
	acceptAllKinds(t)
	var tried, accepted atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d odd objects, %d of them accepted", tried.Load(), accepted.Load())
		if accepted.Load() < 500 || accepted.Load() == tried.Load() {
			t.Errorf("%d of %d were accepted: the corpus proves nothing", accepted.Load(), tried.Load())
		}
	})
	for kind, crd := range crds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := newKindUnderTest(t, crd)
			seen := k.watch(t)
			all := corpus.Of(crd, "spec", sparse)
			tried.Add(int64(len(all)))
			group, ctx := errgroup.WithContext(t.Context())
			group.SetLimit(writers)
			for i, odd := range all {
				group.Go(func() error {
					stored, err := k.create(ctx, fmt.Sprintf("corpus-%d", i), odd)
					if stored {
						accepted.Add(1)
					}
					return err
				})
			}
			harness.Must(t, group.Wait())
			statuses := corpus.Of(crd, "status", sparse)
			tried.Add(int64(len(statuses)))
			accepted.Add(k.writeStatuses(t, statuses))
			k.listed(t)
			seen(k.last(t))
		})
	}
}

// kindUnderTest writes odd objects of a kind, as JSON that no Go type would produce.
type kindUnderTest struct {
	crd    *apiextensionsv1.CustomResourceDefinition
	kind   kube.Kind
	schema *apiextensionsv1.JSONSchemaProps
	client *http.Client
	reader *kube.ListWatch
	codecs serializer.CodecFactory

	mu sync.Mutex
	// unreadable are the objects that the list or the watch could not read.
	unreadable []string
	// created maps the names of accepted objects to their odd values.
	created map[string]corpus.Odd
}

func newKindUnderTest(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *kindUnderTest {
	t.Helper()
	client, err := rest.HTTPClientFor(almighty())
	harness.Must(t, err)
	reader, err := kube.NewReader(env.Config)
	harness.Must(t, err)
	k := &kindUnderTest{
		crd: crd, schema: schemaOf(t, crd), client: client, created: map[string]corpus.Odd{},
		codecs: serializer.NewCodecFactory(env.Scheme, serializer.EnableStrict),
	}
	object, err := env.Scheme.New(v1alpha1.GroupVersion.WithKind(crd.Spec.Names.Kind))
	harness.Must(t, err)
	kind, known := kube.KindOf(object)
	if !known {
		t.Fatalf("kinds in internal/kube/kinds.go has no %s", crd.Spec.Names.Kind)
	}
	k.kind = kind
	k.reader = kube.NewListWatch(kube.ListWatchOptions{
		Kind: k.kind, From: reader.Source(k.kind), Unreadables: kube.NewUnreadables(logr.Discard(), k.found),
	})
	return k
}

func (k *kindUnderTest) found(u *kube.Unreadable) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unreadable = append(k.unreadable, fmt.Sprintf("%s (%s): %v", u.Name, k.created[u.Name], u.Err))
}

// create reports whether the API server stored the odd object. An answer that cannot be decoded is an error.
func (k *kindUnderTest) create(ctx context.Context, name string, odd corpus.Odd) (bool, error) {
	object := newObject(k.crd, name)
	object.Object["spec"] = corpus.Part(k.schema, "spec", odd.Path, odd.Value)
	k.mu.Lock()
	k.created[name] = odd
	k.mu.Unlock()
	_, stored, err := k.send(ctx, http.MethodPost, k.path(), object, odd)
	return stored, err
}

// writeStatuses returns how many odd statuses of one object were accepted.
func (k *kindUnderTest) writeStatuses(t *testing.T, all []corpus.Odd) (accepted int64) {
	t.Helper()
	object := newObject(k.crd, "corpus-status")
	object.Object["spec"] = corpus.Part(k.schema, "spec", "", nil)
	env.Create(t, object)
	for _, odd := range all {
		k.mu.Lock()
		k.created[object.GetName()] = odd
		k.mu.Unlock()
		object.Object["status"] = corpus.Part(k.schema, "status", odd.Path, odd.Value)
		version, stored, err := k.send(t.Context(), http.MethodPut, k.path()+"/"+object.GetName()+"/status", object, odd)
		harness.NoError(t, "send it", err)
		if stored {
			accepted++
			object.SetResourceVersion(version)
		}
	}
	return accepted
}

func (k *kindUnderTest) path() string { return corpus.Path(k.crd, "default") }

// send writes the object, and decodes the stored object as a typed client does.
func (k *kindUnderTest) send(ctx context.Context, method, path string, object *unstructured.Unstructured, odd corpus.Odd) (version string, stored bool, err error) {
	content, err := json.Marshal(object.Object)
	if err != nil {
		// For example an invalid JSON number: an error of the corpus.
		return "", false, fmt.Errorf("%s: %w", odd, err)
	}
	status, answer, err := corpus.Send(ctx, k.client, method, env.Config.Host+path, "application/json", content)
	if err != nil {
		return "", false, err
	}
	switch status {
	case http.StatusOK, http.StatusCreated:
	case http.StatusUnprocessableEntity, http.StatusBadRequest, http.StatusForbidden:
		return "", false, nil
	default:
		return "", false, fmt.Errorf("%s: %d %.300s", odd, status, answer)
	}
	typed := k.kind.New()
	if _, _, err := k.codecs.UniversalDeserializer().Decode(answer, nil, typed); err != nil {
		return "", true, fmt.Errorf("%s is accepted and cannot be read: %w", odd, err)
	}
	return typed.GetResourceVersion(), true, nil
}

// listed expects the typed client and the readers' own list to read all objects.
func (k *kindUnderTest) listed(t *testing.T) {
	t.Helper()
	all, err := env.Scheme.New(v1alpha1.GroupVersion.WithKind(k.kind.Name + "List"))
	harness.Must(t, err)
	config, err := rest.RESTClientFor(typedConfig(k))
	harness.Must(t, err)
	harness.NoError(t, "the typed list of "+k.kind.Resource, config.Get().Resource(k.kind.Resource).Do(t.Context()).Into(all))
	_, err = k.reader.ListWithContext(t.Context(), metav1.ListOptions{})
	harness.NoError(t, "the list", err)
	k.wantAllRead(t)
}

func typedConfig(k *kindUnderTest) *rest.Config {
	config := rest.CopyConfig(env.Config)
	config.GroupVersion, config.APIPath = &v1alpha1.GroupVersion, "/apis"
	config.NegotiatedSerializer = k.codecs.WithoutConversion()
	return config
}

func (k *kindUnderTest) wantAllRead(t *testing.T) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.unreadable) > 0 {
		t.Errorf("%d objects are accepted and cannot be read, such as:\n%s", len(k.unreadable), strings.Join(k.unreadable[:min(10, len(k.unreadable))], "\n"))
	}
}

// watch starts a watch, and returns a function that waits until the watch has delivered the object
// with that name.
func (k *kindUnderTest) watch(t *testing.T) (until func(name string)) {
	t.Helper()
	begun, err := k.reader.WatchWithContext(t.Context(), metav1.ListOptions{})
	harness.Must(t, err)
	t.Cleanup(begun.Stop)
	names := make(chan string, 1<<16) // large enough for all: a watch that is not read is ended
	var ended error
	go func() {
		defer close(names)
		for event := range begun.ResultChan() {
			object, ok := event.Object.(metav1.Object)
			if !ok {
				ended = apierrors.FromObject(event.Object)
				return
			}
			names <- object.GetName()
		}
	}()
	return func(last string) {
		t.Helper()
		for name := range names {
			if name == last {
				k.wantAllRead(t)
				return
			}
		}
		t.Errorf("the watch ended before %s: %v", last, ended)
	}
}

// last creates the last object that the watch must deliver.
func (k *kindUnderTest) last(t *testing.T) string {
	t.Helper()
	object := newObject(k.crd, "corpus-last")
	object.Object["spec"] = corpus.Part(k.schema, "spec", "", nil)
	env.Create(t, object)
	return object.GetName()
}
