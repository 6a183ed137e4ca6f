package finding

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// decisionEvents and scannerEvents split the events between two lanes: each event goes to one of them, and only that
// lane checks whether the event is worth a reconcile. Findings with a decision that their status does not record yet go
// ahead of those of their namespace that an import has changed: a user waits for the decision, a scanner does not.
func (r *Reconciler) decisionEvents() predicate.Predicate {
	return predicate.And(predicate.NewPredicateFuncs(decisionWaits), r.worthReconciling())
}

func (r *Reconciler) scannerEvents() predicate.Predicate {
	return predicate.And(predicate.Not(predicate.NewPredicateFuncs(decisionWaits)), r.worthReconciling())
}

// decisionWaits reports whether a user's decision about this finding is still to be recorded. A finding that is being
// deleted has no priority, nor do the decisions of an operation: it may decide about thousands, and no user waits for
// each.
func decisionWaits(object client.Object) bool {
	finding, isFinding := object.(*v1alpha1.Finding)
	return isFinding && finding.DeletionTimestamp.IsZero() && findingstate.DecisionWaits(finding) &&
		!strings.HasPrefix(finding.Spec.Triage.By, v1alpha1.OperationAuthorPrefix)
}
