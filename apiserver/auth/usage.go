package auth

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const (
	// usageInterval is the minimum time between two writes of a key's last use.
	usageInterval = time.Minute
	// usageQueue is how many writes may wait. More are skipped: a later use is recorded.
	usageQueue = 256
	// usageTimeout bounds one write.
	usageTimeout = 5 * time.Second
)

// usage records in the status of keys when they were last used.
type usage struct {
	queue chan use

	mu sync.Mutex
	// queued is when each key's use was last queued.
	queued recent[types.UID]
}

type use struct {
	key types.UID
	at  time.Time
}

func newUsage() *usage {
	return &usage{queue: make(chan use, usageQueue), queued: newRecent[types.UID](usageInterval)}
}

// note queues a write, unless the key's last use was noted less than an interval ago, by this replica or,
// according to the key's status, by another. It never waits.
func (u *usage) note(key *v1alpha1.APIKey, now time.Time) {
	if usedLately(key, now) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.queued.has(key.UID, now) {
		return
	}
	u.queued.sweep(now)
	select {
	case u.queue <- use{key: key.UID, at: now}:
		u.queued.at[key.UID] = now
	default:
	}
}

// usedLately reports whether the status already records a use within the last interval. The status is truncated
// to the second. A time further ahead than apitime.MaxAhead was recorded by a wrong clock, and does not count.
func usedLately(key *v1alpha1.APIKey, now time.Time) bool {
	last := key.Status.LastUsedAt
	if last == nil {
		return false
	}
	ago := now.Sub(last.Time)
	return -apitime.MaxAhead <= ago && ago < usageInterval+time.Second
}

// write performs the queued writes until the context ends.
func (u *usage) write(ctx context.Context, c client.Client, keys *view[*v1alpha1.APIKey], log logr.Logger) {
	each(ctx, u.queue, func(next use) {
		key, ok := keys.get(next.key)
		if !ok || usedLately(key, next.at) {
			// Another replica may have recorded a use while this one was queued.
			return
		}
		if err := writeLastUsed(ctx, c, key, next.at); err != nil && ctx.Err() == nil && !kube.IsConflict(err) &&
			!kube.IsNotFound(err) {
			log.Error(err, "Cannot note when a key was last used", "key", client.ObjectKeyFromObject(key))
		}
	})
}

// each handles what comes from a queue, one after the other, until the context ends.
func each[T any](ctx context.Context, queue <-chan T, handle func(T)) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-queue:
			handle(next)
		}
	}
}

// writeLastUsed sends the resourceVersion, so that it cannot write to a new key of the same name. After a
// conflict nothing is retried: the next use is recorded instead.
func writeLastUsed(ctx context.Context, c client.Client, key *v1alpha1.APIKey, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, usageTimeout)
	defer cancel()
	used := map[string]any{"lastUsedAt": v1alpha1.NewTime(at.UTC())}
	data, err := kube.MergePatch(key.ResourceVersion, "status", used)
	if err != nil {
		return err
	}
	target := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return c.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, data),
		client.FieldOwner(v1alpha1.APIFieldManager))
}
