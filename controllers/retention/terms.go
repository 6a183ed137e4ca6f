package retention

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// DefaultDeliveries is how long finished deliveries are kept by default. Only deliveries and operations have a default;
// other objects are kept forever. Each change of a finding makes one delivery per endpoint, so nothing else would bound
// their number.
const DefaultDeliveries = 7 * 24 * time.Hour

const (
	// DefaultOperations is how long finished operations are kept by default.
	DefaultOperations = 30 * 24 * time.Hour
	// keepSetless is how long an operation that failed without a set is kept, since nothing else bounds their number.
	keepSetless = time.Hour
	// keepPreviews is how long an uncommitted operation is kept.
	keepPreviews = 24 * time.Hour
)

// term is how long the objects on a shelf are kept.
type term struct {
	shelf shelf
	keep  time.Duration
}

// cutoff returns the latest finish time of objects that are due.
func (t term) cutoff(now time.Time) time.Time { return now.Add(-t.keep) }

// termsOf returns the organization's terms. A shelf without a term is kept forever.
//
// Findings come before the scans that they name. Deliveries come last, because their subjects may hold them.
func termsOf(retention *v1alpha1.Retention) []term {
	if retention == nil {
		retention = &v1alpha1.Retention{}
	}
	var out []term
	add := func(on shelf, keep *metav1.Duration) {
		if keep != nil {
			out = append(out, term{on, keep.Duration})
		}
	}
	add(closedFindings, retention.ClosedFindings)
	if retention.IncludeTriaged {
		add(triagedFindings, retention.ClosedFindings)
	}
	add(finishedScans, retention.FinishedScans)
	add(idleReviews, retention.IdleReviews)
	operations := cmp.Or(retention.FinishedOperations, &metav1.Duration{Duration: DefaultOperations})
	add(finishedOperations, operations)
	out = append(out, term{setlessOperations, min(operations.Duration, keepSetless)}, term{previews, keepPreviews})
	add(finishedDeliveries, cmp.Or(retention.FinishedDeliveries, &metav1.Duration{Duration: DefaultDeliveries}))
	return out
}
