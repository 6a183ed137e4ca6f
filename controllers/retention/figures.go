package retention

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// DefaultDeliveries is how long finished deliveries are kept where the organization does not
// say. They and operations alone are not kept for ever then: each change of a finding makes a delivery for each
// endpoint, so nothing else would bound their number.
const DefaultDeliveries = 7 * 24 * time.Hour

const (
	// DefaultOperations is how long finished operations are kept where the organization does not say.
	DefaultOperations = 30 * 24 * time.Hour
	// keepPreviews is how long an operation is kept that nobody commits.
	keepPreviews = 24 * time.Hour
)

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
	add(finishedOperations, orDefault(figures.FinishedOperations, DefaultOperations))
	out = append(out, term{previews, keepPreviews})
	add(finishedDeliveries, orDefault(figures.FinishedDeliveries, DefaultDeliveries))
	return out
}

func orDefault(figure *metav1.Duration, otherwise time.Duration) *metav1.Duration {
	if figure == nil {
		return &metav1.Duration{Duration: otherwise}
	}
	return figure
}
