package findingstate

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
	"github.com/appsec-dev/findings-operator/internal/truncate"
)

// Committer returns who committed the operation that the finding's decision names, cut to fit a transition. Only the
// end of a long name is kept: cloud and identity providers begin the names of all their users alike.
//
// It returns "" if the decision is earlier than this operation's selection: then an earlier operation of its name may
// have made it. The creation counts too, since the clock of the controllers may be behind the API server's; if it is
// ahead, the first decisions name nobody. Both times have whole seconds, so an operation that selects in the second of
// the other's decision is taken for it.
func Committer(operation *v1alpha1.TriageOperation, finding *v1alpha1.Finding) string {
	decided, selected := lastwrite.OfControllers(finding), operation.Status.SelectedAt
	if !operation.Spec.Commit || selected == nil || decided.Before(selected.Time) ||
		decided.Before(operation.CreationTimestamp.Time) {
		return ""
	}
	return truncate.MarkedStart(operation.Spec.CommittedBy, v1alpha1.MaxTransitionAuthor, "[cut] ... ")
}
