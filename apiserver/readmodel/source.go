package readmodel

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// pageSize is how many objects of a list are asked for at a time where it did not come whole: some 2 MB of
// findings.
const pageSize = 500

// source is what a reflector lists and watches.
//
// It renders each object of a list as it comes. It asks for a list whole and as it is now, but from the API
// server's cache alone: pages after the first come from etcd once that has been compacted since the last
// change, which costs the API server three times as much, and so would a whole list that its cache is not
// ready for. A list that does not come whole, as one that takes longer than the API server gives a request,
// is asked for in pages from then on. A list as one watch, which reflectors prefer, has each object decoded
// twice and takes twice as long.
//
// It tells the model that the API server has answered, also where that has nothing to say: the watch
// of a kind that nobody changes begins anew every few minutes.
type source struct {
	// ListWatch is what reflectors know: list and watch.
	*cache.ListWatch
	from  Source
	model *Model
	kind  kind
	// inPages says that a list did not come whole. Reflectors list one at a time.
	inPages bool
}

func newSource(from Source, model *Model, kind kind) *source {
	s := &source{from: from, model: model, kind: kind}
	s.ListWatch = &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	return s
}

// list lists all objects of the kind as they are now, whichever part or age is asked for.
func (s *source) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	if s.inPages {
		return s.all(ctx, metav1.ListOptions{Limit: pageSize})
	}
	now, err := s.version(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := s.all(ctx, metav1.ListOptions{ResourceVersion: now, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	s.inPages = err != nil
	return listed, err
}

// version is that of what is stored now.
func (s *source) version(ctx context.Context) (string, error) {
	said, err := s.from.List(ctx, metav1.ListOptions{Limit: 1}, func(runtime.Object) error { return nil })
	if err != nil {
		return "", fmt.Errorf("ask for the version of %s: %w", s.kind, err)
	}
	return said.ResourceVersion, nil
}

// all lists the objects, and what follows where the list has a limit.
func (s *source) all(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	listed := &list{}
	for {
		said, err := s.from.List(ctx, options, func(object runtime.Object) error {
			item, err := s.rendered(object)
			listed.Items = append(listed.Items, item)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list %s after %d of them: %w", s.kind, len(listed.Items), err)
		}
		listed.ResourceVersion, options.Continue = said.ResourceVersion, said.Continue
		if said.Continue == "" {
			return listed, nil
		}
	}
}

// rendered is an object as the model takes it, without what will not be needed, so that a list of
// 100,000 objects does not need twice its room.
func (s *source) rendered(object runtime.Object) (runtime.Object, error) {
	accessor, ok := object.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("list of %s holds a %T", s.kind, object)
	}
	if isObserved(object) {
		accessor.SetManagedFields(nil)
	}
	return s.model.preRender(accessor).(runtime.Object), nil // the object itself, or a preparedFinding
}

// watch begins a watch.
func (s *source) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	begun, err := s.from.Watch(ctx, options)
	if err == nil {
		s.model.hear(s.kind)
	}
	return begun, err
}

// IsWatchListSemanticsUnSupported keeps reflectors from listing by a watch.
func (*source) IsWatchListSemanticsUnSupported() bool { return true }

// isObserved reports whether the time of the last change is in status, so that nobody asks
// managedFields.
func isObserved(object runtime.Object) bool {
	switch o := object.(type) {
	case *v1alpha1.Finding:
		return o.Status.UpdatedAt != nil && o.Status.ObservedGeneration == o.Generation
	case *v1alpha1.Repository:
		return o.Status.UpdatedAt != nil && o.Status.ObservedGeneration == o.Generation
	case *v1alpha1.Project:
		return o.Status.UpdatedAt != nil && o.Status.ObservedGeneration == o.Generation
	case *v1alpha1.Review:
		return o.Status.UpdatedAt != nil && o.Status.ObservedGeneration == o.Generation
	case *v1alpha1.ReviewIssue:
		return o.Status.UpdatedAt != nil && o.Status.ObservedGeneration == o.Generation
	default:
		return true // of organizations and deliveries no such time is shown
	}
}

// list is what a source has listed.
type list struct {
	metav1.TypeMeta
	metav1.ListMeta
	// Items, by the name that the library looks for.
	Items []runtime.Object
}

// DeepCopyObject is part of runtime.Object. Nobody copies a list.
func (l *list) DeepCopyObject() runtime.Object {
	copied := *l
	return &copied
}
