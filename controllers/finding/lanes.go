package finding

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// decisionEvents and scannerEvents split the events between two watches that feed one queue; each checks only its own
// events for whether they are worth a reconcile. Findings with a decision that is not yet in their status go ahead of
// those that an import has changed in their namespace (see watch.EnqueueFirst), because a user waits for the decision.
func (r *Reconciler) decisionEvents() predicate.Predicate {
	return predicate.And(predicate.NewPredicateFuncs(decisionWaits), r.worthReconciling())
}

func (r *Reconciler) scannerEvents() predicate.Predicate {
	return predicate.And(predicate.Not(predicate.NewPredicateFuncs(decisionWaits)), r.worthReconciling())
}

// decisionWaits reports whether a single decision, of a person, a ServiceAccount or an API key, is not yet in the
// finding's status. A finding that is being deleted has no priority, and neither has a decision of an operation, which
// may make thousands.
func decisionWaits(object client.Object) bool {
	finding, isFinding := object.(*v1alpha1.Finding)
	return isFinding && finding.DeletionTimestamp.IsZero() && findingstate.DecisionWaits(finding) &&
		!strings.HasPrefix(finding.Spec.Triage.By, v1alpha1.OperationAuthorPrefix)
}
