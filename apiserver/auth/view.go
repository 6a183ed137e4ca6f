package auth

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// view is what is known of the objects of one resource, fed by a watch and by lists at the
// same time. Whatever comes in which order, an object never goes back to an older state, and
// one that was deleted never comes back:
//
//   - of two states of an object the one of the newer resourceVersion stays;
//   - a list at version r removes what it does not hold and is not newer than r;
//   - what is not newer than the newest list and was not in it had been deleted by then;
//   - a deletion that the watch reported is remembered until a list is as new as it;
//   - a deletion without a UID is that of an object that cannot be read, and comes back when it can.
type view[T client.Object] struct {
	// key is what an object is found by besides its UID; "" for nothing.
	key func(T) string
	// changed is called with the lock held whenever an object was put or removed.
	changed func(objects map[types.UID]T)

	mu      sync.RWMutex
	objects map[types.UID]T
	byKey   map[string]types.UID
	deleted map[types.UID]string
	// listed is the version of the newest list.
	listed string
}

var _ cache.ReflectorStore = (*view[client.Object])(nil)

func newView[T client.Object](key func(T) string, changed func(map[types.UID]T)) *view[T] {
	return &view[T]{
		key:     key,
		changed: changed,
		objects: map[types.UID]T{},
		byKey:   map[string]types.UID{},
		deleted: map[types.UID]string{},
	}
}

// get returns the object of that UID. It must not be changed.
func (v *view[T]) get(uid types.UID) (T, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	object, ok := v.objects[uid]
	return object, ok
}

// find returns the object of that key. It must not be changed.
func (v *view[T]) find(key string) (T, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	object, ok := v.objects[v.byKey[key]]
	return object, ok
}

// Add takes in an object that a watch reports.
func (v *view[T]) Add(object any) error { return v.Update(object) }

// Update takes in an object that a watch reports.
func (v *view[T]) Update(object any) error {
	o, ok := object.(T)
	if !ok {
		return fmt.Errorf("got a %T, want a %T", object, *new(T))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.objects[o.GetUID()]; !known && v.listed != "" && !newer(o.GetResourceVersion(), v.listed) {
		return nil
	}
	v.put(o)
	return nil
}

// Delete takes in a deletion that a watch reports.
func (v *view[T]) Delete(object any) error {
	o, ok := object.(T)
	if !ok {
		return fmt.Errorf("got a %T, want a %T", object, *new(T))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if o.GetUID() == "" {
		v.removeNamed(o)
		return nil
	}
	if v.listed == "" || newer(o.GetResourceVersion(), v.listed) {
		v.deleted[o.GetUID()] = o.GetResourceVersion()
	}
	v.remove(o.GetUID())
	return nil
}

// Replace takes in a complete list.
func (v *view[T]) Replace(list []any, version string) error {
	objects := make(map[types.UID]T, len(list))
	for _, object := range list {
		o, ok := object.(T)
		if !ok {
			return fmt.Errorf("got a %T, want a %T", object, *new(T))
		}
		objects[o.GetUID()] = o
	}
	v.replace(objects, version)
	return nil
}

func (v *view[T]) replace(objects map[types.UID]T, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.listed != "" && newer(v.listed, version) {
		return
	}
	v.listed = version
	for _, object := range objects {
		v.put(object)
	}
	for uid, object := range v.objects {
		if _, held := objects[uid]; !held && !newer(object.GetResourceVersion(), version) {
			v.remove(uid)
		}
	}
	for uid, at := range v.deleted {
		if !newer(at, version) {
			delete(v.deleted, uid)
		}
	}
}

// Resync has nothing to do: nobody is told of objects that stay as they are.
func (v *view[T]) Resync() error { return nil }

func (v *view[T]) put(object T) {
	uid := object.GetUID()
	if _, gone := v.deleted[uid]; gone {
		return
	}
	if have, ok := v.objects[uid]; ok {
		if !newer(object.GetResourceVersion(), have.GetResourceVersion()) {
			return
		}
		v.unlink(have)
	}
	v.objects[uid] = object
	v.link(object)
	v.tell()
}

func (v *view[T]) remove(uid types.UID) {
	object, ok := v.objects[uid]
	if !ok {
		return
	}
	v.unlink(object)
	delete(v.objects, uid)
	v.tell()
}

// removeNamed removes the object of that name, which cannot be read any more and may be mended.
func (v *view[T]) removeNamed(gone T) {
	for uid, object := range v.objects {
		if object.GetName() == gone.GetName() && object.GetNamespace() == gone.GetNamespace() &&
			newer(gone.GetResourceVersion(), object.GetResourceVersion()) {
			v.remove(uid)
		}
	}
}

// link lets the object be found by its key. Two objects have one key only while the deletion
// of the older has yet to be seen.
func (v *view[T]) link(object T) {
	key := v.key(object)
	if key == "" {
		return
	}
	if other, ok := v.objects[v.byKey[key]]; ok && newer(other.GetResourceVersion(), object.GetResourceVersion()) {
		return
	}
	v.byKey[key] = object.GetUID()
}

func (v *view[T]) unlink(object T) {
	if key := v.key(object); v.byKey[key] == object.GetUID() {
		delete(v.byKey, key)
	}
}

func (v *view[T]) tell() {
	if v.changed != nil {
		v.changed(v.objects)
	}
}

// newer reports whether version a is later than b. Both are of one resource. A version that
// is no number, which no API server of today sends, counts as later: what came last holds.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}
