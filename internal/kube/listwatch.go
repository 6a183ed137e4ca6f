package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// pageSize is how many objects of a list are asked for at a time where it did not come whole: some 2 MB of
// findings.
const pageSize = 500

// ListWatch is what a reflector lists and watches.
//
// It trims each object of a list as it comes. It asks for a list whole and as it is now, but from the API
// server's cache alone: pages after the first come from etcd once that has been compacted since the last
// change, which costs the API server three times as much, and so would a whole list that its cache is not
// ready for. A list that does not come whole, as one that takes longer than the API server gives a request,
// is asked for in pages from then on. A list as one watch, which reflectors prefer, has each object decoded
// twice and takes twice as long.
//
// An object that cannot be read is left out of lists, and is deleted for who watches: reflectors and
// informers hold what can be read, and nothing old in place of what cannot.
type ListWatch struct {
	// ListWatch is what reflectors know: list and watch.
	*cache.ListWatch
	ListWatchOptions
	// inPages says that a list did not come whole. Reflectors list one at a time.
	inPages bool
}

// ListWatchOptions of a ListWatch; all but Trim and Heard are needed.
type ListWatchOptions struct {
	Kind Kind
	From Source
	// Unreadables takes note of objects that cannot be read.
	Unreadables *Unreadables
	// Trim returns what is kept of an object of a list; nil keeps all.
	Trim func(Object) runtime.Object
	// Heard is called whenever the API server sends something of the kind, be it that nothing has changed.
	Heard func()
}

// NewListWatch returns a ListWatch.
func NewListWatch(options ListWatchOptions) *ListWatch {
	l := &ListWatch{ListWatchOptions: options}
	if l.Trim == nil {
		l.Trim = func(object Object) runtime.Object { return object }
	}
	if l.Heard == nil {
		l.Heard = func() {}
	}
	l.ListWatch = &cache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: l.watch}
	return l
}

// IsWatchListSemanticsUnSupported keeps reflectors from listing by a watch.
func (*ListWatch) IsWatchListSemanticsUnSupported() bool { return true }

// list lists all objects of the kind as they are now, whichever part or age is asked for.
func (l *ListWatch) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	if l.inPages {
		return result(l.all(ctx, metav1.ListOptions{Limit: pageSize}))
	}
	now, err := l.version(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := l.all(ctx, metav1.ListOptions{ResourceVersion: now, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	l.inPages = err != nil
	return result(listed, err)
}

// result keeps a list that is none from being an object.
func result(listed *List, err error) (runtime.Object, error) {
	if err != nil {
		return nil, err
	}
	return listed, nil
}

// Now lists all objects of the kind as etcd holds them at that moment.
func (l *ListWatch) Now(ctx context.Context) (*List, error) { return l.all(ctx, metav1.ListOptions{}) }

// version is that of what is stored now.
func (l *ListWatch) version(ctx context.Context) (string, error) {
	said, err := l.From.List(ctx, metav1.ListOptions{Limit: 1}, func(runtime.Object) error { return nil })
	if err != nil {
		return "", fmt.Errorf("ask for the version of %s: %w", l.Kind.Resource, err)
	}
	return said.ResourceVersion, nil
}

// all lists the objects, and what follows where the list has a limit.
func (l *ListWatch) all(ctx context.Context, options metav1.ListOptions) (*List, error) {
	listed, left := &List{}, map[types.NamespacedName]struct{}{}
	for {
		said, err := l.From.List(ctx, options, func(item runtime.Object) error {
			switch item := item.(type) {
			case *Unreadable:
				left[types.NamespacedName{Namespace: item.Namespace, Name: item.Name}] = struct{}{}
				l.Unreadables.add(l.Kind, item)
			case Object:
				listed.Items = append(listed.Items, l.Trim(item))
			default:
				return fmt.Errorf("it holds a %T", item)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list %s after %d of them: %w", l.Kind.Resource, len(listed.Items), err)
		}
		listed.ResourceVersion, options.Continue = said.ResourceVersion, said.Continue
		if said.Continue == "" {
			l.Unreadables.keep(l.Kind, left)
			l.Heard()
			return listed, nil
		}
	}
}

func (l *ListWatch) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	begun, err := l.From.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	l.Heard()
	return watch.Filter(begun, l.received), nil
}

func (l *ListWatch) received(event watch.Event) (watch.Event, bool) {
	if event.Type == watch.Error {
		return event, true
	}
	l.Heard()
	switch object := event.Object.(type) {
	case *Unreadable:
		gone := object.gone(l.Kind)
		if event.Type == watch.Deleted {
			l.Unreadables.remove(l.Kind, gone)
		} else {
			l.Unreadables.add(l.Kind, object)
		}
		return watch.Event{Type: watch.Deleted, Object: gone}, true
	case metav1.Object:
		if event.Type != watch.Bookmark {
			l.Unreadables.remove(l.Kind, object)
		}
	}
	return event, true
}

// List is what a ListWatch has listed.
type List struct {
	metav1.TypeMeta
	metav1.ListMeta
	// Items, by the name that the library looks for.
	Items []runtime.Object
}

// DeepCopyObject is part of runtime.Object. Nobody copies a list.
func (l *List) DeepCopyObject() runtime.Object {
	copied := *l
	return &copied
}
