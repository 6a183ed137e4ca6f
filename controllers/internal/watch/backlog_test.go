package watch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A review may have tens of thousands of issues, and its scanner may patch it again and again. One goroutine serves the
// events of a kind.
func TestAListOfManyDelaysNoOtherOrganizationAndServesAllChangesMeanwhile(t *testing.T) {
	goOn, listed := make(chan struct{}), map[string]*atomic.Int32{"org-a": {}, "org-b": {}}
	reader := interceptor.NewClient(nil, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			namespace := (&client.ListOptions{}).ApplyOptions(options).Namespace
			listed[namespace].Add(1)
			if namespace == "org-a" {
				<-goOn
			}
			into.(*v1alpha1.ReviewIssueList).Items = append(into.(*v1alpha1.ReviewIssueList).Items,
				v1alpha1.ReviewIssue{ObjectMeta: builder.Project("issue").In(namespace).Build().ObjectMeta})
			return nil
		},
	})
	h := watch.EnqueueIndexed(reader, &v1alpha1.ReviewIssueList{}, "review")
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	sent, got := make(chan struct{}), make(chan string, 2)
	go func() {
		defer close(sent)
		review, other := builder.Project("shop-1").In("org-a").Build(), builder.Project("shop-1").In("org-b").Build()
		for range 100 {
			ctx, end := context.WithCancel(t.Context())
			h.Update(ctx, event.UpdateEvent{ObjectOld: review, ObjectNew: review}, q)
			end() // as that of an informer
		}
		h.Create(t.Context(), event.CreateEvent{Object: other}, q)
	}()
	go func() {
		for range 2 {
			request, _ := q.Get()
			got <- request.Namespace
		}
	}()
	select {
	case first := <-got:
		harness.Same(t, "first enqueued", "org-b", first)
	case <-time.After(20 * time.Second):
		t.Error("org-b waits for the list of org-a")
	}
	close(goOn)
	<-sent
	<-got
	barrier := make(chan struct{})
	watch.Later(func(context.Context, watch.Change, watch.Queue) { close(barrier) })(
		t.Context(), watch.Change{After: builder.Project("last").In("org-a").Build()}, q)
	<-barrier
	if n := listed["org-a"].Load(); n > 2 {
		t.Errorf("100 changes of one object caused %d lists", n)
	}
}

// The process goes on, and so does the organization's work.
func TestAPanicEndsOneList(t *testing.T) {
	began := make(chan string)
	enqueue := func(_ context.Context, change watch.Change, _ watch.Queue) {
		began <- change.Object().GetName()
		panic("no such index")
	}
	later, gathered := watch.Later(enqueue), watch.Gathered(0, enqueue)
	for _, name := range []string{"p", "q"} {
		change := watch.Change{After: builder.Project(name).In("org-a").Build()}
		later(t.Context(), change, nil)
		harness.Same(t, "listed", name, <-began)
		gathered(t.Context(), change, nil)
		harness.Same(t, "listed after changes were gathered", name, <-began)
	}
}
