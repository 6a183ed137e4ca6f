package findingstate

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
)

// Committer returns who committed the operation that the finding's decision names, cut to fit a transition. It returns
// "" if only an earlier operation of the same name can have decided, because this one has not selected its findings, or
// was created later.
func Committer(operation *v1alpha1.TriageOperation, finding *v1alpha1.Finding) string {
	hasSelected := operation.Spec.Commit && operation.Status.SelectedAt != nil
	if !hasSelected || lastwrite.OfControllers(finding).Before(operation.CreationTimestamp.Time) {
		return ""
	}
	return cut(operation.Spec.CommittedBy, v1alpha1.MaxTransitionAuthor)
}
