// Package reconcile is the skeleton shared by the reconciles of all kinds: get the object, run the phases, store
// the status once, and requeue after the shortest time that a phase asks for.
package reconcile

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Phase is one step of a reconcile with the scope S.
type Phase[S any] func(context.Context, S) error

// Loop reconciles the objects of one kind.
type Loop[S scoped] struct {
	Base
	// New returns a scope around an empty object.
	New func() S
	// Phases are those of an object that is not being deleted. The first error ends the reconcile; what was observed until
	// then is still stored.
	Phases []Phase[S]
	// Removal holds the phases of an object that is being deleted, until one of them releases it. With such phases, an
	// object gets the cleanup finalizer before its first phase; without, objects that are being deleted are ignored.
	Removal []Phase[S]
	// Foreign means that another controller adds the cleanup finalizer. Then no phase may release the object.
	Foreign bool
	// Ledger makes webhook deliveries of what the status records. Optional.
	Ledger *ledger.Ledger
	// Stored is called after each write of the status, while Before still holds the replaced status. Optional.
	Stored func(S)
	// Deleting is called for an object that is being deleted, if there is no Removal: the finalizer of another program may
	// hold it for long. Optional.
	Deleting func(types.NamespacedName)
	// Gone is called for an object that does not exist. Optional.
	Gone func(types.NamespacedName)
}

// Run reconciles the object of the request. Conflicts, and objects deleted meanwhile, are not errors.
func (l Loop[S]) Run(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := l.New()
	if err := l.Client.Get(ctx, req.NamespacedName, s.object()); err != nil {
		if kube.IsNotFound(err) && l.Gone != nil {
			l.Gone(req.NamespacedName)
		}
		return ctrl.Result{}, kube.IgnoreNotFound(err)
	}
	phases, err := l.begin(ctx, s)
	if err != nil {
		return result(s.outcomeOf(), err)
	}
	failed := run(ctx, s, phases)
	err = l.finish(ctx, s)
	if failed != nil && err != nil {
		// Bypass Outcome, in which a conflict in the second error would hide the first.
		return ctrl.Result{}, errors.Join(failed, err)
	}
	return result(s.outcomeOf(), errors.Join(failed, err))
}

// result returns the outcome of a reconcile. If the object's deliveries wait for room in a quota, it is requeued behind
// others. That is no error, and thousands may wait.
func result(o *outcome, err error) (ctrl.Result, error) {
	var full *ledger.FullError
	if !errors.As(err, &full) {
		return patch.Outcome(ctrl.Result{RequeueAfter: o.again, Priority: o.priority}, err)
	}
	return ctrl.Result{RequeueAfter: Sooner(o.again, full.After), Priority: new(handler.LowPriority)}, nil
}

// Sooner returns the shorter of two waits. A wait that is not positive means none.
func Sooner(a, b time.Duration) time.Duration {
	if b > 0 && (a <= 0 || b < a) {
		return b
	}
	return a
}

// begin prepares the object and returns the phases to run.
func (l Loop[S]) begin(ctx context.Context, s S) ([]Phase[S], error) {
	object := s.object()
	if !object.GetDeletionTimestamp().IsZero() {
		s.Begin(l.Clock.Now())
		if len(l.Removal) == 0 && l.Deleting != nil {
			l.Deleting(client.ObjectKeyFromObject(object))
		}
		if len(l.Removal) == 0 || !controllerutil.ContainsFinalizer(object, v1alpha1.CleanupFinalizer) {
			s.outcomeOf().LeaveStatus() // it may be gone already
			return nil, nil
		}
		return l.Removal, nil
	}
	if len(l.Removal) > 0 && !l.Foreign {
		// Add the finalizer first, or what is created for the object might not be cleaned up.
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

// finish stores the status, or removes the finalizer of a released object.
func (l Loop[S]) finish(ctx context.Context, s S) error {
	switch outcome := s.outcomeOf(); {
	case outcome.released:
		return patch.RemoveFinalizer(ctx, l.Client, s.object(), v1alpha1.CleanupFinalizer)
	case outcome.untouched:
		return nil
	case l.Ledger != nil:
		store := l.Ledger.StoreAndEmit
		if outcome.derivable {
			store = l.Ledger.EmitAndStore
		}
		again, err := store(ctx, s.object(), l.writer(s))
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

// outcome collects what the phases request.
type outcome struct {
	again                                   time.Duration
	priority                                *int // of the next reconcile; nil for that of this one
	stopped, untouched, released, derivable bool
}

// MaxWait bounds the wait for a point in time: after the clock was set forward or the machine was suspended, actions
// are late by at most that. It is also how often a policy that depends on the time is checked: a policy that ended
// early because a clock was ahead resumes within that time. A decision that has ended stays ended.
const MaxWait = time.Hour

// RequeueAfter requests another reconcile after that time. The shortest time of all phases counts; 0 requests none.
func (o *outcome) RequeueAfter(wait time.Duration) {
	o.again = Sooner(o.again, wait)
}

// RequeueAtEnd requests a reconcile for when a decision ends, ahead of the changes that an import makes: until then the
// decision counts. So does the last look at the clock before it; earlier ones have an hour to spare. If the decision
// does not end, left is 0.
func (o *outcome) RequeueAtEnd(left time.Duration) {
	if left <= 0 {
		return
	}
	o.RequeueAfter(min(left, MaxWait))
	o.priority = new(0)
	if left <= 2*MaxWait {
		o.priority = new(watch.Due)
	}
}

// RefusedRetry is how often a request that the API server refused, such as a removal, is tried again.
const RefusedRetry = 15 * time.Second

// RefusalPatience is how long the API server may refuse a request before the refusal counts as permanent: when it
// starts, it lacks roles and policies for a while.
const RefusalPatience = 2 * time.Minute

// RetryRefused logs what the API server refused, and requeues the object. Use it in place of an error, whose backoff
// would grow to a minute: a full quota or a policy of the cluster may last for days.
func (o *outcome) RetryRefused(ctx context.Context, err error, message string) {
	ctrl.LoggerFrom(ctx).Error(err, message)
	o.RequeueAfter(RefusedRetry)
}

// Stop ends the reconcile after this phase; the status is stored.
func (o *outcome) Stop() { o.stopped = true }

// Stopped reports whether the reconcile ends after this phase.
func (o *outcome) Stopped() bool { return o.stopped }

// LeaveStatus keeps the status from being stored: another controller owns it, it is stored already, or a retry must
// observe the changes again.
func (o *outcome) LeaveStatus() { o.untouched = true }

// Derivable tells the loop that the next reconcile observes the same transitions if the status is not stored: see
// EmitAndStore of Ledger.
func (o *outcome) Derivable() { o.derivable = true }

// Release ends a removal: the finalizer is removed, and no status is stored.
func (o *outcome) Release() { o.stopped, o.released = true, true }
