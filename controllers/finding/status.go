package finding

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/policies"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// observeSpec records the state, the verdict of reviews and policies, the time and the transitions, and requeues for
// the end of the decision. Changed policies need no requeue: their watch enqueues the affected findings.
func (r *Reconciler) observeSpec(ctx context.Context, s *scope) error {
	began := r.judgements.begin()
	judge, err := r.judge(ctx, s.Object.Namespace, s.Now)
	if err != nil {
		return err
	}
	before := findingstate.ObservedBefore(s.Object, r.implied.Creation(s.Object), s.Now)
	var judged *v1alpha1.FindingVerdict
	if findingstate.VerdictWillCount(before, s.Now) {
		if judged, err = judge.verdict(ctx, before); err != nil {
			return err
		}
	}
	observed := findingstate.Observe(before, judged, s.Now)
	if verdictChanged(&s.Object.Status, &observed) {
		r.judgements.end(client.ObjectKeyFromObject(s.Object), began)
	}
	*s.Status = observed
	s.RequeueAtEnd(findingstate.UntilEnd(s.Object, s.Now))
	return nil
}

// auditTriage writes an audit line for each decision in spec.triage, or end of one, that is about to be recorded.
func (r *Reconciler) auditTriage(_ context.Context, s *scope) error {
	r.audit.Decisions(s.Object, s.Object.Spec.Triage.Comments,
		findingstate.History(s.Before), findingstate.History(s.Status))
	return nil
}

// observeReferences records whether the repository and the project exist and belong together. If they do not, the
// watches on both kinds enqueue the finding later.
func (r *Reconciler) observeReferences(ctx context.Context, s *scope) error {
	facts, err := policies.Facts(ctx, r.Client, s.Object)
	if err != nil {
		return err
	}
	s.Judge(verdict(facts))
	return nil
}

// verdict reports the first invalid reference. The repository comes first, because the project is useless without it.
func verdict(facts *triagepolicy.Facts) conditions.Verdict {
	spec := &facts.Finding.Spec
	switch {
	case facts.Repository == nil:
		return conditions.NotFound(v1alpha1.ReasonRepositoryNotFound, "Repository", spec.RepositoryRef.Name, "finding")
	case facts.Project == nil:
		return conditions.NotFound(v1alpha1.ReasonProjectNotFound, "Project", spec.ProjectRef.Name, "finding")
	case facts.Project.Spec.RepositoryRef.Name != spec.RepositoryRef.Name:
		return conditions.NotReady(v1alpha1.ReasonProjectInAnotherRepository,
			fmt.Sprintf("Project %q belongs to Repository %q, and this finding names Repository %q. Neither can be changed: "+
				"delete the finding and create it with the project's repository, or with a project of its repository.",
				spec.ProjectRef.Name, facts.Project.Spec.RepositoryRef.Name, spec.RepositoryRef.Name))
	default:
		return conditions.Ready("The status is that of the spec.")
	}
}
