package auth

import (
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/apiserver/newest"
)

// view holds the known objects of one resource, fed by a watch and by lists at the same time. In whatever order data
// arrives, the view holds the newest state of each object and no deleted object, unless a list proves that the newest
// state was lost.
type view[T client.Object] struct {
	// key returns a second key, besides the UID, by which an object is found; "" for none.
	key func(T) string
	// same reports whether two states of an object differ in nothing that matters to changed; nil if everything matters.
	same func(before, after T) bool
	// changed is called with the lock held whenever an object was stored that is not the same, or one was removed.
	changed func(objects map[types.NamespacedName]T)

	mu       sync.RWMutex
	versions *newest.Versions
	objects  map[types.NamespacedName]T
	byUID    map[types.UID]types.NamespacedName
	byKey    map[string]types.NamespacedName
}

var _ cache.ReflectorStore = (*view[client.Object])(nil)

func newView[T client.Object](key func(T) string, same func(before, after T) bool,
	changed func(map[types.NamespacedName]T)) *view[T] {
	return &view[T]{
		key:      key,
		same:     same,
		changed:  changed,
		versions: newest.New(),
		objects:  map[types.NamespacedName]T{},
		byUID:    map[types.UID]types.NamespacedName{},
		byKey:    map[string]types.NamespacedName{},
	}
}

// get returns the object with the UID. It must not be changed.
func (v *view[T]) get(uid types.UID) (T, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	object, ok := v.objects[v.byUID[uid]]
	return object, ok
}

// find returns the object with the key. It must not be changed.
func (v *view[T]) find(key string) (T, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	object, ok := v.objects[v.byKey[key]]
	return object, ok
}

// in returns the objects of a namespace, in no order. They must not be changed.
func (v *view[T]) in(namespace string) (objects []T) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for name, object := range v.objects {
		if name.Namespace == namespace {
			objects = append(objects, object)
		}
	}
	return objects
}

// Add applies an object that a watch reports.
func (v *view[T]) Add(object any) error { return v.Update(object) }

// Update applies an object that a watch reports.
func (v *view[T]) Update(object any) error { return v.event(object, v.put) }

// Delete applies a deletion that a watch reports.
func (v *view[T]) Delete(object any) error {
	return v.event(object, func(gone T) error { return v.remove(gone) })
}

func (v *view[T]) event(object any, take func(T) error) error {
	o, ok := object.(T)
	if !ok {
		return fmt.Errorf("got a %T, want a %T", object, *new(T))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return take(o)
}

// Replace applies a complete list.
func (v *view[T]) Replace(list []any, version string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	objects := make([]metav1.Object, len(list))
	for i, object := range list {
		o, ok := object.(T)
		if !ok {
			return fmt.Errorf("got a %T, want a %T", object, *new(T))
		}
		isNewer, err := v.versions.PutListed(o, version, time.Now())
		if err != nil {
			return err
		}
		if isNewer {
			v.hold(o)
		}
		objects[i] = o
	}
	missing, err := v.versions.Missing(objects, version)
	if err != nil {
		return err
	}
	for _, gone := range missing {
		if err := v.remove(gone); err != nil {
			return err
		}
	}
	return nil
}

// Resync does nothing: nobody needs notifications about unchanged objects.
func (v *view[T]) Resync() error { return nil }

func (v *view[T]) put(object T) error {
	isNewer, err := v.versions.Put(object, time.Now())
	if err != nil || !isNewer {
		return err
	}
	v.hold(object)
	return nil
}

// hold stores an object that is newer.
func (v *view[T]) hold(object T) {
	trim(object)
	name := newest.Key(object)
	before, known := v.objects[name]
	v.unlink(name)
	v.objects[name] = object
	v.byUID[object.GetUID()] = name
	v.link(name, object)
	if !known || v.same == nil || !v.same(before, object) {
		v.notify()
	}
}

func (v *view[T]) remove(gone metav1.Object) error {
	isNewer, err := v.versions.Remove(gone, time.Now())
	if err != nil || !isNewer {
		return err
	}
	v.unlink(newest.Key(gone))
	v.notify()
	return nil
}

// link indexes the object by its key. Two objects share a key only until the change or the deletion of the
// older one is observed.
func (v *view[T]) link(name types.NamespacedName, object T) {
	key := v.key(object)
	if key == "" {
		return
	}
	if other, ok := v.objects[v.byKey[key]]; ok && newer(other, object) {
		return
	}
	v.byKey[key] = name
}

// unlink removes the object of that name, if there is one.
func (v *view[T]) unlink(name types.NamespacedName) {
	object, ok := v.objects[name]
	if !ok {
		return
	}
	delete(v.objects, name)
	delete(v.byUID, object.GetUID())
	if key := v.key(object); v.byKey[key] == name {
		delete(v.byKey, key)
	}
}

func (v *view[T]) notify() {
	if v.changed != nil {
		v.changed(v.objects)
	}
}

// newer reports whether a has a later resource version than b. The view holds both, so their versions are
// comparable.
func newer(a, b metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
