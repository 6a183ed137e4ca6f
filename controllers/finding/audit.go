package finding

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/transitions"
)

// auditTriage writes a line for each decision of a person that is about to be recorded, or whose end is.
func (r *Reconciler) auditTriage(_ context.Context, s *scope) error {
	r.audit.Decisions(s.Object, s.Object.Spec.Triage.Comments, historyOf(s.Before), historyOf(s.Status))
	return nil
}

func historyOf(status *v1alpha1.FindingStatus) transitions.History {
	return transitions.History{Transitions: status.Transitions, EmittedSeq: status.EmittedSeq}
}
