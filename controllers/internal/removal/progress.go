package removal

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// A removal takes one batch per second. Its progress is reported at a lower rate, because each report is a write.
const (
	reportInterval = 10 * time.Second
	reportStep     = 10 * batch
)

// Observe records the progress of a removal with that many objects left, and reports whether it did. It keeps the last
// record while that is recent and little has been removed since, and also if nothing has been removed, for example
// while another controller's finalizer holds the remaining objects.
func Observe(recorded **v1alpha1.RemovalProgress, left int, now time.Time) bool {
	before, remaining := *recorded, int32(left) //nolint:gosec // fewer than etcd holds
	total := remaining
	if before != nil {
		change := before.Remaining - remaining
		young := now.Sub(before.ObservedAt.Time) < reportInterval
		if change == 0 || young && change < reportStep {
			return false
		}
		total = max(before.Total, remaining)
	}
	*recorded = &v1alpha1.RemovalProgress{ObservedAt: v1alpha1.NewTime(now), Total: total, Remaining: remaining}
	return true
}
