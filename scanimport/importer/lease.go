package importer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/safely"
)

// leaseDuration is how long a Lease stays taken after its holder's last renewal.
const leaseDuration = 15 * time.Second

// errLeaseLost ends an import that could not renew its Lease in time: another import may have begun.
var errLeaseLost = errors.New("the import's Lease was lost (the API server did not answer in time, or somebody else took it)")

// lock is a Lease that this process holds or waits for. It allows one import at a time per repository, project, tool,
// category and analysis.
type lock struct {
	client   client.Client
	key      client.ObjectKey
	identity string
	// waiting is called once with the current holder of the Lease.
	waiting func(holder string)

	// seen is the last version of the Lease that was read, and seenAt when that version was first read.
	seen   string
	seenAt time.Time

	// renewing is held during a renewal. The last successful renewal began at renewedAt by the local clock, and at heldAt
	// by that of the API server.
	renewing  sync.Mutex
	renewedAt atomic.Pointer[time.Time]
	heldAt    atomic.Pointer[time.Time]
}

func (im *Importer) lock(b *Batch) *lock {
	key := client.ObjectKey{
		Namespace: im.target.Namespace,
		Name:      "import-" + fingerprints.Hash(append([]string{im.target.Repository, im.target.of(b)}, b.key()...)...),
	}
	return leaseLock(im.client, key, func(holder string) { im.options.OnWaiting(b, holder) })
}

// ErrWaiting is the error of an import that is stopped while another one holds its Lease.
var ErrWaiting = errors.New("stopped while waiting for another import")

// Held is a Lease that this process holds, in the form that a Scan records.
type Held struct {
	v1alpha1.ScanLease
	// Sure returns an error if the Lease is no longer held. Call it before an issue or a review is written.
	Sure func(ctx context.Context) error
}

// WithLease waits for the Lease and calls do while this process holds it. The context of do ends if the Lease is lost.
// waiting is called once if there is another holder.
func WithLease(ctx context.Context, c client.Client, key client.ObjectKey, waiting func(holder string),
	do func(ctx context.Context, held Held) error) error {
	l := leaseLock(c, key, waiting)
	return l.with(ctx, func(ctx context.Context) error { return do(ctx, Held{l.named(), l.sure}) })
}

// named returns the Lease and its holder as a Scan records them.
func (l *lock) named() v1alpha1.ScanLease {
	return v1alpha1.ScanLease{Name: l.key.Name, Holder: l.identity}
}

func leaseLock(c client.Client, key client.ObjectKey, waiting func(holder string)) *lock {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &lock{client: c, key: key, identity: cut(host, 128) + "_" + uuid.NewString(), waiting: waiting}
}

// with calls do while the Lease is held; the context of do ends if the Lease is lost.
func (l *lock) with(ctx context.Context, do func(ctx context.Context) error) error {
	if err := l.acquire(ctx); err != nil {
		return err
	}
	held, lost := context.WithCancelCause(ctx)
	renewing := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(renewing)
		if err := safely.Func(func() error { l.renew(held, stop, lost); return nil })(); err != nil {
			lost(err)
		}
	}()
	err := safely.Func(func() error { return do(held) })()
	close(stop)
	<-renewing
	lost(nil)
	l.release(ctx)
	return err
}

// acquire waits for the Lease. It is free if it has no holder, or if its holder has not renewed it for its duration by
// this process's clock: the clocks of two machines are never compared.
func (l *lock) acquire(ctx context.Context) error {
	var other string // the holder to wait for, if known
	for first := true; ; {
		lease, err := l.observe(ctx)
		if err != nil {
			return l.acquireError(ctx, other, err)
		}
		version := lease.ResourceVersion
		other = l.otherHolder(lease)
		if other == "" {
			err = Retry(ctx, func(ctx context.Context) error { return l.write(ctx, lease) })
			switch {
			case err == nil:
				return nil
			case kube.IsConflict(err), kube.IsAlreadyExists(err), version != "" && kube.IsNotFound(err):
				continue // another process was faster, or the unused Lease was deleted: read it again
			}
			return l.acquireError(ctx, "", err)
		}
		if first {
			l.waiting(other)
			first = false
		}
		select {
		case <-ctx.Done():
			return l.acquireError(ctx, other, context.Cause(ctx))
		case <-time.After(wait.Jitter(leaseDuration/8, 0.2)):
		}
	}
}

// otherHolder returns who else holds the observed Lease; empty if it is free.
func (l *lock) otherHolder(lease *coordinationv1.Lease) string {
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	if holder == l.identity || time.Since(l.seenAt) > duration {
		return ""
	}
	return holder
}

// acquireError returns the error of an import that ends without its Lease: ErrWaiting only if the import was stopped
// while another one held the Lease.
func (l *lock) acquireError(ctx context.Context, other string, err error) error {
	cause := context.Cause(ctx)
	switch {
	case cause != nil && other != "":
		return fmt.Errorf("%w (%s), nothing was written: %w", ErrWaiting, other, cause)
	case cause == nil || errors.Is(err, cause):
		return fmt.Errorf("take the Lease %s: %w", l.key, err)
	default:
		return fmt.Errorf("take the Lease %s: %w: %w", l.key, cause, err)
	}
}

// observe reads the Lease and remembers since when it has not changed.
func (l *lock) observe(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := l.read(ctx)
	if err != nil {
		return nil, err
	}
	if lease.ResourceVersion != l.seen {
		l.seen, l.seenAt = lease.ResourceVersion, time.Now()
	}
	return lease, nil
}

// read returns the Lease, or an empty one if it does not exist.
func (l *lock) read(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := Retry(ctx, func(ctx context.Context) error { return l.client.Get(ctx, l.key, lease) })
	if kube.IsNotFound(err) {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.key.Namespace, Name: l.key.Name}}, nil
	}
	return lease, err
}

func (l *lock) write(ctx context.Context, lease *coordinationv1.Lease) error {
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != l.identity {
		lease.Spec.LeaseTransitions = new(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
		lease.Spec.AcquireTime = new(metav1.NowMicro())
	}
	lease.Spec.HolderIdentity = &l.identity
	lease.Spec.RenewTime = new(metav1.NowMicro())
	lease.Spec.LeaseDurationSeconds = new(int32(leaseDuration / time.Second))
	ctx, cancel := context.WithTimeout(ctx, leaseDuration/2)
	defer cancel()
	at, held := time.Now(), apitime.Now()
	write := func() error { return l.client.Update(ctx, lease) }
	if lease.ResourceVersion == "" {
		write = func() error { return l.client.Create(ctx, lease) }
	}
	if err := write(); err != nil {
		return err
	}
	l.renewedAt.Store(&at)
	l.heldAt.Store(&held)
	return nil
}

// renew renews the Lease until stop is closed. It gives up well before others may take the Lease, so that the last
// requests of this import arrive before another one begins.
func (l *lock) renew(ctx context.Context, stop <-chan struct{}, lost context.CancelCauseFunc) {
	ticker := time.NewTicker(leaseDuration / 5)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := l.renewOnce(ctx); errors.Is(err, errLeaseLost) || err != nil && !l.fresh() {
			lost(errLeaseLost)
			return
		}
	}
}

// fresh reports whether the last renewal is so recent that no other process can hold the Lease.
func (l *lock) fresh() bool {
	at := l.renewedAt.Load()
	return at != nil && apitime.Elapsed(*at, time.Now()) <= leaseDuration*2/3
}

// endedAt returns when an import under the Lease ended, by the API server's time: now, or, if the Lease may be lost,
// when it was last certainly held. Otherwise this import would seem to have ended after those that replaced it, and a
// success would count as the repetition of one that was interrupted meanwhile.
func (l *lock) endedAt(failure error) time.Time {
	held := l.heldAt.Load()
	if held != nil && (errors.Is(failure, errLeaseLost) || !l.fresh()) {
		return *held
	}
	return apitime.Now()
}

// sure returns errLeaseLost if this process may not hold the Lease. A process that was suspended must check this before
// it writes a finding, an issue or a review, because its context does not end by itself.
func (l *lock) sure(ctx context.Context) error {
	if l.fresh() {
		return nil
	}
	if err := l.renewOnce(ctx); err != nil {
		return errors.Join(errLeaseLost, err)
	}
	return nil
}

func (l *lock) renewOnce(ctx context.Context) error {
	l.renewing.Lock()
	defer l.renewing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, leaseDuration/5)
	defer cancel()
	lease := &coordinationv1.Lease{}
	if err := l.client.Get(ctx, l.key, lease); err != nil {
		return err
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") != l.identity {
		return errLeaseLost
	}
	return l.write(ctx, lease)
}

// release frees the Lease so that the next import can begin at once. If release fails, the Lease expires.
func (l *lock) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for range 3 {
		lease := &coordinationv1.Lease{}
		if err := l.client.Get(ctx, l.key, lease); err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") != l.identity {
			return
		}
		lease.Spec.HolderIdentity = nil
		if err := l.client.Update(ctx, lease); !kube.IsConflict(err) {
			return
		}
	}
}
