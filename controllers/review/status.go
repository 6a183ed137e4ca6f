package review

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// claim makes sure that the review does not go without us. It comes first, so that nothing
// can be counted for a review that nobody would clean up after.
func (r *Reconciler) claim(ctx context.Context, s *scope) (ctrl.Result, error) {
	return ctrl.Result{}, patch.AddFinalizer(ctx, r.client, s.review, v1alpha1.CleanupFinalizer)
}

// observe records the counters, when the last review was done and when anything last changed.
func (r *Reconciler) observe(ctx context.Context, s *scope) (ctrl.Result, error) {
	issues := &v1alpha1.ReviewIssueList{}
	if err := r.client.List(ctx, issues, client.InNamespace(s.review.Namespace),
		client.MatchingFields{reviewField: s.review.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the review's issues: %w", err)
	}
	var counts reviewstate.Counts
	for i := range issues.Items {
		counts.Add(&issues.Items[i].Spec, s.review.Spec.ReviewedCommits)
	}
	s.review.Status = reviewstate.ReviewStatus(s.review, counts, s.now)
	return ctrl.Result{}, nil
}

// observeRepository records whether the repository is there. Nothing is retried where it is
// not: the watch on repositories wakes the review when it comes.
func (r *Reconciler) observeRepository(ctx context.Context, s *scope) (ctrl.Result, error) {
	name := s.review.Spec.RepositoryRef.Name
	err := r.client.Get(ctx, client.ObjectKey{Namespace: s.review.Namespace, Name: string(name)},
		&v1alpha1.Repository{}, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("look up repository %q: %w", name, err)
	}
	verdict := conditions.Ready("The status is that of the spec and of the issues.")
	if err != nil {
		verdict = conditions.Verdict{
			Reason:  v1alpha1.ReasonRepositoryNotFound,
			Message: fmt.Sprintf("There is no Repository %q in this namespace: create it, or delete the review.", name),
		}
	}
	conditions.Set(&s.review.Status.Conditions, verdict, s.review.Generation, s.now)
	return ctrl.Result{}, nil
}
