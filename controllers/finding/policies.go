package finding

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/policies"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// findingSelector returns list options that select the findings affected by a change of the object.
type findingSelector func(client.Object) []client.ListOption

func ofNamespace(client.Object) []client.ListOption { return nil }

func ofProject(project client.Object) []client.ListOption {
	return []client.ListOption{client.MatchingFields{referencesIndex: refersToProject + project.GetName()}}
}

func ofRepository(repository client.Object) []client.ListOption {
	return []client.ListOption{client.MatchingFields{referencesIndex: refersToRepository + repository.GetName()}}
}

// rejudge enqueues the findings whose verdict by reviews and policies differs from their status.
func (r *Reconciler) rejudge(ctx context.Context, of watch.Subject, which findingSelector) handler.EventHandler {
	return policies.Rejudge(ctx, of, func(ctx context.Context, object client.Object) ([]ctrl.Request, error) {
		return r.outdatedVerdicts(ctx, object.GetNamespace(), which(object))
	})
}

func (r *Reconciler) outdatedVerdicts(ctx context.Context, namespace string, which []client.ListOption) ([]ctrl.Request,
	error) {
	r.judgements.changed(namespace)
	judge, err := r.judge(ctx, namespace, r.Clock.Now())
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.FindingList{}
	err = r.Client.List(ctx, list, append(which, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)...)
	if err != nil {
		return nil, err
	}
	var out []ctrl.Request
	var failed error
	for i := range list.Items {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		finding := &list.Items[i]
		if !findingstate.VerdictCounts(finding) {
			continue
		}
		// This includes findings without a status: the reconcile that writes it may have begun before the policies
		// changed.
		judged := func() (*v1alpha1.FindingVerdict, error) { return judge.verdict(ctx, finding) }
		differs, err := policies.Differs(judged, finding.Status.Verdict)
		if err != nil {
			failed = err // the others are still judged
		}
		if differs {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(finding)})
		}
	}
	return out, failed
}
