package kube

import (
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Unreadable stands for an object that its Go type cannot hold, or of which it must not ignore a part. A newer version
// wrote it, or it was stored before its schema was corrected.
type Unreadable struct {
	// PartialObjectMetadata holds only the object's kind, name, namespace, UID and resourceVersion.
	metav1.PartialObjectMetadata
	// Err describes what could not be read.
	Err error
}

// unreadable returns an Unreadable for an object of a kind, or an error if the JSON does not hold its name.
func unreadable(kind string, raw []byte, cause error) (*Unreadable, error) {
	var named struct {
		Metadata struct {
			Name            string    `json:"name"`
			Namespace       string    `json:"namespace"`
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &named); err != nil || named.Metadata.Name == "" {
		return nil, errors.Join(cause, err)
	}
	u := &Unreadable{Err: cause}
	u.APIVersion, u.Kind = v1alpha1.GroupVersion.String(), kind
	u.Name, u.Namespace = named.Metadata.Name, named.Metadata.Namespace
	u.UID, u.ResourceVersion = named.Metadata.UID, named.Metadata.ResourceVersion
	return u, nil
}

// maxNamed is how many unreadable objects of a namespace are named: logged, in a metric, and handed to
// OnFound. All are counted.
const maxNamed = 100

// Unreadables holds the objects that cannot be read now. It is safe for concurrent use.
type Unreadables struct {
	log logr.Logger
	// OnFound is called once for each named object, as long as it stays unreadable. It must not block.
	onFound func(*Unreadable)

	known   atomic.Int64 // the size of objects, to be read without the mutex
	mu      sync.Mutex
	objects map[objectKey]bool // value: whether it is named
	named   map[string]int     // how many are named, by namespace
}

type objectKey struct {
	resource string
	types.NamespacedName
}

// NewUnreadables returns an empty Unreadables. onFound may be nil.
func NewUnreadables(log logr.Logger, onFound func(*Unreadable)) *Unreadables {
	if onFound == nil {
		onFound = func(*Unreadable) {}
	}
	return &Unreadables{log: log, onFound: onFound, objects: map[objectKey]bool{}, named: map[string]int{}}
}

func (r *Unreadables) add(kind Kind, object *Unreadable) {
	key := keyOf(kind.Resource, object)
	if !r.count(key) {
		return
	}
	r.log.Error(object.Err,
		"An object cannot be read and is skipped; upgrade if a newer version wrote it, else correct it with kubectl",
		"resource", kind.Resource, "namespace", object.Namespace, "name", object.Name)
	r.onFound(object)
}

// count records an object, and reports whether it is to be named now: it was not named before, and
// maxNamed is not reached.
func (r *Unreadables) count(key objectKey) (name bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	named := r.objects[key]
	name = !named && r.named[key.Namespace] < maxNamed
	if name {
		r.named[key.Namespace]++
	}
	r.objects[key] = named || name
	r.known.Store(int64(len(r.objects)))
	return name
}

// remove forgets an object that can be read again or no longer exists.
func (r *Unreadables) remove(kind Kind, object metav1.Object) {
	if r.known.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(keyOf(kind.Resource, object))
}

// Knows reports whether the object still cannot be read.
func (r *Unreadables) Knows(object *Unreadable) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.objects[keyOf(Resource(object.Kind), object)]
	return known
}

// keep forgets all objects of a kind that a complete list did not contain.
func (r *Unreadables) keep(kind Kind, listed map[types.NamespacedName]struct{}) {
	if r.known.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.objects {
		if _, ok := listed[key.NamespacedName]; key.resource == kind.Resource && !ok {
			r.forget(key)
		}
	}
}

func (r *Unreadables) forget(key objectKey) {
	named, known := r.objects[key]
	if !known {
		return
	}
	delete(r.objects, key)
	r.known.Store(int64(len(r.objects)))
	if !named {
		return
	}
	if r.named[key.Namespace]--; r.named[key.Namespace] == 0 {
		delete(r.named, key.Namespace)
	}
}

func keyOf(resource string, object metav1.Object) objectKey {
	return objectKey{resource, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}
}

var (
	unreadableCount = prometheus.NewDesc("findings_unreadable_objects",
		"Objects that the Kubernetes API serves and that cannot be read, by kind; they are skipped.", []string{"kind"}, nil)
	unreadableName = prometheus.NewDesc("findings_unreadable_object_info",
		"An object that cannot be read; at most 100 of a namespace are named.", []string{"kind", "namespace", "name"}, nil)
)

var _ prometheus.Collector = (*Unreadables)(nil)

// Describe implements prometheus.Collector.
func (r *Unreadables) Describe(to chan<- *prometheus.Desc) {
	to <- unreadableCount
	to <- unreadableName
}

// Collect implements prometheus.Collector.
func (r *Unreadables) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := map[string]int{}
	for key, named := range r.objects {
		count[key.resource]++
		if named {
			to <- prometheus.MustNewConstMetric(unreadableName, prometheus.GaugeValue, 1, key.resource, key.Namespace, key.Name)
		}
	}
	for _, kind := range kinds {
		to <- prometheus.MustNewConstMetric(unreadableCount, prometheus.GaugeValue, float64(count[kind.Resource]),
			kind.Resource)
	}
}
