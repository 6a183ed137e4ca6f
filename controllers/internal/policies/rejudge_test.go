package policies

import (
	"context"
	"fmt"
	"slices"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// changes sends the handler an event for each of the namespace's projects, with a context that ends
// right after.
func changes(t *testing.T, h handler.EventHandler, namespace string, names ...string) {
	t.Helper()
	for _, name := range names {
		ctx, end := context.WithCancel(t.Context())
		h.Generic(ctx, event.GenericEvent{Object: builder.Project(name).In(namespace).Build()}, nil)
		end()
	}
}

// Other organizations' events are handled while one organization's policies are evaluated; its changes meanwhile are
// handled once, after the current ones.
func TestRejudgingKeepsNoOtherWaiting(t *testing.T) {
	for _, c := range []struct {
		of   watch.Subject
		want []string
	}{
		{EachObject, []string{"org-a/p", "org-a/q", "org-a/p"}},
		{WholeNamespace, []string{"org-a/p", "org-a/p"}},
	} {
		began, goOn := make(chan string), make(chan struct{})
		h := Rejudge(t.Context(), c.of, func(_ context.Context, object client.Object) ([]ctrl.Request, error) {
			began <- object.GetNamespace() + "/" + object.GetName()
			<-goOn
			return nil, nil
		})
		changes(t, h, "org-a", "p")
		got := []string{<-began}
		changes(t, h, "org-a", "q", "p", "p")
		changes(t, h, "org-b", "p")
		if other := <-began; other != "org-b/p" {
			t.Fatalf("while org-a is judged, %s is", other)
		}
		goOn <- struct{}{}
		for goOn <- struct{}{}; len(got) < len(c.want); goOn <- struct{}{} {
			got = append(got, <-began)
		}
		harness.Same(t, "judged", c.want, got)
		// If anything were left over, it would come first.
		changes(t, h, "org-a", "r")
		harness.Same(t, "judged next", "org-a/r", <-began)
		goOn <- struct{}{}
	}
}

// All handlers together take one place for an organization: the others are for other organizations.
func TestAnOrganizationTakesOnePlace(t *testing.T) {
	began, goOn := make(chan string), make(chan struct{})
	var last handler.EventHandler
	for range 8 {
		last = Rejudge(t.Context(), WholeNamespace, func(_ context.Context, object client.Object) ([]ctrl.Request, error) {
			began <- object.GetNamespace()
			<-goOn
			return nil, nil
		})
		changes(t, last, "org-0", "p")
	}
	want := []string{"org-0"}
	for i := range 7 {
		other := fmt.Sprintf("org-%d", i+1)
		changes(t, last, other, "p")
		want = append(want, other)
	}
	var got []string
	for range want {
		got = append(got, <-began)
	}
	slices.Sort(got)
	harness.Same(t, "judged", want, got)
	close(goOn)
	for range 7 {
		<-began
	}
}

// A decision in a pull request does not wait for an evaluation of its organization's policies.
func TestFewDoNotWaitForEvaluations(t *testing.T) {
	began, goOn := make(chan string), make(chan struct{})
	long := Rejudge(t.Context(), WholeNamespace, func(context.Context, client.Object) ([]ctrl.Request, error) {
		began <- "evaluation"
		<-goOn
		return nil, nil
	})
	short := RejudgeFew(t.Context(), EachObject, func(context.Context, client.Object) ([]ctrl.Request, error) {
		began <- "decision"
		return nil, nil
	})
	changes(t, long, "org-a", "p")
	harness.Same(t, "first", "evaluation", <-began)
	changes(t, short, "org-a", "issue")
	harness.Same(t, "meanwhile", "decision", <-began)
	close(goOn)
}

// Imports go ahead of what a policy decides about many findings; a decision in a pull request keeps
// its place.
func TestManyAreRejudgedLast(t *testing.T) {
	for n, want := range map[int]int{watch.Many: 0, watch.Many + 1: handler.LowPriority} {
		h := Rejudge(t.Context(), WholeNamespace, func(context.Context, client.Object) ([]ctrl.Request, error) {
			requests := make([]ctrl.Request, n)
			for i := range requests {
				requests[i].Name = fmt.Sprint(i)
			}
			return requests, nil
		})
		changed := event.GenericEvent{Object: builder.Project("p").In("org-a").Build()}
		got := handlertest.Priority(t, func(q watch.Queue) { h.Generic(t.Context(), changed, q) })
		harness.Same(t, fmt.Sprintf("priority of %d", n), want, got)
	}
}

// The process goes on, and so does the organization's work.
func TestAPanicEndsOneEvaluation(t *testing.T) {
	began := make(chan string)
	h := Rejudge(t.Context(), EachObject, func(_ context.Context, object client.Object) ([]ctrl.Request, error) {
		began <- object.GetName()
		panic("no such policy")
	})
	changes(t, h, "org-a", "p", "q")
	harness.Same(t, "judged", []string{"p", "q"}, []string{<-began, <-began})
}

// The process handles a bounded number of organizations at a time, and none after its context ends.
func TestRejudgingIsBoundedAndEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	began, goOn := make(chan bool, 100), make(chan struct{})
	h := Rejudge(ctx, WholeNamespace, func(ctx context.Context, _ client.Object) ([]ctrl.Request, error) {
		began <- true
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return nil, nil
	})
	for i := range 20 {
		changes(t, h, fmt.Sprintf("org-%d", i), "p")
	}
	for range 8 {
		<-began
	}
	if rejudging.TryAcquire(1) {
		t.Fatal("more than 8 are judged at a time")
	}
	goOn <- struct{}{}
	<-began // the next one starts
	end()
	if err := rejudging.Acquire(t.Context(), 8); err != nil {
		t.Fatal("those that were being judged when the process ended go on: ", err)
	}
	rejudging.Release(8)
	if n := len(began); n > 0 {
		t.Errorf("%d more were judged", n)
	}
}
