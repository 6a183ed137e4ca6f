package finding

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// observeSpec records the state, the verdict of reviews and policies, the time and the transitions, and requeues for
// when the decision ends. When policies change, their watch enqueues the affected findings.
func (r *Reconciler) observeSpec(ctx context.Context, s *scope) error {
	began := r.judgements.begin()
	judge, err := r.judge(ctx, s.Object.Namespace, s.Now)
	if err != nil {
		return err
	}
	before := findingstate.ObservedBefore(s.Object, r.implied.Creation(s.Object), s.Now)
	observed := findingstate.Observe(before, judge.Of(ctx), s.Now)
	if err := judge.Err(); err != nil {
		return err
	}
	if judgedOtherwise(&s.Object.Status, &observed) {
		r.judgements.end(client.ObjectKeyFromObject(s.Object), began)
	}
	*s.Status = observed
	s.RequeueAfter(min(findingstate.UntilEnd(s.Object, s.Now), reconcile.LongestWait))
	return nil
}

// auditTriage writes an audit line for each user's decision, or end of a decision, that is about to be
// recorded.
func (r *Reconciler) auditTriage(_ context.Context, s *scope) error {
	r.audit.Decisions(s.Object, s.Object.Spec.Triage.Comments,
		findingstate.History(s.Before), findingstate.History(s.Status))
	return nil
}

// observeReferences records whether the repository and the project exist and belong together. If
// they do not, nothing is retried: the watches on both kinds enqueue the finding.
func (r *Reconciler) observeReferences(ctx context.Context, s *scope) error {
	spec, project := &s.Object.Spec, &v1alpha1.Project{}
	var found references
	var err error
	if found.repository, err = reconcile.Exists(ctx, r.Client, &v1alpha1.Repository{}, s.Object.Namespace,
		spec.RepositoryRef.Name); err != nil {
		return err
	}
	if found.project, err = reconcile.Exists(ctx, r.Client, project, s.Object.Namespace,
		spec.ProjectRef.Name); err != nil {
		return err
	}
	found.repositoryOfProject = project.Spec.RepositoryRef.Name
	s.Judge(verdict(spec, found))
	return nil
}

// references holds what the cache knows about the objects that a finding names.
type references struct {
	// repository and project report whether the object exists.
	repository, project bool
	// repositoryOfProject is the Repository that the project names.
	repositoryOfProject v1alpha1.ResourceName
}

// verdict reports the first invalid reference. The repository comes first: without it the project
// is useless.
func verdict(spec *v1alpha1.FindingSpec, found references) conditions.Verdict {
	switch {
	case !found.repository:
		return conditions.NotFound(v1alpha1.ReasonRepositoryNotFound, "Repository", spec.RepositoryRef.Name, "finding")
	case !found.project:
		return conditions.NotFound(v1alpha1.ReasonProjectNotFound, "Project", spec.ProjectRef.Name, "finding")
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
