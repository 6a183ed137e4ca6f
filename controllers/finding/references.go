package finding

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
)

// referencesIndex is the cache index of findings by what they refer to and by what they wait for.
const referencesIndex = "references"

// The values under which the index keeps a finding; a resource's name follows.
const (
	refersToRepository = "repository/"
	refersToProject    = "project/"
	waitsForRepository = "waits-for-repository/"
	waitsForProject    = "waits-for-project/"
	isResult           = "result/"
)

func referencesOf(finding *v1alpha1.Finding) []string {
	repository, project := string(finding.Spec.RepositoryRef.Name), string(finding.Spec.ProjectRef.Name)
	values := []string{refersToRepository + repository, refersToProject + project}
	if key := fingerprints.Key(&finding.Spec); key != "" && finding.Spec.Closed == nil {
		values = append(values, isResult+key)
	}
	switch conditions.ReadyReason(finding.Status.Conditions) {
	case v1alpha1.ReasonRepositoryNotFound:
		values = append(values, waitsForRepository+repository)
	case v1alpha1.ReasonProjectNotFound:
		values = append(values, waitsForProject+project)
	}
	return values
}

// worthReconciling lets through of our own status writes that of a finding which begins to wait: what it waits for may
// have come too early for the index to name the finding as waiting. And that of another verdict, or of a decision that
// has ended, unless it is sure to stand.
func (r *Reconciler) worthReconciling() predicate.Predicate {
	return watch.SpecOr(func(before, after *v1alpha1.Finding) bool {
		return judgedOtherwise(&before.Status, &after.Status) && !r.judgements.stands(client.ObjectKeyFromObject(after)) ||
			watch.BeginsToWait(before.Status.Conditions, after.Status.Conditions,
				v1alpha1.ReasonRepositoryNotFound, v1alpha1.ReasonProjectNotFound)
	})
}

// judgedOtherwise reports whether the verdict is another, or a decision has ended.
func judgedOtherwise(before, after *v1alpha1.FindingStatus) bool {
	return !findingstate.SameVerdict(before.Verdict, after.Verdict) || !before.EndedAt.Equal(after.EndedAt)
}

// createdDeletedOrMoved passes over updates of a project that stays in its repository. The reference
// is immutable, so another one means that the project was deleted and created anew while the watch
// was interrupted: then both arrive as one update.
var createdDeletedOrMoved = watch.Updates(func(before, after *v1alpha1.Project) bool {
	return before.Spec.RepositoryRef != after.Spec.RepositoryRef
})

// enqueueFindings enqueues the findings that wait for what was created, and those that refer to what was changed or
// deleted. Those that do not wait are left alone: at a start every repository "is created", and it may have 100,000
// findings.
func (r *Reconciler) enqueueFindings(waiting, referring string) handler.EventHandler {
	return watch.Changes(func(ctx context.Context, change watch.Change, q watch.Queue) {
		r.judgements.changed() // what a finding refers to is read with the policies
		prefix := referring
		if change.Before == nil {
			prefix = waiting
		}
		object := change.Object()
		watch.AddAfter(q, 0, watch.List(ctx, r.Client, &v1alpha1.FindingList{},
			client.InNamespace(object.GetNamespace()), client.MatchingFields{referencesIndex: prefix + object.GetName()}))
	})
}
