package removal

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// A removal takes one batch per second. Its progress is reported at a lower rate, since each report
// is a write.
const (
	reportInterval = 10 * time.Second
	reportStep     = 10 * batch
)

// Progress returns the progress to report for a removal with that many objects left. It returns
// before while that is recent and little has been removed since, and also if nothing has been
// removed, for example while another controller's finalizer holds the remaining objects.
func Progress(before *v1alpha1.RemovalProgress, remaining int32, now time.Time) *v1alpha1.RemovalProgress {
	if before == nil {
		return &v1alpha1.RemovalProgress{ObservedAt: v1alpha1.NewTime(now), Total: remaining, Remaining: remaining}
	}
	change := before.Remaining - remaining
	young := now.Sub(before.ObservedAt.Time) < reportInterval
	if change == 0 || young && change < reportStep {
		return before
	}
	return &v1alpha1.RemovalProgress{
		ObservedAt: v1alpha1.NewTime(now), Total: max(before.Total, remaining), Remaining: remaining,
	}
}
