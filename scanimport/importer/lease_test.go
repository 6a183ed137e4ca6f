package importer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/internal/safely"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// leases are the Leases of a namespace in memory. Imports of a real API server exclude each other in test/import.
type leases struct {
	*testing.T
	client.WithWatch
}

// withLeases runs a test by a clock of its own.
func withLeases(t *testing.T, test func(*leases)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(&leases{t, fake.NewClientBuilder().WithScheme(testenv.NewScheme()).Build()})
	})
}

func lockBy(c client.Client, name string) *lock {
	l := leaseLock(c, client.ObjectKey{Namespace: "org-acme", Name: name}, func(string) {})
	l.identity = "me"
	return l
}

func (l *leases) lock(name, identity string) *lock {
	held := lockBy(l, name)
	held.identity = identity
	return held
}

func (l *leases) lease(of *lock) *coordinationv1.Lease {
	l.Helper()
	lease := &coordinationv1.Lease{}
	harness.Must(l, l.Get(l.Context(), of.key, lease))
	return lease
}

func (l *leases) holder(of *lock) string { return ptr.Deref(l.lease(of).Spec.HolderIdentity, "") }

func (l *leases) steal(from *lock) {
	l.Helper()
	lease := l.lease(from)
	lease.Spec.HolderIdentity = new("thief")
	harness.Must(l, l.Update(l.Context(), lease))
}

func TestWorkEndsWhenTheLeaseIsLost(t *testing.T) {
	withLeases(t, func(l *leases) {
		mine := l.lock("lost", "me")
		err := mine.with(l.Context(), func(ctx context.Context) error {
			l.steal(mine)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, errLeaseLost) {
			l.Errorf("error %v, want that the Lease was lost", err)
		}
		harness.Same(l, "the holder, which is not released by another", "thief", l.holder(mine))
	})
}

// An uploader is told whether to wait for another import or that the API server is down.
func TestOnlyAnImportThatWaitsForAnotherOneSaysSo(t *testing.T) {
	enough := errors.New("enough")
	for when, waits := range map[string]bool{
		"it begins to wait": true, "it reads a Lease again": true, "it retries to take one": false, "it takes one": false,
	} {
		withLeases(t, func(l *leases) {
			if waits {
				harness.Must(l, l.lock("lease", "other").acquire(l.Context()))
			}
			ctx, cancel := context.WithCancelCause(l.Context())
			stop := func(at string) {
				if at == when {
					cancel(enough)
				}
			}
			reads, mine := 0, l.lock("lease", "me")
			mine.waiting = func(string) { stop("it begins to wait") }
			mine.client = interceptor.NewClient(l, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if reads++; reads == 2 {
						stop("it reads a Lease again")
					}
					return errors.Join(ctx.Err(), c.Get(ctx, key, o, opts...))
				},
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					stop("it takes one")
					time.AfterFunc(time.Millisecond, func() { stop("it retries to take one") })
					return apierrors.NewServiceUnavailable("there is no quorum")
				},
			})
			if err := mine.acquire(ctx); !errors.Is(err, enough) || errors.Is(err, ErrWaiting) != waits {
				l.Errorf("stopped when %s: %v, want why it was stopped", when, err)
			}
		})
	}
}

// Nobody else holds it, so nothing tells the user why the import does not begin.
func TestAnImportEndsIfItsLeaseCannotBeWritten(t *testing.T) {
	withLeases(t, func(l *leases) {
		ctx, cancel := context.WithTimeout(l.Context(), time.Hour)
		defer cancel()
		mine := lockBy(interceptor.NewClient(l, interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				return apierrors.NewServiceUnavailable("there is no quorum")
			},
		}), "unwritable")
		if err := mine.acquire(ctx); !apierrors.IsServiceUnavailable(err) || ctx.Err() != nil {
			l.Errorf("got %v, want the API server's error before %v", err, ctx.Err())
		}
	})
}

func TestAPanicReleasesTheLease(t *testing.T) {
	withLeases(t, func(l *leases) {
		mine := l.lock("panics", "me")
		err := mine.with(l.Context(), func(context.Context) error { panic("no such result") })
		if safely.Stack(err) == "" {
			l.Errorf("got %v, want the panic", err)
		}
		harness.Same(l, "the holder", "", l.holder(mine))
	})
}

// A suspended process, such as on a sleeping laptop, resumes where it was.
func TestBeforeItsNextWriteAProcessThatWasStoppedKnowsWhetherItHoldsItsLease(t *testing.T) {
	withLeases(t, func(l *leases) {
		mine := l.lock("stopped", "me")
		harness.Must(l, mine.acquire(l.Context()))
		stopped := func() { mine.renewedAt.Store(new(time.Now().Add(-time.Hour))) }
		stopped()
		if err := mine.sure(l.Context()); err != nil || !mine.fresh() {
			l.Errorf("nobody else took it: error %v, fresh %t", err, mine.fresh())
		}
		stopped()
		l.steal(mine)
		if err := mine.sure(l.Context()); !errors.Is(err, errLeaseLost) {
			l.Errorf("error %v, want that the Lease was lost", err)
		}
	})
}

func TestALeaseIsKeptWhileItsWorkLasts(t *testing.T) {
	withLeases(t, func(l *leases) {
		mine, other := l.lock("kept", "me"), l.lock("kept", "other")
		waits, taken := make(chan struct{}), make(chan struct{})
		other.waiting = func(string) { close(waits) }
		var group sync.WaitGroup
		err := mine.with(l.Context(), func(ctx context.Context) error {
			group.Go(func() {
				harness.NoError(l, "the other import", other.with(l.Context(), func(context.Context) error { close(taken); return nil }))
			})
			<-waits
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-taken:
				return errors.New("somebody else got it")
			case <-time.After(10 * leaseDuration):
				return nil
			}
		})
		harness.NoError(l, "the Lease was lost while it was renewed", err)
		group.Wait()
		harness.Same(l, "the holder after all work", "", l.holder(mine))
	})
}

// silentDuration is the duration in the Lease of a killed process, which was of another version.
const silentDuration = 2 * leaseDuration

// silent creates a Lease that a killed process holds, and returns its lock.
func (l *leases) silent(name string) *lock {
	l.Helper()
	mine := l.lock(name, "me")
	harness.Must(l, l.Create(l.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: mine.key.Namespace, Name: mine.key.Name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("killed"), LeaseDurationSeconds: new(int32(silentDuration / time.Second)),
			// The other machine's clock is wrong by a day.
			RenewTime: new(metav1.NewMicroTime(time.Now().Add(24 * time.Hour))),
		},
	}))
	return mine
}

// A killed holder must not block others forever, and a live one must not be replaced. An import does not wait for each
// Lease of a killed process in turn.
func TestLeasesAreTakenOverTogetherOnceTheirHolderIsSilent(t *testing.T) {
	withLeases(t, func(l *leases) {
		var waitedFor []string
		first, second := l.silent("silent-1"), l.silent("silent-2")
		first.waiting = func(holder string) { waitedFor = append(waitedFor, holder) }
		second.waiting = func(string) { l.Error("the second is waited for after the first was taken") }
		begun := time.Now()
		ctx, cancel := context.WithTimeout(l.Context(), time.Hour)
		defer cancel()
		harness.Must(l, locked(ctx, []*job{{lock: first}, {lock: second}}, func(context.Context) error { return nil }))
		harness.Same(l, "waited for", []string{"killed"}, waitedFor)
		if took := time.Since(begun); took < silentDuration || took > silentDuration+leaseDuration {
			l.Errorf("they are taken over after %s, and last %s", took, silentDuration)
		}
	})
}

func TestAtMostOneHolds(t *testing.T) {
	withLeases(t, func(l *leases) {
		slow := interceptor.NewClient(l, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, o, opts...)
				harness.Pause(ctx, time.Second) // so that several read the same version
				return err
			},
		})
		var holding, most, turns atomic.Int32
		var group sync.WaitGroup
		for i := range 6 {
			mine := lockBy(slow, "contended")
			mine.identity = string(rune('a' + i))
			group.Go(func() {
				harness.NoError(l, "import", mine.with(l.Context(), func(ctx context.Context) error {
					most.Store(max(most.Load(), holding.Add(1)))
					turns.Add(1)
					harness.Pause(ctx, 3*leaseDuration) // during which others try
					holding.Add(-1)
					return nil
				}))
			})
		}
		group.Wait()
		harness.Same(l, "most that held it at a time, turns", []int32{1, 6}, []int32{most.Load(), turns.Load()})
	})
}
