package finding

import (
	"context"

	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// auditTriage writes an audit line for each user's decision, or end of a decision, that is about to be
// recorded.
func (r *Reconciler) auditTriage(_ context.Context, s *scope) error {
	r.audit.Decisions(s.Object, s.Object.Spec.Triage.Comments,
		findingstate.History(s.Before), findingstate.History(s.Status))
	return nil
}
