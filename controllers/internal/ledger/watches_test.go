package ledger

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// owingFindings returns a client whose cache holds that many findings that owe a transition of the policy p.
func owingFindings(n int) client.Client {
	return interceptor.NewClient(nil, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, _ ...client.ListOption) error {
			list := into.(*v1alpha1.FindingList)
			for i := range n {
				f := builder.Finding(fmt.Sprint("f-", i)).In("org-a").Build()
				f.Status.Transitions = []v1alpha1.Transition{{Seq: 1, Type: v1alpha1.TransitionJudged,
					By: v1alpha1.PolicyAuthorPrefix + "p", At: v1alpha1.NewTime(time.Now())}}
				list.Items = append(list.Items, *f)
			}
			return nil
		},
	})
}

// Some endpoint changes, and tens of thousands of findings may owe it something.
func TestWhatManyObjectsOweIsMadeLast(t *testing.T) {
	created := event.CreateEvent{Object: builder.WebhookEndpoint("e").In("org-a").Build()}
	for n, want := range map[int]int{watch.Many: 0, watch.Many + 1: handler.LowPriority} {
		l := &Ledger{kind: Finding, store: store{client: owingFindings(n)}}
		for what, change := range map[string]func(watch.Queue){
			"endpoint": func(q watch.Queue) { l.Endpoints().Create(t.Context(), created, q) },
			"scan": func(q watch.Queue) {
				gone := builder.Scan("s", time.Now()).In("org-a").Build()
				l.ScansGone().Delete(t.Context(), event.DeleteEvent{Object: gone}, q)
			},
		} {
			q := priorityqueue.New[reconcile.Request]("owing")
			change(q)
			_, got, _ := q.GetWithPriority()
			harness.Same(t, fmt.Sprintf("%s: priority of %d", what, n), want, got)
			q.ShutDown()
		}
	}
}

// Many findings owe of few causes.
func TestACauseOfManyIsOne(t *testing.T) {
	p := &Pager{kind: policyKind, store: store{client: owingFindings(watch.Many + 1)}}
	q := priorityqueue.New[reconcile.Request]("causes")
	defer q.ShutDown()
	p.Endpoints().Create(t.Context(), event.CreateEvent{Object: builder.WebhookEndpoint("e").In("org-a").Build()}, q)
	request, priority, _ := q.GetWithPriority()
	if request.Name != "p" || priority != 0 {
		t.Errorf("%s with priority %d", request, priority)
	}
}
