package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// pageSize is the number of objects per page once a list did not arrive in one response: about 2 MB of findings.
const pageSize = 500

// Limits of lists and watches on a connection that stays open but passes nothing on, such as that of a proxy.
const (
	// listSilence is how long a list may receive nothing. By default, the API server ends each list after a minute.
	listSilence = 2 * time.Minute
	// watchGrace is how long after its timeout a watch may end. The timeout is watchSeconds if none is requested.
	watchGrace   = 30 * time.Second
	watchSeconds = 600
)

var errSilent = fmt.Errorf("nothing has arrived for %s", listSilence)

// ListWatch is what a reflector lists and watches.
//
// It trims each object as it arrives. It requests the current list in one response, but only from the API server's
// cache: pages after the first would come from etcd if etcd was compacted since the last change, which costs the API
// server three times as much, and so would a list that its cache is not ready for. If the list does not arrive in one
// response, for example because it exceeds the API server's request timeout, it is requested in pages instead. A
// streaming list, which reflectors prefer, decodes each object twice and takes twice as long.
//
// An unreadable object is left out of lists, and watchers see it as deleted. So reflectors and informers hold only
// readable objects, and no outdated version of an unreadable one.
type ListWatch struct {
	// ListWatch holds the list and watch functions that reflectors call.
	*cache.ListWatch
	ListWatchOptions
	// inPages is set after a list that did not arrive in one response, until one arrives in pages, because the API server
	// may just have been starting. Reflectors run one list at a time.
	inPages bool
}

// ListWatchOptions of a ListWatch; Kind, From and Unreadables are needed.
type ListWatchOptions struct {
	Kind Kind
	From Source
	// Unreadables records objects that cannot be read.
	Unreadables *Unreadables
	// Trim returns the part of a listed object that is kept; nil keeps all of it.
	Trim func(Object) runtime.Object
	// OnContact is called whenever the API server sends something about the kind, even if nothing has changed.
	OnContact func() time.Time
	// Last returns an object as it was last read, or nil if it never was. Watchers see this version as deleted
	// when the object becomes unreadable. Last may be nil.
	Last func(types.NamespacedName) Object
}

// NewListWatch returns a ListWatch.
func NewListWatch(options ListWatchOptions) *ListWatch {
	l := &ListWatch{ListWatchOptions: options}
	if l.Trim == nil {
		l.Trim = func(object Object) runtime.Object { return object }
	}
	if l.OnContact == nil {
		l.OnContact = func() time.Time { return time.Time{} }
	}
	l.ListWatch = &cache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: l.watch}
	return l
}

// IsWatchListSemanticsUnSupported keeps reflectors from listing by a watch.
func (*ListWatch) IsWatchListSemanticsUnSupported() bool { return true }

// list lists all current objects of the kind, whatever limit or version is requested.
func (l *ListWatch) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	if l.inPages {
		listed, err := l.all(ctx, metav1.ListOptions{Limit: pageSize})
		l.inPages = err != nil
		return result(listed, err)
	}
	latest, err := l.version(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := l.all(ctx,
		metav1.ListOptions{ResourceVersion: latest, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	l.inPages = err != nil
	return result(listed, err)
}

// result returns an untyped nil with an error: a nil *List in an interface would not equal nil.
func result[T runtime.Object](object T, err error) (runtime.Object, error) {
	if err != nil {
		return nil, err
	}
	return object, nil
}

// Now lists all objects of the kind as etcd holds them at this moment.
func (l *ListWatch) Now(ctx context.Context) (*List, error) { return l.all(ctx, metav1.ListOptions{}) }

// version returns the resource version of the latest stored state.
func (l *ListWatch) version(ctx context.Context) (string, error) {
	meta, err := l.receive(ctx, metav1.ListOptions{Limit: 1}, func(runtime.Object) error { return nil })
	if err != nil {
		return "", fmt.Errorf("ask for the version of %s: %w", l.Kind.Resource, err)
	}
	return meta.ResourceVersion, nil
}

// all lists the objects, and the further pages if the list has a limit.
func (l *ListWatch) all(ctx context.Context, options metav1.ListOptions) (*List, error) {
	listed, left := &List{}, map[types.NamespacedName]struct{}{}
	for {
		meta, err := l.receive(ctx, options, func(item runtime.Object) error {
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
		listed.ResourceVersion, options.Continue = meta.ResourceVersion, meta.Continue
		if meta.Continue == "" {
			l.Unreadables.keep(l.Kind, left)
			l.OnContact()
			return listed, nil
		}
	}
}

// receive lists like From.List, but gives up a list that receives nothing for listSilence.
func (l *ListWatch) receive(ctx context.Context, options metav1.ListOptions,
	each func(runtime.Object) error) (metav1.ListMeta, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(listSilence, func() { cancel(errSilent) })
	defer silence.Stop()
	// A refusal counts, too: the client library may repeat the request for minutes, and then returns the refusal.
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotFirstResponseByte: func() { silence.Reset(listSilence) },
	})
	meta, err := l.From.List(traced, options, func(item runtime.Object) error {
		silence.Reset(listSilence)
		return each(item)
	})
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		err = errSilent
	}
	return meta, err
}

// watch ends a watch that the API server does not end in time: it may have done so, and a proxy has not passed it on.
// The watch then ends as if the API server had ended it.
func (l *ListWatch) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	limit := time.Duration(ptr.Deref(options.TimeoutSeconds, watchSeconds))*time.Second + watchGrace
	ctx, cancel := context.WithTimeout(ctx, limit)
	begun, err := l.From.Watch(ctx, options)
	if err != nil {
		defer cancel()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return watch.NewEmptyWatch(), nil
		}
		return nil, err
	}
	if !isEmpty(begun) {
		l.OnContact()
	}
	return watch.Filter(limitedWatch{begun, cancel}, l.received), nil
}

// isEmpty reports whether the API server did not answer: after timeouts and lost connections, the client library
// returns an empty watch without an error.
func isEmpty(begun watch.Interface) bool {
	return reflect.TypeOf(begun) == reflect.TypeOf(watch.NewEmptyWatch())
}

// limitedWatch is a watch whose context has a timeout.
type limitedWatch struct {
	watch.Interface
	cancel context.CancelFunc
}

// Stop implements watch.Interface.
func (w limitedWatch) Stop() {
	w.Interface.Stop()
	w.cancel()
}

func (l *ListWatch) received(event watch.Event) (watch.Event, bool) {
	if event.Type == watch.Error {
		return event, true
	}
	l.OnContact()
	switch object := event.Object.(type) {
	case *Unreadable:
		gone := l.gone(object)
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

// gone returns the object as it was last read, with the version at which it became unreadable. It has no
// UID: watchers treat a deleted UID as gone forever, and this object may be repaired.
func (l *ListWatch) gone(u *Unreadable) Object {
	object := l.Kind.New()
	if l.Last != nil {
		if last := l.Last(types.NamespacedName{Namespace: u.Namespace, Name: u.Name}); last != nil {
			object = last.DeepCopyObject().(Object)
		}
	}
	object.SetNamespace(u.Namespace)
	object.SetName(u.Name)
	object.SetResourceVersion(u.ResourceVersion)
	object.SetUID("")
	return object
}

// List is the result of a ListWatch's list.
type List struct {
	metav1.TypeMeta
	metav1.ListMeta
	// Items, by the name that the library looks for.
	Items []runtime.Object
}

// DeepCopyObject implements runtime.Object. It makes a shallow copy: nothing copies lists.
func (l *List) DeepCopyObject() runtime.Object {
	copied := *l
	return &copied
}
