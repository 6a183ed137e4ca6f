package auth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/internal/kube"
)

// listTimeout bounds one list. After a timeout the list's connection is closed.
const listTimeout = 5 * time.Second

// feed keeps a view of one resource up to date in two ways at once: a watch shows a change within milliseconds,
// and a consistent list in each interval shows it even if the watch has stalled unnoticed.
type feed struct {
	name   string
	object client.Object
	into   cache.ReflectorStore
	// watched does the initial list and the watch of the reflector.
	watched cache.ListerWatcher
	// listNow lists what etcd holds at that moment, over a separate connection.
	listNow func(context.Context) (objects []runtime.Object, version string, err error)

	// fresh is when the request for the last successful list was sent: changes missing from that list happened
	// later.
	fresh atomic.Pointer[time.Time]
}

// age returns the maximum age of the data, and math.MaxInt64 before the first list.
func (f *feed) age(now time.Time) time.Duration {
	at := f.fresh.Load()
	if at == nil {
		return math.MaxInt64
	}
	return max(0, now.Sub(*at))
}

// newFeed returns a feed for a view of one of this project's kinds.
func newFeed(object kube.Object, watches, lists *kube.Reader, unreadables *kube.Unreadables,
	into cache.ReflectorStore) *feed {
	kind, _ := kube.KindOf(object)
	from := func(reader *kube.Reader) *kube.ListWatch {
		return kube.NewListWatch(kube.ListWatchOptions{Kind: kind, From: reader.Source(kind), Unreadables: unreadables})
	}
	listed := from(lists)
	return &feed{
		name: kind.Resource, object: object, into: into, watched: from(watches),
		listNow: func(ctx context.Context) ([]runtime.Object, string, error) {
			list, err := listed.Now(ctx)
			if err != nil {
				return nil, "", err
			}
			return list.Items, list.ResourceVersion, nil
		},
	}
}

// newConfigMapFeed returns a feed for a view of the one ConfigMap of that name.
func newConfigMapFeed(key client.ObjectKey, watches client.WithWatch, lists client.Reader,
	into cache.ReflectorStore) *feed {
	selected := []client.ListOption{client.InNamespace(key.Namespace),
		client.MatchingFields{metav1.ObjectNameField: key.Name}}
	with := func(raw metav1.ListOptions) []client.ListOption {
		return append([]client.ListOption{&client.ListOptions{Raw: &raw}}, selected...)
	}
	return &feed{
		name: "signing keys", object: &corev1.ConfigMap{}, into: into,
		watched: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				list := &corev1.ConfigMapList{}
				return list, watches.List(ctx, list, with(options)...)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return watches.Watch(ctx, &corev1.ConfigMapList{}, with(options)...)
			},
		},
		listNow: func(ctx context.Context) ([]runtime.Object, string, error) {
			list := &corev1.ConfigMapList{}
			if err := lists.List(ctx, list, selected...); err != nil {
				return nil, "", err
			}
			objects, err := meta.ExtractList(list)
			return objects, list.ResourceVersion, err
		},
	}
}

// watch updates the view from a watch until the context ends.
func (f *feed) watch(ctx context.Context, log logr.Logger) {
	options := cache.ReflectorOptions{Name: f.name, Logger: &log}
	cache.NewReflectorWithOptions(f.watched, f.object, f.into, options).RunWithContext(ctx)
}

// poll updates the view from a list in each interval until the context ends.
func (f *feed) poll(ctx context.Context, interval time.Duration, giveUp func(), log logr.Logger) {
	failing := false
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		err := f.list(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil && failing:
			log.Info("Lists succeed again", "resource", f.name)
		case err != nil && !failing:
			log.Error(err, "Listing fails; keys are refused once what is known is too old", "resource", f.name)
		}
		failing = err != nil
		if errors.Is(err, context.DeadlineExceeded) {
			giveUp()
		}
	}, interval)
}

// list applies one consistent list: without a resourceVersion the API server returns what etcd holds at that
// moment.
func (f *feed) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	sent := time.Now()
	objects, version, err := f.listNow(ctx)
	if err != nil {
		return fmt.Errorf("list %s: %w", f.name, err)
	}
	items := make([]any, len(objects))
	for i := range objects {
		items[i] = objects[i]
	}
	if err := f.into.Replace(items, version); err != nil {
		return fmt.Errorf("list %s: %w", f.name, err)
	}
	f.fresh.Store(&sent)
	return nil
}
