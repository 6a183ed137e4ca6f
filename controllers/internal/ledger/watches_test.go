package ledger

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// owingFindings returns a client whose cache holds that many findings that owe a transition of the policy p.
func owingFindings(n int) client.Client {
	return handlertest.Lists(func(list *v1alpha1.FindingList) {
		for i := range n {
			f := builder.Finding(fmt.Sprint("f-", i)).In("org-a").Build()
			f.Status.Transitions = []v1alpha1.Transition{{Seq: 1, Type: v1alpha1.TransitionJudged,
				By: v1alpha1.PolicyAuthorPrefix + "p", At: v1alpha1.NewTime(time.Now())}}
			list.Items = append(list.Items, *f)
		}
	})
}

// Some endpoint changes, and tens of thousands of findings may owe it something.
func TestWhatManyObjectsOweIsMadeLast(t *testing.T) {
	created := event.CreateEvent{Object: builder.WebhookEndpoint("e").In("org-a").Build()}
	for n, want := range map[int]int{watch.Many: 0, watch.Many + 1: handler.LowPriority} {
		l := &Ledger{kind: Finding, store: store{client: owingFindings(n)}}
		for what, change := range map[string]func(watch.Queue){
			"endpoint": func(q watch.Queue) { l.Endpoints().Create(t.Context(), created, q) },
			"endpoint made again while the watch was down": func(q watch.Queue) {
				again := builder.WebhookEndpoint("e").In("org-a").Build()
				again.UID, again.ResourceVersion = "another", "2"
				l.Endpoints().Update(t.Context(), event.UpdateEvent{ObjectOld: created.Object, ObjectNew: again}, q)
			},
			"scan": func(q watch.Queue) {
				gone := builder.Scan("s", time.Now()).In("org-a").Build()
				l.ScansGone().Delete(t.Context(), event.DeleteEvent{Object: gone}, q)
			},
			"operation made again while the watch was down": func(q watch.Queue) {
				gone := builder.TriageOperation("o", "G1").In("org-a").Build()
				again := gone.DeepCopy()
				again.UID, again.ResourceVersion = "another", "2"
				l.OperationsGone().Update(t.Context(), event.UpdateEvent{ObjectOld: gone, ObjectNew: again}, q)
			},
		} {
			harness.Same(t, fmt.Sprintf("%s: priority of %d", what, n), want, handlertest.Priority(t, change))
		}
	}
}

// A tenant may change an endpoint again and again, and one goroutine serves the events of all organizations.
func TestWhatIsOwedIsListedOutsideTheEventsOfEndpoints(t *testing.T) {
	endpoint := func(generation int64, backlog metav1.ConditionStatus, reason string) *v1alpha1.WebhookEndpoint {
		e := builder.WebhookEndpoint("e").In("org-listed").Build()
		e.Generation = generation
		e.Status.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionBacklogged, Status: backlog, Reason: reason}}
		return e
	}
	held := endpoint(2, metav1.ConditionTrue, v1alpha1.ReasonDecisionsHeldBack)
	synctest.Test(t, func(t *testing.T) {
		goOn, served := make(chan struct{}), false
		var listed []string
		l := &Ledger{kind: Finding, store: store{client: interceptor.NewClient(nil, interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, options ...client.ListOption) error {
				listed = append(listed, (&client.ListOptions{}).ApplyOptions(options).FieldSelector.String())
				<-goOn
				return nil
			},
		})}}
		h := l.Endpoints()
		go h.Create(t.Context(), event.CreateEvent{Object: endpoint(1, metav1.ConditionFalse, "")}, nil)
		synctest.Wait()
		go func() {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: endpoint(1, metav1.ConditionFalse, ""), ObjectNew: held}, nil)
			h.Update(t.Context(), event.UpdateEvent{
				ObjectOld: held, ObjectNew: endpoint(2, metav1.ConditionTrue, v1alpha1.ReasonTooManyPending),
			}, nil)
			served = true
		}()
		synctest.Wait()
		harness.Same(t, "the events are served during the first list", true, served)
		close(goOn)
		synctest.Wait()
		harness.Same(t, "lists: a change of everything waits, and then one of decisions",
			"owes=anything owes=anything owes=decision", strings.Join(listed, " "))
	})
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
