package importer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// write sends the changes of a plan, closings last: until everything that is still there
// has been seen to, nothing is said to be gone. It returns at the first error that is not
// about one finding alone, with what is done by then counted in the summary.
func (im *Importer) write(ctx context.Context, c *scanContext, p *plan, s *Summary) error {
	var reported, gone []change
	for _, ch := range p.changes {
		if ch.action == ActionClose {
			gone = append(gone, ch)
		} else {
			reported = append(reported, ch)
		}
	}
	total := len(p.changes)
	im.options.OnProgress(0, total)
	w := &writer{im: im, manager: fieldManager(c.tool), scanID: c.scanID, summary: s, total: total}
	if err := w.all(ctx, reported); err != nil {
		return err
	}
	return w.all(ctx, gone)
}

type writer struct {
	im      *Importer
	manager string
	scanID  string

	mu      sync.Mutex
	summary *Summary
	done    int
	total   int
}

func (w *writer) all(ctx context.Context, changes []change) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(w.im.options.Concurrency)
	for _, ch := range changes {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error { return w.one(groupCtx, ch) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (w *writer) one(ctx context.Context, ch change) error {
	metadata := appliedMeta{Name: ch.name}
	if ch.action == ActionClose {
		metadata.ResourceVersion = ch.before.ResourceVersion
	}
	version, err := apply(ctx, w.im, w.manager, "Finding", metadata, ch.spec)
	if ch.action == ActionClose && err != nil {
		return w.notClosed(ctx, ch, err)
	}
	if apierrors.IsInvalid(err) {
		w.count(func(s *Summary) { s.skip(skipRefused, fmt.Sprintf("finding %s (%v)", ch.name, err)) })
		return nil
	}
	if err != nil {
		return fmt.Errorf("write finding %s: %w", ch.name, err)
	}
	w.count(func(s *Summary) {
		if ch.action == ActionUpdate && version == ch.before.ResourceVersion {
			s.Unchanged++ // somebody else had brought it there
			return
		}
		s.add(ch.action)
	})
	return nil
}

// notClosed sorts out a closing that failed. A finding that somebody has changed since it
// was read stays open: the next scan sees to it.
func (w *writer) notClosed(ctx context.Context, ch change, err error) error {
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("close finding %s: %w", ch.name, err)
	}
	now := &appsecv1alpha1.Finding{}
	getErr := Retry(ctx, func(ctx context.Context) error {
		return w.im.client.Get(ctx, client.ObjectKey{Namespace: w.im.target.Namespace, Name: ch.name}, now)
	})
	switch {
	case apierrors.IsNotFound(getErr):
		w.count(func(*Summary) {}) // deleted meanwhile: gone is gone
	case getErr != nil:
		return fmt.Errorf("close finding %s: %w", ch.name, errors.Join(err, getErr))
	case now.Spec.Closed != nil && now.Spec.Closed.ScanID == w.scanID:
		// The answer to an earlier try was lost on the way.
		w.count(func(s *Summary) { s.add(ActionClose) })
	default:
		w.count(func(s *Summary) { s.LeftOpen++ })
	}
	return nil
}

func (w *writer) count(add func(*Summary)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	add(w.summary)
	w.done++
	w.im.options.OnProgress(w.done, w.total)
}
