package retention

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// DefaultDeliveries is how long finished deliveries are kept where the organization does not
// say. They alone are not kept for ever then: each change of a finding makes one for each
// endpoint, so nothing else would bound their number.
const DefaultDeliveries = 7 * 24 * time.Hour

// term says how long the objects on a shelf are kept.
type term struct {
	shelf shelf
	keep  time.Duration
}

// cutoff is when the youngest finished that need not be kept any longer.
func (t term) cutoff(now time.Time) time.Time { return now.Add(-t.keep) }

// termsOf are those of the organization. A shelf without one is kept.
//
// Findings go before the scans that they name, and deliveries last: what is made of the others'
// transitions is asked for by them.
func termsOf(figures *v1alpha1.Retention) []term {
	if figures == nil {
		figures = &v1alpha1.Retention{}
	}
	var out []term
	add := func(on shelf, figure *metav1.Duration) {
		if figure != nil {
			out = append(out, term{on, figure.Duration})
		}
	}
	add(closedFindings, figures.ClosedFindings)
	if figures.IncludeTriaged {
		add(triagedFindings, figures.ClosedFindings)
	}
	add(finishedScans, figures.FinishedScans)
	if figures.FinishedDeliveries == nil {
		return append(out, term{finishedDeliveries, DefaultDeliveries})
	}
	add(finishedDeliveries, figures.FinishedDeliveries)
	return out
}
