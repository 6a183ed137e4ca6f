package readmodel

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// The delays before the Kubernetes API is called again: after the first failure, and the maximum.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// reflect runs one reflector per kind. All list at the same time, but their first lists are applied in order.
func (m *Model) reflect(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	before := make(chan struct{})
	close(before) // nothing comes before the first
	for k := range kinds {
		store := &store{model: m, kind: k, before: before, listed: make(chan struct{}), done: ctx.Done()}
		before = store.listed
		reflector := cache.NewReflectorWithOptions(m.listWatch(k), k.known().New(), store,
			cache.ReflectorOptions{
				Name:   k.String(),
				Logger: &m.log,
				Backoff: &wait.Backoff{
					Duration: firstRetry, Cap: lastRetry, Steps: int(lastRetry / firstRetry), Factor: 2, Jitter: 1,
				},
			})
		group.Go(func() error {
			reflector.RunWithContext(ctx)
			return nil
		})
	}
	return group.Wait()
}

// store receives the objects of a kind from a reflector.
type store struct {
	model *Model
	kind  kind
	// before is closed once the preceding kind is listed, and done when the model stops.
	before, done <-chan struct{}
	// listed is closed by the first list.
	listed chan struct{}
	closed bool
}

var _ cache.ReflectorBookmarkStore = &store{}

// Add applies an added object.
func (s *store) Add(object any) error { return s.add(object, false) }

// Update applies a changed object.
func (s *store) Update(object any) error { return s.add(object, false) }

// Delete applies the deletion of an object, with the version of the deletion.
func (s *store) Delete(object any) error { return s.add(object, true) }

// Resync does nothing.
func (s *store) Resync() error { return nil }

// Replace applies a list of all objects. Only one reflector calls it, never concurrently.
func (s *store) Replace(list []any, listVersion string) error {
	select {
	case <-s.before:
	case <-s.done:
		return context.Canceled
	}
	objects := make([]metav1.Object, len(list))
	for i := range list {
		object, ok := list[i].(metav1.Object)
		if !ok {
			return fmt.Errorf("list of %s holds a %T", s.kind, list[i])
		}
		objects[i] = object
	}
	if err := s.model.replace(s.kind, objects, listVersion); err != nil {
		return err
	}
	if !s.closed {
		s.closed = true
		close(s.listed)
	}
	return nil
}

// Bookmark records that nothing has changed since the last event.
func (s *store) Bookmark(version string) error {
	s.model.recordContact[s.kind]()
	s.model.noticeQuiet(s.kind, version)
	return nil
}

func (s *store) add(object any, deleted bool) error {
	accessor, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("watch of %s holds a %T", s.kind, object)
	}
	return s.model.add(change{kind: s.kind, object: accessor, deleted: deleted})
}
