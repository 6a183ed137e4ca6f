package finding

import (
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
)

// Each step happens between the time when a finding is judged and the time when its verdict is in the cache.
func TestAVerdictIsLookedAtAgainUnlessItIsSureToStand(t *testing.T) {
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
			j.changed()
		}, true},
		"policies change while it is judged": {func(j *judgements) {
			began := j.begin()
			j.changed()
			j.end(name, began)
		}, true},
		"policies have changed before": {func(j *judgements) {
			j.changed()
			j.end(name, j.begin())
		}, false},
		"it is judged again, by the policies of now": {func(j *judgements) {
			j.end(name, j.begin())
			j.changed()
			j.end(name, j.begin())
		}, false},
		"another process judged it": {func(*judgements) {}, true},
		"another was judged":        {func(j *judgements) { j.end(other, j.begin()) }, true},
		"its verdict has arrived already": {func(j *judgements) {
			j.end(name, j.begin())
			j.stands(name)
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
			if got != c.want {
				t.Errorf("%s, %s: it is reconciled: %t", change, reason, got)
			}
		}
	}
}

// A finding whose project is created or deleted while it is judged is judged again: the policies saw other facts.
func TestAVerdictIsLookedAtAgainWhereItsProjectComesOrGoes(t *testing.T) {
	before, after := builder.Finding("f").Build(), builder.Finding("f").Build()
	after.Status.Verdict = &v1alpha1.FindingVerdict{Policy: "p", UserStatus: v1alpha1.PolicyStatus(v1alpha1.UserStatusMuted)}
	project := builder.Project("proj").In(env.Namespace(t)).Build()
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
