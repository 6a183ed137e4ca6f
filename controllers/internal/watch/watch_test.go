package watch_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func scan(namespace, project string) *v1alpha1.Scan {
	return &v1alpha1.Scan{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"},
		Spec:       v1alpha1.ScanSpec{ProjectRef: v1alpha1.ProjectReference{Name: v1alpha1.ResourceName(project)}},
	}
}

func request(namespace, name string) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

func TestTargets(t *testing.T) {
	toProject := watch.Reference(func(s *v1alpha1.Scan) v1alpha1.ResourceName { return s.Spec.ProjectRef.Name })
	for _, c := range []struct {
		reason    string
		got, want []ctrl.Request
	}{
		{"what an object names is in its own namespace", toProject(scan("org-a", "p")), request("org-a", "p")},
		{"an organization has its namespace's name without the prefix", watch.Organization(scan("org-a", "p")), request("", "a")},
		{"any other namespace belongs to none", watch.Organization(scan("kube-system", "p")), nil},
		{"the prefix alone names none", watch.OrganizationOf(v1alpha1.NamespacePrefix), nil},
	} {
		harness.Same(t, c.reason, c.want, c.got)
	}
}

func TestChangesHoldWhatWasAndWhatIs(t *testing.T) {
	before, after := scan("org-a", "before"), scan("org-a", "after")
	var got []watch.Change
	h := watch.Changes(func(_ context.Context, change watch.Change, _ watch.Queue) { got = append(got, change) })
	h.Create(t.Context(), event.CreateEvent{Object: after, IsInInitialList: true}, nil)
	handlertest.Send(h, nil, before, after)
	handlertest.Send(h, nil, before, nil)
	want := []watch.Change{{After: after, Initial: true}, {Before: before, After: after}, {Before: before}}
	harness.Same(t, "changes", want, got)
	for i, newest := range []*v1alpha1.Scan{after, after, before} {
		if got[i].Object() != newest {
			t.Errorf("change %d: the newest is %v", i, got[i].Object())
		}
	}
}

func TestOnlyDeletionsAreGathered(t *testing.T) {
	to := func(object client.Object) []ctrl.Request { return request("", object.GetName()) }
	h, q, s := watch.EnqueueDeletedLater(to), &handlertest.Queue{}, scan("org-a", "p")
	handlertest.Send(h, q, nil, s)
	handlertest.Send(h, q, s, s)
	handlertest.Send(h, q, s, nil)
	harness.Same(t, "added", []string{"s in 0s", "s in 0s", "s in 1s"}, q.Added)
}

// Other organizations do not wait for what a change of one concerns.
func TestManyObjectsOfOneChangeGoLast(t *testing.T) {
	for n, want := range map[int]int{1: 0, watch.Many: 0, watch.Many + 1: handler.LowPriority} {
		var requests []ctrl.Request
		for i := range n {
			requests = append(requests, request("org-a", fmt.Sprint(i))...)
		}
		got := handlertest.Priority(t, func(q watch.Queue) { watch.AddChanged(q, requests) })
		harness.Same(t, fmt.Sprintf("priority of %d", n), want, got)
	}
}

func TestUpdatesOfAnotherKindPassNoPredicate(t *testing.T) {
	always := watch.Updates(func(_, _ *v1alpha1.Scan) bool { return true })
	if !always.Update(event.UpdateEvent{ObjectOld: scan("a", "p"), ObjectNew: scan("a", "p")}) {
		t.Error("an update that matters does not pass")
	}
	if always.Update(event.UpdateEvent{ObjectOld: &v1alpha1.Project{}, ObjectNew: &v1alpha1.Project{}}) {
		t.Error("an update of another kind passes")
	}
	if !watch.NewSinceStart.Create(event.CreateEvent{}) || watch.NewSinceStart.Create(event.CreateEvent{IsInInitialList: true}) {
		t.Error("what existed at the start is not told from what is new")
	}
}

// Otherwise the new object would get no status until something changes it.
func TestAnObjectThatWasCreatedAgainUnseenPasses(t *testing.T) {
	before, after := scan("org-a", "p"), scan("org-a", "p")
	before.Generation, before.UID = 1, "first"
	after.Generation, after.UID = 1, "second"
	written := before.DeepCopy()
	written.Status.Phase = v1alpha1.ScanPhaseRunning
	for name, p := range map[string]predicate.Predicate{
		"SpecChanged": watch.SpecChanged, "SpecOr": watch.SpecOr(func(_, _ *v1alpha1.Scan) bool { return false }),
		"CreatedOrDeleted": watch.CreatedOrDeleted,
	} {
		if !p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
			t.Errorf("%s passes over an object with another UID", name)
		}
		if p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: written}) {
			t.Errorf("%s passes a status write", name)
		}
	}
}
