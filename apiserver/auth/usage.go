package auth

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const (
	// usageInterval is how often a key's last use is written, at most.
	usageInterval = time.Minute
	// usageQueue is how many writes may wait; what does not fit is written a later time.
	usageQueue = 256
	// usageTimeout bounds one write.
	usageTimeout = 5 * time.Second
)

// usage notes when keys were last used, in their status.
type usage struct {
	queue chan use

	mu sync.Mutex
	// noted is when each key's use was last queued.
	noted map[types.UID]time.Time
	swept time.Time
}

type use struct {
	key types.UID
	at  time.Time
}

func newUsage() *usage {
	return &usage{queue: make(chan use, usageQueue), noted: map[types.UID]time.Time{}}
}

// note queues a write, unless the key's last use was noted less than an interval ago, here
// or (by its status) by another replica. It never waits.
func (u *usage) note(key *v1alpha1.APIKey, now time.Time) {
	if usedLately(key, now) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if at, ok := u.noted[key.UID]; ok && now.Sub(at) < usageInterval {
		return
	}
	u.sweep(now)
	select {
	case u.queue <- use{key: key.UID, at: now}:
		u.noted[key.UID] = now
	default:
	}
}

// usedLately reports whether the status says so. What it says is cut to the second.
func usedLately(key *v1alpha1.APIKey, now time.Time) bool {
	last := key.Status.LastUsedAt
	return last != nil && now.Sub(last.Time) < usageInterval+time.Second
}

// sweep forgets what no longer holds anything back, so that keys that have gone take no room.
func (u *usage) sweep(now time.Time) {
	if now.Sub(u.swept) < usageInterval {
		return
	}
	u.swept = now
	for key, at := range u.noted {
		if now.Sub(at) >= usageInterval {
			delete(u.noted, key)
		}
	}
}

// write works off the queue until the context ends.
func (u *usage) write(ctx context.Context, c client.Client, keys *view[*v1alpha1.APIKey], log logr.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-u.queue:
			key, ok := keys.get(next.key)
			if !ok || usedLately(key, next.at) {
				// Another replica may have been faster while this one waited its turn.
				continue
			}
			if err := writeLastUsed(ctx, c, key, next.at); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) &&
				!apierrors.IsNotFound(err) {
				log.Error(err, "Cannot note when a key was last used", "key", client.ObjectKeyFromObject(key))
			}
		}
	}
}

// writeLastUsed carries the resourceVersion, so that it cannot meet another key of the same
// name; where it is refused for that, the next use is noted instead.
func writeLastUsed(ctx context.Context, c client.Client, key *v1alpha1.APIKey, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, usageTimeout)
	defer cancel()
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": key.ResourceVersion},
		"status":   map[string]any{"lastUsedAt": v1alpha1.NewTime(at.UTC())},
	})
	if err != nil {
		return err
	}
	target := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return c.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, data),
		client.FieldOwner(v1alpha1.APIFieldManager))
}
