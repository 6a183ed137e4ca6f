// Package reconcile is the skeleton that the reconciles of all kinds share: get the object, run the phases, store
// the status once, and come back when the first of them asks for it.
package reconcile

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
)

// Phase is one step of a reconcile of what the scope S holds.
type Phase[S any] func(context.Context, S) error

// Loop reconciles the objects of one kind.
type Loop[S scoped] struct {
	Base
	// New returns a scope around an empty object.
	New func() S
	// Phases of an object that stays. The first that fails ends the reconcile; what was observed before it is
	// stored nevertheless.
	Phases []Phase[S]
	// Removal are the phases of an object that is being deleted, until one of them releases it. Where there are
	// any, an object gets the cleanup finalizer before its first phase; where there are none, nothing is done
	// about an object that is being deleted.
	Removal []Phase[S]
	// Ledger makes webhook deliveries of what the status records. Optional.
	Ledger *ledger.Ledger
	// Stored is called after each write of the status, while Before is still what the write replaced. Optional.
	Stored func(S)
	// Gone is called for an object that does not exist. Optional.
	Gone func(types.NamespacedName)
}

// Run reconciles the object of the request. A conflict is no error, nor is an object that has gone meanwhile.
func (l Loop[S]) Run(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := l.New()
	if err := l.Client.Get(ctx, req.NamespacedName, s.object()); err != nil {
		if apierrors.IsNotFound(err) && l.Gone != nil {
			l.Gone(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	phases, err := l.begin(ctx, s)
	if err != nil {
		return patch.Outcome(ctrl.Result{}, err)
	}
	failed := run(ctx, s, phases)
	err = l.finish(ctx, s)
	if failed != nil && err != nil {
		// Not for Outcome: a conflict of the second must not hide the first.
		return ctrl.Result{}, errors.Join(failed, err)
	}
	return patch.Outcome(ctrl.Result{RequeueAfter: s.outcomeOf().again}, errors.Join(failed, err))
}

// begin returns the phases that the object is to go through.
func (l Loop[S]) begin(ctx context.Context, s S) ([]Phase[S], error) {
	object := s.object()
	if !object.GetDeletionTimestamp().IsZero() {
		s.Begin(l.Clock.Now())
		if len(l.Removal) == 0 || !controllerutil.ContainsFinalizer(object, v1alpha1.CleanupFinalizer) {
			s.outcomeOf().LeaveStatus() // it may be gone already
			return nil, nil
		}
		return l.Removal, nil
	}
	if len(l.Removal) > 0 {
		// First of all: nothing may be made for an object that nobody would clean up after.
		if err := patch.AddFinalizer(ctx, l.Client, object, v1alpha1.CleanupFinalizer); err != nil {
			return nil, err
		}
	}
	s.Begin(l.Clock.Now())
	if l.Ledger != nil {
		if err := l.Ledger.MakeRoom(ctx, object, l.writer(s)); err != nil {
			return nil, err
		}
	}
	return l.Phases, nil
}

func run[S scoped](ctx context.Context, s S, phases []Phase[S]) error {
	for _, phase := range phases {
		if err := phase(ctx, s); err != nil || s.outcomeOf().stopped {
			return err
		}
	}
	return nil
}

// finish stores what the phases have left in the status, or lets the object go.
func (l Loop[S]) finish(ctx context.Context, s S) error {
	switch outcome := s.outcomeOf(); {
	case outcome.released:
		return patch.RemoveFinalizer(ctx, l.Client, s.object(), v1alpha1.CleanupFinalizer)
	case outcome.untouched:
		return nil
	case l.Ledger != nil:
		again, err := l.Ledger.Settle(ctx, s.object(), l.writer(s))
		outcome.RequeueAfter(again)
		return err
	}
	_, err := l.writer(s)(ctx)
	return err
}

func (l Loop[S]) writer(s S) ledger.Write {
	return func(ctx context.Context) (bool, error) {
		return s.store(ctx, l.Client, func() {
			if l.Stored != nil {
				l.Stored(s)
			}
		})
	}
}

// outcome is what the phases make of a reconcile.
type outcome struct {
	again                        time.Duration
	stopped, untouched, released bool
}

// RequeueAfter asks for another reconcile after that time. The shortest that any phase asks for counts; 0 asks for
// none.
func (o *outcome) RequeueAfter(wait time.Duration) {
	if wait > 0 && (o.again == 0 || wait < o.again) {
		o.again = wait
	}
}

// Stop ends the reconcile after this phase; the status is stored.
func (o *outcome) Stop() { o.stopped = true }

// LeaveStatus keeps the status from being stored: it is another's, or is stored already.
func (o *outcome) LeaveStatus() { o.untouched = true }

// Release ends a removal: the finalizer is taken off, and nothing is stored in an object that may be gone.
func (o *outcome) Release() { o.stopped, o.released = true, true }
