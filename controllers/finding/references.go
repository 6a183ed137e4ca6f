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

// referencesIndex is the cache index of findings by the objects they refer to and those they wait
// for.
const referencesIndex = "references"

// Prefixes of the index values, followed by a resource's name or the key of a result.
const (
	refersToRepository = "repository/"
	refersToProject    = "project/"
	waitsForRepository = "waits-for-repository/"
	waitsForProject    = "waits-for-project/"
	isResult           = "result/"
	wasResult          = "earlier-result/" // of a closed finding, by the keys under its earlier path
)

func referencesOf(finding *v1alpha1.Finding) []string {
	repository, project := string(finding.Spec.RepositoryRef.Name), string(finding.Spec.ProjectRef.Name)
	values := []string{refersToRepository + repository, refersToProject + project}
	for _, key := range keysOfFinding(finding) {
		values = append(values, isResult+key)
	}
	if finding.Spec.Closed != nil {
		for _, key := range fingerprints.KeysOfEarlierPath(&finding.Spec) {
			values = append(values, wasResult+key)
		}
	}
	switch conditions.ReadyReason(finding.Status.Conditions) {
	case v1alpha1.ReasonRepositoryNotFound:
		values = append(values, waitsForRepository+repository)
	case v1alpha1.ReasonProjectNotFound:
		values = append(values, waitsForProject+project)
	}
	return values
}

// worthReconciling ignores our own status writes, with two exceptions: a finding that begins to wait, since the awaited
// object may have been created before the index listed the finding; and a new verdict or the end of a decision, unless
// the verdict is certainly still current.
func (r *Reconciler) worthReconciling() predicate.Predicate {
	return watch.SpecOr(func(before, after *v1alpha1.Finding) bool {
		return verdictChanged(&before.Status, &after.Status) && !r.judgements.isCurrent(client.ObjectKeyFromObject(after)) ||
			watch.BeginsToWait(before.Status.Conditions, after.Status.Conditions,
				v1alpha1.ReasonRepositoryNotFound, v1alpha1.ReasonProjectNotFound)
	})
}

// verdictChanged reports whether the verdict differs or a decision has ended.
func verdictChanged(before, after *v1alpha1.FindingStatus) bool {
	return !findingstate.SameVerdict(before.Verdict, after.Verdict) || !before.EndedAt.Equal(after.EndedAt)
}

// createdDeletedOrMoved ignores updates of a project that stays in its repository. The reference is immutable, so a
// different one means that the project was deleted and recreated while the watch was interrupted, which arrives as an
// update.
var createdDeletedOrMoved = watch.Updates(func(before, after *v1alpha1.Project) bool {
	return before.Spec.RepositoryRef != after.Spec.RepositoryRef
})

// enqueueFindings enqueues the findings that wait for a created object, and those that refer to a changed or deleted
// one. A creation does not enqueue findings that refer to the object without waiting for it: at startup every
// repository is reported as created, and may have 100,000 findings.
func (r *Reconciler) enqueueFindings(waiting, referring string) handler.EventHandler {
	return watch.Changes(func(ctx context.Context, change watch.Change, q watch.Queue) {
		object := change.Object()
		r.judgements.changed(object.GetNamespace()) // policies read the referenced objects
		prefix := referring
		if change.Before == nil {
			prefix = waiting
		}
		watch.AddChanged(q, watch.List(ctx, r.Client, &v1alpha1.FindingList{},
			client.InNamespace(object.GetNamespace()), client.MatchingFields{referencesIndex: prefix + object.GetName()}))
	})
}
