package finding

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Each step happens between the time when a finding is judged and the time when its verdict is in the cache.
func TestAFindingIsJudgedAgainUnlessItsVerdictIsSureToStand(t *testing.T) {
	before, after, ended := builder.Finding("f").Build(), builder.Finding("f").Build(), builder.Finding("f").Build()
	after.Status.Verdict = &v1alpha1.FindingVerdict{Policy: "p", UserStatus: v1alpha1.PolicyStatus(v1alpha1.UserStatusMuted)}
	end := v1alpha1.NewTime(time.Unix(0, 0))
	ended.Status.EndedAt = &end
	name := client.ObjectKeyFromObject(before)
	other := client.ObjectKeyFromObject(builder.Finding("other").Build())
	cases := map[string]struct {
		happens func(j *judgements)
		want    bool
	}{
		"nothing has changed": {func(j *judgements) { j.end(name, j.begin()) }, false},
		"policies change after it was judged": {func(j *judgements) {
			j.end(name, j.begin())
			j.changed(name.Namespace)
		}, true},
		"policies change while it is judged": {func(j *judgements) {
			began := j.begin()
			j.changed(name.Namespace)
			j.end(name, began)
		}, true},
		"policies of another organization change": {func(j *judgements) {
			began := j.begin()
			j.changed("org-other")
			j.end(name, began)
			j.changed("org-other")
		}, false},
		"policies change while it is judged, and then those of many organizations": {func(j *judgements) {
			began := j.begin()
			j.changed(name.Namespace)
			j.end(name, began)
			for i := range maxNamespaces {
				j.changed(fmt.Sprintf("org-%d", i))
			}
		}, true},
		"policies have changed before": {func(j *judgements) {
			j.changed(name.Namespace)
			j.end(name, j.begin())
		}, false},
		"it is judged again, by the policies of now": {func(j *judgements) {
			j.end(name, j.begin())
			j.changed(name.Namespace)
			j.end(name, j.begin())
		}, false},
		"another process judged it": {func(*judgements) {}, true},
		"another was judged":        {func(j *judgements) { j.end(other, j.begin()) }, true},
		"its verdict has arrived already": {func(j *judgements) {
			j.end(name, j.begin())
			j.isCurrent(name)
		}, true},
		"it has gone, and come again": {func(j *judgements) {
			j.end(name, j.begin())
			j.forget(name)
		}, true},
	}
	for reason, c := range cases {
		for change, now := range map[string]*v1alpha1.Finding{"a verdict": after, "an ended decision": ended} {
			r := &Reconciler{}
			c.happens(&r.judgements)
			got := r.worthReconciling().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: now})
			harness.Same(t, change+", "+reason+": it is reconciled", c.want, got)
		}
	}
}

// A finding whose project is created or deleted while it is judged is judged again: the policies saw other facts.
func TestAFindingIsJudgedAgainWhenItsProjectComesOrGoes(t *testing.T) {
	namespace := env.Namespace(t)
	before, after := builder.Finding("f").In(namespace).Build(), builder.Finding("f").In(namespace).Build()
	after.Status.Verdict = &v1alpha1.FindingVerdict{Policy: "p", UserStatus: v1alpha1.PolicyStatus(v1alpha1.UserStatusMuted)}
	project := builder.Project("proj").In(namespace).Build()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	r := &Reconciler{}
	r.Client = env.Client // no findings in there
	projects := r.enqueueFindings(waitsForProject, refersToProject)
	for change, happens := range map[string]func(){
		"created": func() { projects.Create(t.Context(), event.CreateEvent{Object: project}, q) },
		"deleted": func() { projects.Delete(t.Context(), event.DeleteEvent{Object: project}, q) },
	} {
		r.judgements.end(client.ObjectKeyFromObject(after), r.judgements.begin())
		happens()
		if !r.worthReconciling().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
			t.Errorf("the project was %s meanwhile, and the verdict stands", change)
		}
	}
}
