package importer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/internal/safely"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env testenv.Lazy

func TestMain(m *testing.M) { testenv.MainLazy(m, &env) }

func newLock(t *testing.T, name string, duration time.Duration) *lock {
	t.Helper()
	return lockBy(env.Get(t).Client, name, duration)
}

func lockBy(c client.Client, name string, duration time.Duration) *lock {
	return &lock{
		client: c, key: client.ObjectKey{Namespace: testenv.SystemNamespace, Name: name},
		identity: "me", duration: duration, waiting: func(string) {},
	}
}

func steal(ctx context.Context, t *testing.T, key client.ObjectKey) {
	t.Helper()
	for {
		lease := &coordinationv1.Lease{}
		harness.Must(t, env.Get(t).Client.Get(ctx, key, lease))
		lease.Spec.HolderIdentity = new("thief")
		if env.Get(t).Client.Update(ctx, lease) == nil {
			return
		}
	}
}

func holder(t *testing.T, key client.ObjectKey) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	harness.Must(t, env.Get(t).Client.Get(t.Context(), key, lease))
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func TestWorkEndsWhenTheLeaseIsLost(t *testing.T) {
	l := newLock(t, "lost", 4*time.Second)
	err := l.with(t.Context(), func(ctx context.Context) error {
		steal(ctx, t, l.key)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, errLeaseLost) {
		t.Errorf("error %v, want that the Lease was lost", err)
	}
	if got := holder(t, l.key); got != "thief" {
		t.Errorf("holder %q: the Lease of somebody else was released", got)
	}
}

func TestAnImportThatIsStoppedWhileItWaitsSaysSo(t *testing.T) {
	l := newLock(t, "waits", time.Hour)
	harness.Must(t, l.acquire(t.Context()))
	other := newLock(t, "waits", time.Hour)
	enough := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	other.identity, other.waiting = "other", func(string) { stop(enough) }
	if err := other.acquire(ctx); !errors.Is(err, ErrWaiting) || !errors.Is(err, enough) {
		t.Errorf("got %v, want that it was stopped while it waited, and why", err)
	}
}

// An uploader is told whether to wait for another import or that the API server is down.
func TestOnlyAnImportThatWaitsForAnotherOneSaysSo(t *testing.T) {
	harness.Must(t, newLock(t, "busy", time.Hour).acquire(t.Context()))
	c, err := client.NewWithWatch(env.Get(t).Config, client.Options{Scheme: env.Get(t).Scheme})
	harness.Must(t, err)
	enough := errors.New("enough")
	for name, waits := range map[string]bool{"busy": true, "free": false, "being-taken": false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := func() { cancel(enough) }
		reads, l := 0, newLock(t, name, time.Second)
		l.identity = "other"
		l.client = interceptor.NewClient(c, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if reads++; reads == 2 {
					stop()
				}
				return c.Get(ctx, key, o, opts...)
			},
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				if name == "being-taken" {
					stop()
				} else {
					time.AfterFunc(l.duration/16, stop) // before the next attempt
				}
				return apierrors.NewServiceUnavailable("there is no quorum")
			},
		})
		if err := l.acquire(ctx); !errors.Is(err, enough) || errors.Is(err, ErrWaiting) != waits {
			t.Errorf("a Lease that is %s: %v, want why it was stopped", name, err)
		}
	}
}

// Nobody else holds it, so nothing tells the user why the import does not begin.
func TestAnImportEndsIfItsLeaseCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unwritable := interceptor.NewClient(nil, interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, key.Name)
			},
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				return apierrors.NewServiceUnavailable("there is no quorum")
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		l := lockBy(unwritable, "unwritable", leaseDuration)
		if err := l.acquire(ctx); !apierrors.IsServiceUnavailable(err) || ctx.Err() != nil {
			t.Errorf("got %v, want the API server's error before %v", err, ctx.Err())
		}
	})
}

func TestAPanicReleasesTheLease(t *testing.T) {
	l := newLock(t, "panics", time.Hour)
	err := l.with(t.Context(), func(context.Context) error { panic("no such result") })
	if safely.Stack(err) == "" {
		t.Errorf("got %v, want the panic", err)
	}
	if got := holder(t, l.key); got != "" {
		t.Errorf("%q still holds the Lease", got)
	}
}

// A suspended process, such as on a sleeping laptop, resumes where it was.
func TestBeforeItsNextWriteAProcessThatWasStoppedKnowsWhetherItHoldsItsLease(t *testing.T) {
	const hour = time.Hour // so long that no renewal happens in the background
	l := newLock(t, "stopped", hour)
	harness.Must(t, l.acquire(t.Context()))
	stopped := func() { l.renewedAt.Store(new(time.Now().Add(-hour))) }
	stopped()
	if err := l.sure(t.Context()); err != nil || !l.fresh() {
		t.Errorf("nobody else took it: error %v, fresh %t", err, l.fresh())
	}
	stopped()
	steal(t.Context(), t, l.key)
	if err := l.sure(t.Context()); !errors.Is(err, errLeaseLost) {
		t.Errorf("error %v, want that the Lease was lost", err)
	}
}

func TestTheClockThatHasAdvancedMoreCounts(t *testing.T) {
	for _, c := range []struct {
		reason                string
		monotonic, wall, want time.Duration
	}{
		{"the machine was asleep", time.Second, time.Hour, time.Hour},
		{"the wall clock was set back", time.Minute, -time.Hour, time.Minute},
	} {
		harness.Same(t, c.reason, c.want, elapsed(c.monotonic, c.wall))
	}
}

func TestALeaseIsKeptWhileItsWorkLasts(t *testing.T) {
	// Long enough that a busy machine renews it in time.
	const duration = 4 * time.Second
	l, other := newLock(t, "kept", duration), newLock(t, "kept", duration)
	other.identity = "other"
	waits, taken := make(chan struct{}), make(chan struct{})
	other.waiting = func(string) { close(waits) }
	var group sync.WaitGroup
	err := l.with(t.Context(), func(ctx context.Context) error {
		group.Go(func() {
			harness.NoError(t, "the other import", other.with(t.Context(), func(context.Context) error { close(taken); return nil }))
		})
		<-waits
		// Longer than the Lease lasts without renewal.
		timer := time.NewTimer(2 * l.duration)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-taken:
			return errors.New("somebody else got it")
		case <-timer.C:
			return nil
		}
	})
	harness.NoError(t, "the Lease was lost while it was renewed", err)
	group.Wait()
	if got := holder(t, l.key); got != "" {
		t.Errorf("holder %q after all work, want none", got)
	}
}

// silent returns the lock of a Lease that a killed process holds.
func silent(t *testing.T, name string) *lock {
	t.Helper()
	l := newLock(t, name, 4*time.Second) // long enough that a busy machine takes it in time
	err := env.Get(t).Client.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.key.Namespace, Name: l.key.Name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("killed"), LeaseDurationSeconds: new(int32(1)),
			// The other machine's clock is wrong by a day.
			RenewTime: new(metav1.NewMicroTime(time.Now().Add(24 * time.Hour))),
		},
	})
	harness.Must(t, err)
	return l
}

// An import does not wait for each Lease of a killed process in turn.
func TestAllLeasesOfASilentHolderRunOutTogether(t *testing.T) {
	first, second := silent(t, "silent-1"), silent(t, "silent-2")
	second.waiting = func(string) { t.Error("the second is waited for after the first was taken") }
	harness.Must(t, locked(t.Context(), []*job{{lock: first}, {lock: second}}, func(context.Context) error { return nil }))
}

// A killed holder must not block others forever, and a live one must not be replaced.
func TestALeaseIsTakenOverOnceItsHolderIsSilent(t *testing.T) {
	l := silent(t, "silent")
	var waitedFor string
	l.waiting = func(holder string) { waitedFor = holder }
	harness.Must(t, l.with(t.Context(), func(context.Context) error { return nil }))
	if waitedFor != "killed" {
		t.Errorf("waited for %q, want \"killed\"", waitedFor)
	}
}

func TestAtMostOneHolds(t *testing.T) {
	var mu sync.Mutex
	holding, most, turns := 0, 0, 0
	var group sync.WaitGroup
	for i := range 6 {
		l := newLock(t, "contended", 2*time.Second)
		l.identity = string(rune('a' + i))
		group.Go(func() {
			err := l.with(t.Context(), func(ctx context.Context) error {
				mu.Lock()
				holding++
				most, turns = max(most, holding), turns+1
				mu.Unlock()
				// A request takes some time, during which others try.
				err := env.Get(t).Client.Get(ctx, l.key, &coordinationv1.Lease{})
				mu.Lock()
				holding--
				mu.Unlock()
				return err
			})
			harness.NoError(t, "import", err)
		})
	}
	group.Wait()
	if most != 1 || turns != 6 {
		t.Errorf("at most %d held it at a time, %d had their turn; want 1 and 6", most, turns)
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	l := newLock(t, "waiting", 30*time.Second)
	err := l.with(t.Context(), func(context.Context) error {
		other := newLock(t, "waiting", 30*time.Second)
		other.identity = "other"
		ctx, cancel := context.WithCancel(t.Context())
		other.waiting = func(string) { cancel() }
		return other.with(ctx, func(context.Context) error { return errors.New("both hold it") })
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context was cancelled", err)
	}
}
