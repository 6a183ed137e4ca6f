package reviewissue

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/policies"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// worthReconciling ignores our own status writes, except for a new verdict or the end of a decision: policies may have
// changed while the cache still held the old status.
var worthReconciling = watch.SpecOr(func(before, after *v1alpha1.ReviewIssue) bool {
	return !findingstate.SameVerdict(before.Status.Verdict, after.Status.Verdict) ||
		!before.Status.EndedAt.Equal(after.Status.EndedAt)
})

// rejudge enqueues the issues of the namespace whose verdict by policies differs from their status.
func (r *Reconciler) rejudge(ctx context.Context) handler.EventHandler {
	return policies.Rejudge(ctx, policies.WholeNamespace,
		func(ctx context.Context, object client.Object) ([]ctrl.Request, error) {
			return r.outdatedVerdicts(ctx, object.GetNamespace())
		})
}

func (r *Reconciler) outdatedVerdicts(ctx context.Context, namespace string) ([]ctrl.Request, error) {
	judge, err := policies.NewJudge(ctx, r.Client, namespace, r.Clock.Now())
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.ReviewIssueList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var out []ctrl.Request
	var failed error
	for i := range list.Items {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		issue, review := &list.Items[i], &v1alpha1.Review{}
		if reviewstate.UserStatus(issue) != v1alpha1.UserStatusOpen {
			continue
		}
		spec := &review.Spec
		exists, err := reconcile.Exists(ctx, r.Client, review, namespace, issue.Spec.ReviewRef.Name)
		if err != nil {
			return nil, err
		}
		if !exists {
			spec = nil
		}
		judged := func() (*v1alpha1.FindingVerdict, error) { return judge.Verdict(ctx, reviewstate.Facts(issue, spec)) }
		differs, err := policies.Differs(judged, issue.Status.Verdict)
		if err != nil {
			failed = err // the others are still judged
		}
		if differs {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(issue)})
		}
	}
	return out, failed
}
