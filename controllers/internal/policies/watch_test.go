package policies

import (
	"context"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/test/builder"
)

// The events of others go on while one organization's policies are evaluated; what changes meanwhile is looked at once.
func TestRejudgingKeepsNoOtherWaiting(t *testing.T) {
	began, goOn := make(chan string), make(chan struct{})
	var atWork atomic.Int32
	h := Rejudge(func(ctx context.Context, object client.Object, _ watch.Queue) {
		if atWork.Add(1); ctx.Err() != nil {
			t.Error("the work ends with the event")
		}
		began <- object.GetNamespace()
		<-goOn
		atWork.Add(-1)
	})
	changed := func(namespace string) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		h.Generic(ctx, event.GenericEvent{Object: builder.TriagePolicy("p", "true").In(namespace).Build()}, nil)
	}
	changed("org-a")
	first := <-began
	for range 3 {
		changed("org-a")
	}
	changed("org-b")
	if second := <-began; first != "org-a" || second != "org-b" || atWork.Load() != 2 {
		t.Fatalf("%s, then %s, and %d are at work", first, second, atWork.Load())
	}
	goOn <- struct{}{}
	goOn <- struct{}{}
	if again := <-began; again != "org-a" {
		t.Fatalf("%s was looked at again", again)
	}
	goOn <- struct{}{}
	// Whoever is looked at now had no work left over: else it would come before.
	changed("org-c")
	if next := <-began; next != "org-c" {
		t.Fatalf("%s was looked at a third time", next)
	}
	goOn <- struct{}{}
}
