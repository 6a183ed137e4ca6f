package readmodel

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const (
	// pageSize is how many objects of a list are asked for at a time: some 2 MB of findings.
	pageSize = 500
	// pagesAhead are received while one is rendered.
	pagesAhead = 1
)

// source is where a reflector lists and watches a kind.
//
// It lists page by page, all of one version, and renders each page while the next is on its way: a
// list as one watch, which reflectors prefer, has each object decoded twice and takes twice as long.
// It tells the model that the API server has answered, also where that has nothing to say: the watch
// of a kind that nobody changes begins anew every few minutes.
type source struct {
	cache.ListerWatcher
	model *Model
	kind  kind
}

var _ cache.ListerWatcherWithContext = &source{}

// ListWithContext lists all objects of the kind as they are now, whichever part or age is asked for.
func (s *source) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	lister, listed := cache.ToListerWithContext(s.ListerWatcher), &list{}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page, err := lister.ListWithContext(ctx, options)
		if err != nil {
			return nil, err
		}
		meta, ok := page.(metav1.ListInterface)
		if !ok {
			return nil, fmt.Errorf("list of %s is a %T", s.kind, page)
		}
		listed.ResourceVersion = meta.GetResourceVersion()
		return page, nil
	})
	pages.PageSize, pages.PageBufferSize = pageSize, pagesAhead
	err := pages.EachListItemWithAlloc(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		item, err := s.rendered(object)
		listed.Items = append(listed.Items, item)
		return err
	})
	return listed, err
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

// WatchWithContext begins a watch.
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	begun, err := cache.ToWatcherWithContext(s.ListerWatcher).WatchWithContext(ctx, options)
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
