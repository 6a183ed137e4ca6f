package importer

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/internal/apitime"
)

// parentInterval is how often an import that writes checks that its project exists.
const parentInterval = time.Second

// parent is the project that a job imports into. The controllers release a deleted project once it has no findings and
// no scans, and nothing would remove those that are written later. The repository needs no check, because deleting it
// deletes its projects first.
type parent struct {
	client client.Client
	key    client.ObjectKey
	// uid is the project's UID when the import began.
	uid types.UID
	// checkedAt is when the last check began; nil before the first.
	checkedAt atomic.Pointer[time.Time]
}

// check returns a RefusedError if the project is being deleted or was deleted, even if it was created again.
func (p *parent) check(ctx context.Context) error {
	p.checkedAt.Store(new(time.Now()))
	return RequireSame(ctx, p.client, "project", p.key, p.uid)
}

// sure calls check unless the last check is recent. Of several callers, one checks.
func (p *parent) sure(ctx context.Context) error {
	at, now := p.checkedAt.Load(), time.Now()
	if at != nil && apitime.Elapsed(*at, now) < parentInterval || !p.checkedAt.CompareAndSwap(at, &now) {
		return nil
	}
	return p.check(ctx)
}
