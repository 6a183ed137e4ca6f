package finding

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/transitions"
)

// auditTriage writes an audit line for each user's decision, or end of a decision, that is about to be
// recorded.
func (r *Reconciler) auditTriage(_ context.Context, s *scope) error {
	r.audit.Decisions(s.Object, s.Object.Spec.Triage.Comments, historyOf(s.Before), historyOf(s.Status))
	return nil
}

func historyOf(status *v1alpha1.FindingStatus) transitions.History {
	return transitions.History{Transitions: status.Transitions, EmittedSeq: status.EmittedSeq}
}
