package auth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listTimeout bounds one list. A connection on which one has timed out is given up.
const listTimeout = 5 * time.Second

// feed keeps a view of one resource up to date, in two ways at once: a watch shows a change in
// milliseconds, and a consistent list each interval shows it even where the watch has
// silently stalled.
type feed struct {
	name    string
	object  client.Object
	newList func() client.ObjectList
	// selected narrows both, where the rights do not reach further.
	selected []client.ListOption
	into     cache.ReflectorStore

	// fresh is when the last good list was sent off: what it did not show happened later.
	fresh atomic.Pointer[time.Time]
}

// age is how old the knowledge is at most: the greatest duration before the first list.
func (f *feed) age(now time.Time) time.Duration {
	at := f.fresh.Load()
	if at == nil {
		return math.MaxInt64
	}
	return max(0, now.Sub(*at))
}

// watch feeds the view from a watch until the context ends.
func (f *feed) watch(ctx context.Context, c client.WithWatch, log logr.Logger) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := f.newList()
			err := c.List(ctx, list, f.options(options)...)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, f.newList(), f.options(options)...)
		},
	}
	cache.NewReflectorWithOptions(lw, f.object, f.into, cache.ReflectorOptions{Name: f.name, Logger: &log}).RunWithContext(ctx)
}

func (f *feed) options(raw metav1.ListOptions) []client.ListOption {
	return append([]client.ListOption{&client.ListOptions{Raw: &raw}}, f.selected...)
}

// poll feeds the view from a list each interval until the context ends.
func (f *feed) poll(ctx context.Context, c client.Reader, interval time.Duration, giveUp func(), log logr.Logger) {
	failing := false
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		err := f.list(ctx, c)
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

// list takes in one consistent list: without a resourceVersion the API server answers with
// what etcd holds at that moment.
func (f *feed) list(ctx context.Context, c client.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	sent := time.Now()
	list := f.newList()
	if err := c.List(ctx, list, f.selected...); err != nil {
		return fmt.Errorf("list %s: %w", f.name, err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("list %s: %w", f.name, err)
	}
	items := make([]any, len(objects))
	for i := range objects {
		items[i] = objects[i]
	}
	if err := f.into.Replace(items, list.GetResourceVersion()); err != nil {
		return fmt.Errorf("list %s: %w", f.name, err)
	}
	f.fresh.Store(&sent)
	return nil
}
