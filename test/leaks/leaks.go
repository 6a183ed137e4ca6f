// Package leaks searches for secrets where they must not appear: in logs, Events, the fields of
// resources, metrics and answers.
package leaks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// syncTimeout bounds the first lists of a cluster.
const syncTimeout = time.Minute

// kinds are the searched resources beside this project's own, in each version of each object; the values of Secrets are
// the needles.
var kinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "events"},
	{Version: "v1", Resource: "namespaces"},
	{Version: "v1", Resource: "serviceaccounts"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
}

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// Search collects secrets, and texts that might contain them. It is safe for concurrent use.
type Search struct {
	folder string
	stop   context.CancelFunc

	mu sync.Mutex
	// needles maps each form of a secret to its origin.
	needles map[string]string
	texts   map[string]*os.File
	failed  error
}

// Start starts to follow a cluster, with credentials that may read everything there. It returns
// once it has listed the existing objects. The texts are kept in files of the folder.
func Start(config *rest.Config, folder string) (*Search, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	resources := append(slices.Clone(kinds), secrets)
	for kind := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		if resource := kube.Resource(kind); resource != "" { // not a list
			resources = append(resources, v1alpha1.GroupVersion.WithResource(resource))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := newSearch(folder, cancel)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	for _, resource := range resources {
		look := func(object any) { s.keep(resource, object) }
		if _, err := factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    look,
			UpdateFunc: func(_, object any) { look(object) },
		}); err != nil {
			cancel()
			return nil, err
		}
	}
	factory.Start(ctx.Done())
	synced, done := context.WithTimeout(ctx, syncTimeout)
	defer done()
	for resource, ok := range factory.WaitForCacheSync(synced.Done()) {
		if !ok {
			cancel()
			return nil, fmt.Errorf("list the %s: no answer in %s", resource.Resource, syncTimeout)
		}
	}
	return s, nil
}

func newSearch(folder string, stop context.CancelFunc) *Search {
	return &Search{folder: folder, stop: stop, needles: map[string]string{}, texts: map[string]*os.File{}}
}

// keep adds the values of a Secret to the needles, and any other object to the texts.
func (s *Search) keep(resource schema.GroupVersionResource, object any) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	if resource == secrets {
		s.learn(u)
		return
	}
	text, err := json.Marshal(u.Object)
	if err == nil {
		_, err = fmt.Fprintf(s.Text(resource.Resource), "%s\n", text)
	}
	if err != nil {
		s.fail(err)
	}
}

// learn adds the values of a Secret.
func (s *Search) learn(secret *unstructured.Unstructured) {
	data, _, err := unstructured.NestedStringMap(secret.Object, "data")
	if err != nil {
		s.fail(err)
	}
	for key, value := range data {
		for _, form := range formsOf(key, value) {
			s.Secret(form, fmt.Sprintf("%s of Secret %s/%s", key, secret.GetNamespace(), secret.GetName()))
		}
	}
}

// Secret adds a needle of at least minLength bytes, with its name in reports.
func (s *Search) Secret(value, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needles[value] = name
}

// Text returns a writer for text that is to be searched. Texts with the same name are joined.
func (s *Search) Text(name string) io.Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := s.texts[name]
	if file == nil {
		var err error
		if file, err = os.Create(filepath.Join(s.folder, name+".txt")); err != nil {
			s.failed = errors.Join(s.failed, err)
			return io.Discard
		}
		s.texts[name] = file
	}
	return file
}

func (s *Search) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = errors.Join(s.failed, err)
}

// Result is the result of a search.
type Result struct {
	// Secrets is the number of needles, and Bytes the size of the searched texts.
	Secrets, Bytes int
	// Leaks report which secret was found where, without repeating the secret.
	Leaks []string
}

// End stops following the cluster, and searches for each secret in each text.
func (s *Search) End() (Result, error) {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	result := Result{Secrets: len(s.needles)}
	known, err := newIndex(maps.Keys(s.needles)), s.failed
	for name, file := range s.texts {
		content, readErr := os.ReadFile(file.Name())
		err = errors.Join(err, readErr, file.Close())
		result.Bytes += len(content)
		for needle, at := range known.find(content) {
			line := 1 + bytes.Count(content[:at], []byte("\n"))
			result.Leaks = append(result.Leaks, fmt.Sprintf("%s is in %s, line %d", s.needles[needle], name, line))
		}
	}
	slices.Sort(result.Leaks)
	return result, err
}
