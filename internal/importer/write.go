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
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
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
	var version string
	var err error
	switch ch.action {
	case ActionCreate:
		err = w.create(ctx, &ch)
	case ActionClose:
		return w.close(ctx, ch)
	default:
		version, err = apply(ctx, w.im, w.manager, "Finding", appliedMeta{Name: ch.name}, ch.spec)
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

// mostNames bounds how many names are tried for a finding.
const mostNames = 16

// create makes the finding, and never touches an object that is there: where one has the name, it
// is another's, which the list did not show, and the next name is tried.
func (w *writer) create(ctx context.Context, ch *change) error {
	name := ch.name
	for i := 1; ; i++ {
		_, err := apply(ctx, w.im, w.manager, "Finding", appliedMeta{Name: ch.name, ResourceVersion: notThere}, ch.spec)
		if !apierrors.IsConflict(err) {
			return err
		}
		now, getErr := w.read(ctx, ch.name)
		switch {
		case getErr != nil:
			return errors.Join(err, getErr)
		case now != nil && now.Spec.Scan != nil && now.Spec.Scan.ScanID == w.scanID && now.Spec.Evidence == ch.spec.Evidence:
			return nil // the answer to an earlier try was lost on the way
		case i == mostNames:
			return fmt.Errorf("%d names are taken by other objects: %w", mostNames, err)
		case now != nil:
			ch.name = fingerprints.Next(name, i)
		}
	}
}

// mostConflicts bounds how often a closing is decided anew.
const mostConflicts = 5

// close says that a finding is gone. Only what the decision to close rests on is a reason to leave
// it open: a fact, or what a person decided. A status that was written meanwhile is none, and then
// the closing is tried again. A finding left open is seen to by the next scan.
func (w *writer) close(ctx context.Context, ch change) error {
	metadata := appliedMeta{Name: ch.name, UID: ch.before.UID, ResourceVersion: ch.before.ResourceVersion}
	for i := 1; ; i++ {
		_, err := apply(ctx, w.im, w.manager, "Finding", metadata, ch.spec)
		if err == nil {
			w.count(func(s *Summary) { s.add(ActionClose) })
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("close finding %s: %w", ch.name, err)
		}
		now, getErr := w.read(ctx, ch.name)
		switch {
		case getErr != nil:
			return fmt.Errorf("close finding %s: %w", ch.name, errors.Join(err, getErr))
		case now == nil || now.UID != ch.before.UID:
			w.count(func(*Summary) {}) // deleted meanwhile: gone is gone
			return nil
		case now.Spec.Closed != nil && now.Spec.Closed.ScanID == w.scanID:
			// The answer to an earlier try was lost on the way.
			w.count(func(s *Summary) { s.add(ActionClose) })
			return nil
		case i == mostConflicts || !sameSpec(&now.Spec, &ch.before.Spec):
			w.count(func(s *Summary) { s.LeftOpen++ })
			return nil
		}
		metadata.ResourceVersion = now.ResourceVersion
	}
}

// read returns the finding, or nil where there is none.
func (w *writer) read(ctx context.Context, name string) (*appsecv1alpha1.Finding, error) {
	now := &appsecv1alpha1.Finding{}
	err := Retry(ctx, func(ctx context.Context) error {
		return w.im.client.Get(ctx, client.ObjectKey{Namespace: w.im.target.Namespace, Name: name}, now)
	})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no finding is no error
	}
	if err != nil {
		return nil, err
	}
	return now, nil
}

func (w *writer) count(add func(*Summary)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	add(w.summary)
	w.done++
	w.im.options.OnProgress(w.done, w.total)
}
