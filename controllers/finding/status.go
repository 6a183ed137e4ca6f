package finding

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// kind is what the ledger of deliveries must know of findings.
var kind = ledger.Kind{
	Name:   "Finding",
	Prefix: webhooks.FindingEventPrefix,
	Object: &v1alpha1.Finding{},
	List:   &v1alpha1.FindingList{},
	Book: func(object client.Object) ledger.Book {
		status := &object.(*v1alpha1.Finding).Status
		return ledger.Book{Transitions: &status.Transitions, EmittedSeq: &status.EmittedSeq}
	},
	Data: func(object client.Object, t v1alpha1.Transition) any {
		return webhooks.DataOfFinding(object.(*v1alpha1.Finding), t)
	},
	Paged: true,
}

// observeSpec records the state, the time and the transitions.
func observeSpec(s *scope) {
	s.finding.Status = findingstate.Observe(s.finding, s.now)
}

// observeReferences records whether the repository and the project exist and belong together.
// Nothing is retried where they do not: the watches on both kinds wake the finding.
func (r *Reconciler) observeReferences(ctx context.Context, s *scope) error {
	spec := &s.finding.Spec
	repository, err := r.exists(ctx, s.finding.Namespace, spec.RepositoryRef.Name, &v1alpha1.Repository{})
	if err != nil {
		return fmt.Errorf("look up repository %q: %w", spec.RepositoryRef.Name, err)
	}
	found := references{repository: repository}
	project := &v1alpha1.Project{}
	if found.project, err = r.exists(ctx, s.finding.Namespace, spec.ProjectRef.Name, project); err != nil {
		return fmt.Errorf("look up project %q: %w", spec.ProjectRef.Name, err)
	}
	found.repositoryOfProject = project.Spec.RepositoryRef.Name
	conditions.Set(&s.finding.Status.Conditions, verdict(spec, found), s.finding.Generation, s.now)
	return nil
}

// references are what the cache holds of the objects that a finding names.
type references struct {
	// repository and project report whether the object exists.
	repository, project bool
	// repositoryOfProject is the Repository that the project names.
	repositoryOfProject v1alpha1.ResourceName
}

// verdict reports the first reference that does not hold. The repository comes first: without it
// the project is of no use.
func verdict(spec *v1alpha1.FindingSpec, found references) conditions.Verdict {
	switch {
	case !found.repository:
		return conditions.Verdict{
			Reason: v1alpha1.ReasonRepositoryNotFound,
			Message: fmt.Sprintf("There is no Repository %q in this namespace: create it, or delete the finding.",
				spec.RepositoryRef.Name),
		}
	case !found.project:
		return conditions.Verdict{
			Reason: v1alpha1.ReasonProjectNotFound,
			Message: fmt.Sprintf("There is no Project %q in this namespace: create it, or delete the finding.",
				spec.ProjectRef.Name),
		}
	case found.repositoryOfProject != spec.RepositoryRef.Name:
		return conditions.Verdict{
			Reason: v1alpha1.ReasonProjectInAnotherRepository,
			Message: fmt.Sprintf("Project %q belongs to Repository %q, and this finding names Repository %q. Neither can be changed: "+
				"delete the finding and create it with the project's repository, or with a project of its repository.",
				spec.ProjectRef.Name, found.repositoryOfProject, spec.RepositoryRef.Name),
		}
	default:
		return conditions.Ready("The status is that of the spec.")
	}
}
