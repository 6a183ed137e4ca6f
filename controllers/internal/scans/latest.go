package scans

import (
	"context"
	"maps"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// Latest keeps the last scans of each owner, all Projects or all Repositories: of the scan branch, not of pull requests
// or refused uploads. It lists an owner's scans when it is first asked, and again after one of the last was deleted.
// Any other change of a scan costs one comparison: an owner may have a hundred thousand scans.
type Latest struct {
	reader client.Reader
	// field is the index of the scans by their owners.
	field string
	owner func(*v1alpha1.Scan) v1alpha1.ResourceName

	mu sync.Mutex
	// known holds only owners that have scans, and those whose scans are being listed.
	known map[client.ObjectKey]*last
}

// last holds the last scans of an owner, which belong to the cache.
type last struct {
	// started is what LastStarted returns, and succeeded what LastSuccess returns.
	started, succeeded *v1alpha1.Scan
	// listed is false while the scans are being listed.
	listed bool
}

// NewLatest returns a Latest of the owners that the function returns, which the index field holds; see Index.
func NewLatest(reader client.Reader, field string, owner func(*v1alpha1.Scan) v1alpha1.ResourceName) *Latest {
	return &Latest{reader: reader, field: field, owner: owner, known: map[client.ObjectKey]*last{}}
}

// Index adds the index to the manager's cache.
func (l *Latest) Index(ctx context.Context, mgr ctrl.Manager) error {
	return index.Add(ctx, mgr, &v1alpha1.Scan{}, l.field, func(scan *v1alpha1.Scan) []string {
		if scan.Uncounted() != "" {
			return nil
		}
		return []string{string(l.owner(scan))}
	})
}

// Of returns the owner's scan that was started last and the one that succeeded last; nil if there is none.
func (l *Latest) Of(ctx context.Context, owner client.Object) (started, succeeded *v1alpha1.Scan, err error) {
	key, listing := client.ObjectKeyFromObject(owner), &last{}
	l.mu.Lock()
	if is := l.known[key]; is != nil && is.listed {
		defer l.mu.Unlock()
		return is.started, is.succeeded, nil
	}
	l.known[key] = listing
	l.mu.Unlock()

	list := &v1alpha1.ScanList{}
	err = index.List(ctx, l.reader, list, key.Namespace, l.field, key.Name)
	started, succeeded = alone(LastStarted(list.Items)), alone(LastSuccess(list.Items))

	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || started == nil {
		delete(l.known, key)
	} else {
		*listing = last{started, succeeded, true} // no longer known if a scan has changed meanwhile
	}
	return started, succeeded, err
}

// alone copies a scan out of a list, which would stay in memory with it.
func alone(scan *v1alpha1.Scan) *v1alpha1.Scan {
	if scan == nil {
		return nil
	}
	return new(*scan)
}

// Handler keeps the scans up to date from a watch, and enqueues the owners. Give it the predicate CountsOtherwise.
func (l *Latest) Handler() handler.EventHandler {
	enqueue := watch.EnqueueDeletedLater(watch.Reference(l.owner))
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watch.Queue) {
			l.changed(e.Object.(*v1alpha1.Scan))
			enqueue.Create(ctx, e, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watch.Queue) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				l.deleted(e.ObjectOld.(*v1alpha1.Scan))
			}
			l.changed(e.ObjectNew.(*v1alpha1.Scan))
			enqueue.Update(ctx, e, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watch.Queue) {
			l.deleted(e.Object.(*v1alpha1.Scan))
			enqueue.Delete(ctx, e, q)
		},
	}
}

func (l *Latest) ownerOf(scan *v1alpha1.Scan) client.ObjectKey {
	return client.ObjectKey{Namespace: scan.Namespace, Name: string(l.owner(scan))}
}

// changed compares a new or changed scan with the last ones of its owner.
func (l *Latest) changed(scan *v1alpha1.Scan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := l.ownerOf(scan)
	is := l.known[key]
	if is == nil {
		return
	}
	counts := func(s *v1alpha1.Scan) bool { return s.Uncounted() == "" }
	succeeds := func(s *v1alpha1.Scan) bool { return counts(s) && succeeded(s) }
	if !is.listed || !replace(&is.started, scan, counts, compareStart) ||
		!replace(&is.succeeded, scan, succeeds, compareEnd) {
		delete(l.known, key)
	}
}

// replace replaces the greatest scan by another one, or by its new state, if that is as great. It returns false if the
// scan was the greatest and may not be now.
func replace(greatest **v1alpha1.Scan, scan *v1alpha1.Scan, matches func(*v1alpha1.Scan) bool,
	compare func(a, b *v1alpha1.Scan) int) bool {
	was := *greatest
	if matches(scan) && (was == nil || compare(scan, was) >= 0) {
		*greatest = scan
		return true
	}
	return was == nil || was.Name != scan.Name
}

// deleted forgets the last scans of the owner if the deleted scan may be one of them.
func (l *Latest) deleted(scan *v1alpha1.Scan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	owner := l.ownerOf(scan)
	if owner.Name != "" {
		if is := l.known[owner]; is != nil && is.mayHave(scan) {
			delete(l.known, owner)
		}
		return
	}
	// The deletion of an unreadable scan may be reported without its content.
	maps.DeleteFunc(l.known, func(key client.ObjectKey, is *last) bool {
		return key.Namespace == scan.Namespace && is.mayHave(scan)
	})
}

func (l *last) mayHave(scan *v1alpha1.Scan) bool {
	return !l.listed || l.started.Name == scan.Name || l.succeeded != nil && l.succeeded.Name == scan.Name
}
