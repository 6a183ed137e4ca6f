package removal

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// A removal takes a batch a second. It is told of at a lower rate: each telling is a write.
const (
	tellEvery = 10 * time.Second
	tellStep  = 10 * batch
)

// Progress is what a status is to say of a removal that has that many objects left: what it
// said before, while that is young and little has gone since. Where nothing has gone nothing is
// said anew, however long somebody else's finalizer holds what is left.
func Progress(before *v1alpha1.RemovalProgress, remaining int32, now time.Time) *v1alpha1.RemovalProgress {
	if before == nil {
		return &v1alpha1.RemovalProgress{ObservedAt: v1alpha1.NewTime(now), Total: remaining, Remaining: remaining}
	}
	change := before.Remaining - remaining
	young := now.Sub(before.ObservedAt.Time) < tellEvery
	if change == 0 || young && change < tellStep {
		return before
	}
	return &v1alpha1.RemovalProgress{
		ObservedAt: v1alpha1.NewTime(now), Total: max(before.Total, remaining), Remaining: remaining,
	}
}
