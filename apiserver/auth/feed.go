package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/connrotation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// minListTimeout is the shortest that a list may take, whatever the staleness.
const minListTimeout = 5 * time.Second

// listTimeout returns how long one list may take. After that the connection of the feed's lists is closed: a silent one
// is replaced before the data is too old.
func listTimeout(staleness time.Duration) time.Duration { return max(minListTimeout, staleness/3) }

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
	// giveUp closes the connections of this feed's lists.
	giveUp func()

	// listed is the version of the last list.
	listed string
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
	return max(0, apitime.Elapsed(*at, now))
}

// newFeed returns a feed for a view of one of this project's kinds.
func newFeed(object kube.Object, watches *kube.Reader, config *rest.Config, unreadables *kube.Unreadables,
	into cache.ReflectorStore) (*feed, error) {
	kind, _ := kube.KindOf(object)
	from := func(reader *kube.Reader) *kube.ListWatch {
		return kube.NewListWatch(kube.ListWatchOptions{Kind: kind, From: reader.Source(kind), Unreadables: unreadables,
			Trim: func(object kube.Object) runtime.Object { trim(object); return object }})
	}
	own, giveUp := withOwnConnections(config)
	lists, err := kube.NewReader(own)
	if err != nil {
		return nil, err
	}
	listed := from(lists)
	return &feed{
		name: kind.Resource, object: object, into: into, watched: from(watches), giveUp: giveUp,
		listNow: func(ctx context.Context) ([]runtime.Object, string, error) {
			list, err := listed.Now(ctx)
			if err != nil {
				return nil, "", err
			}
			return list.Items, list.ResourceVersion, nil
		},
	}, nil
}

// trim removes the metadata that nobody reads here, which may be larger than the rest of the object.
func trim(object metav1.Object) {
	object.SetManagedFields(nil)
	object.SetLabels(nil)
	object.SetAnnotations(nil)
}

// withOwnConnections returns a copy of the config that shares its connections with nothing else, and a function that
// closes them. Each feed lists over its own connections: a stalled watch does not delay a list, and giving up a list
// breaks neither a watch nor the lists of other feeds.
func withOwnConnections(config *rest.Config) (own *rest.Config, closeAll func()) {
	own = rest.CopyConfig(config)
	dial := own.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext
	}
	dialer := connrotation.NewDialer(dial)
	own.Dial = dialer.DialContext
	return own, dialer.CloseAll
}

// newConfigMapFeed returns a feed for a view of the one ConfigMap of that name.
func newConfigMapFeed(key client.ObjectKey, watches client.WithWatch, config *rest.Config, options client.Options,
	into cache.ReflectorStore) (*feed, error) {
	own, giveUp := withOwnConnections(config)
	lists, err := client.New(own, options)
	if err != nil {
		return nil, fmt.Errorf("make a client for lists: %w", err)
	}
	selected := []client.ListOption{client.InNamespace(key.Namespace),
		client.MatchingFields{metav1.ObjectNameField: key.Name}}
	with := func(raw metav1.ListOptions) []client.ListOption {
		return append([]client.ListOption{&client.ListOptions{Raw: &raw}}, selected...)
	}
	return &feed{
		name: "signing keys", object: &corev1.ConfigMap{}, into: into, giveUp: giveUp,
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
	}, nil
}

// watch updates the view from a watch until the context ends.
func (f *feed) watch(ctx context.Context, log logr.Logger) {
	options := cache.ReflectorOptions{Name: f.name, Logger: &log}
	cache.NewReflectorWithOptions(f.watched, f.object, f.into, options).RunWithContext(ctx)
}

// errWentBack is the error of a list that is older than the one before it.
var errWentBack = errors.New("the Kubernetes API shows an earlier state than before, as after a restore: " +
	"the process exits; restart it to read everything again")

// poll updates the view from a list in each interval until the context ends. The error is errWentBack.
func (f *feed) poll(ctx context.Context, interval, timeout time.Duration, log logr.Logger) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var back error
	failing := false
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		err := f.list(ctx, timeout)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errWentBack):
			back = err
			end()
			return
		case err == nil && failing:
			log.Info("Lists succeed again", "resource", f.name)
		case err != nil && !failing:
			log.Error(err, "Listing fails; keys are refused once what is known is too old", "resource", f.name)
		}
		failing = err != nil
		if errors.Is(err, context.DeadlineExceeded) {
			f.giveUp()
		}
	}, interval)
	return back
}

// list applies one consistent list: without a resourceVersion the API server returns what etcd holds at that
// moment. So a list is never older than the one before, unless the store went back: then the error is errWentBack.
func (f *feed) list(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	sent := time.Now()
	objects, version, err := f.listNow(ctx)
	if err != nil {
		return fmt.Errorf("list %s: %w", f.name, err)
	}
	if order, err := resourceversion.CompareResourceVersion(version, cmp.Or(f.listed, version)); err != nil {
		return fmt.Errorf("list %s: %w", f.name, err)
	} else if order < 0 {
		return fmt.Errorf("list %s at version %s after %s: %w", f.name, version, f.listed, errWentBack)
	}
	f.listed = version
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
