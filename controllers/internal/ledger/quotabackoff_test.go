package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// full is a ledger and a pager of scans in front of an API server whose quota for the namespace "full" has no room.
type full struct {
	*Ledger
	pager *Pager
	clock *clocktesting.FakeClock
	// asked counts the requests to the API server by namespace.
	asked map[string]int
	// lists counts the requests for the names of pages.
	lists int
	// hasRoom makes the API server accept deliveries.
	hasRoom bool
	// took is how long each answer takes.
	took time.Duration
}

func newFull(t *testing.T) *full {
	t.Helper()
	f := &full{pager: &Pager{kind: scanKind}, clock: clocktesting.NewFakeClock(time.Now()), asked: map[string]int{}}
	pages := func(client.Object) []string { return nil } // nothing is in a page
	c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(builder.WebhookEndpoint("all").In("full").Build(),
		builder.WebhookEndpoint("all").In("other").Build()).
		WithIndex(&v1alpha1.Finding{}, f.pager.owing(), func(object client.Object) []string {
			return f.pager.indexed(object.(*v1alpha1.Finding))
		}).
		WithIndex(&v1alpha1.WebhookDelivery{}, covers, pages).
		WithIndex(&v1alpha1.WebhookDelivery{}, "spec.event.type", pages).
		WithIndex(&v1alpha1.WebhookDelivery{}, "spec.event.subject.name", pages).
		WithIndex(&v1alpha1.WebhookDelivery{}, "spec.endpointRef.name", pages).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			f.asked[object.GetNamespace()]++
			f.clock.Step(f.took)
			if object.GetNamespace() == "full" && !f.hasRoom {
				return apierrors.NewForbidden(schema.GroupResource{}, object.GetName(), errors.New("exceeded quota: q"))
			}
			return c.Create(ctx, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, are := list.(*metav1.PartialObjectMetadataList); are {
				f.lists++
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	f.Ledger = &Ledger{kind: Scan, store: store{client: c, live: c, quotas: newQuotaBackoff(f.clock)}}
	f.pager.store = f.store
	return f
}

// owing returns a new scan that owes the delivery of its end.
func (f *full) owing(namespace, name string) *v1alpha1.Scan {
	scan := builder.Scan(name, f.clock.Now()).In(namespace).Build()
	scan.UID = types.UID(namespace + name)
	scan.Status.Transitions = []v1alpha1.Transition{{Seq: 1, Type: v1alpha1.TransitionCompleted, At: v1alpha1.NewTime(f.clock.Now())}}
	return scan
}

// settle settles a new scan that owes the delivery of its end, and returns how far it got.
func (f *full) settle(t *testing.T, namespace, name string) (emitted int64, err error) {
	t.Helper()
	scan := f.owing(namespace, name)
	_, err = f.StoreAndEmit(t.Context(), scan, func(context.Context) (bool, error) { return true, nil })
	return scan.Status.EmittedSeq, err
}

func TestAFullQuotaIsAskedOnceInAWhile(t *testing.T) {
	f := newFull(t)
	var last time.Duration
	for i := range 1000 {
		emitted, err := f.settle(t, "full", fmt.Sprint("s-", i))
		var noRoom *FullError
		if !errors.As(err, &noRoom) || !apierrors.IsForbidden(err) || emitted != 0 {
			t.Fatalf("got %d, %v, want what is owed to wait", emitted, err)
		}
		if noRoom.After < minFull || noRoom.After <= last {
			t.Fatalf("comes back after %s, with the one before it after %s", noRoom.After, last)
		}
		last = noRoom.After
	}
	if emitted, err := f.settle(t, "other", "s-1"); emitted != 1 || err != nil {
		t.Errorf("in a namespace with room: %d, %v", emitted, err)
	}
	harness.Same(t, "deliveries tried", map[string]int{"full": 1, "other": 1}, f.asked)

	f.clock.Step(minFull)
	for range 10 {
		_, err := f.settle(t, "full", "s-1")
		if err == nil {
			t.Fatal("what is refused counts as made")
		}
	}
	harness.Same(t, "deliveries tried after the pause", 2, f.asked["full"])
}

// An error would count against the controller for as long as the quota is full.
func TestPagesWaitForRoomWithoutAnError(t *testing.T) {
	f := newFull(t)
	f.hasRoom = true
	finding := builder.Finding("f").In("full").Mutate(func(o *v1alpha1.Finding) { o.UID = "f" }).Build()
	finding.Status.Transitions = []v1alpha1.Transition{
		{Seq: 1, Type: v1alpha1.TransitionCreated, Scan: "s-1", At: v1alpha1.NewTime(f.clock.Now())},
	}
	for _, object := range []client.Object{builder.WebhookEndpoint("paged").In("full").Batched().Build(), finding} {
		harness.Must(t, f.client.Create(t.Context(), object))
	}
	f.hasRoom, f.asked = false, map[string]int{}
	cause := webhooks.CauseOfScan(builder.Scan("s-1", f.clock.Now()).In("full").Build())
	makes := func(n int) (again time.Duration) {
		for range n {
			var err error
			again, err = f.pager.Make(t.Context(), "full", cause, nil, f.clock.Now())
			harness.Must(t, err)
		}
		return again
	}
	if again := makes(10); again < minFull {
		t.Errorf("it comes back after %s", again)
	}
	harness.Same(t, "pages tried", 1, f.asked["full"])
	harness.Same(t, "times that pages were listed", 1, f.lists)
	f.clock.Step(minFull)
	makes(10)
	harness.Same(t, "pages tried after the pause", 2, f.asked["full"])

	f.clock.Step(maxFull)
	f.hasRoom = true
	harness.Same(t, "when it comes back after there is room", time.Duration(0), makes(1))
	harness.Same(t, "pages tried once there is room", 3, f.asked["full"])
}

func TestARefusalThatTookLongerThanThePauseIsTriedAgain(t *testing.T) {
	f := newFull(t)
	f.took = 5 * minFull
	for range 3 {
		_, err := f.settle(t, "full", "s-1")
		var noRoom *FullError
		if !errors.As(err, &noRoom) || noRoom.After <= 0 {
			t.Fatalf("%v: never tried again", err)
		}
		f.clock.Step(noRoom.After)
	}
}

func TestTheLastDeliveriesOfAnObjectAreTriedWhileOthersWait(t *testing.T) {
	f := newFull(t)
	_, _ = f.settle(t, "full", "s-1")
	f.hasRoom = true
	scan := f.owing("full", "s-2")
	harness.Must(t, f.client.Create(t.Context(), scan))
	harness.Must(t, f.EmitLast(t.Context(), scan, func(context.Context) (bool, error) { return true, nil }))
	harness.Same(t, "emitted up to", int64(1), scan.Status.EmittedSeq)
}

func TestWhatWaitsForRoomIsMadeOnceThereIsSome(t *testing.T) {
	f := newFull(t)
	for range 100 {
		_, _ = f.settle(t, "full", "s-1")
		f.clock.Step(maxFull / 2)
	}
	f.hasRoom = true
	f.clock.Step(maxFull)
	for _, scan := range []string{"s-1", "s-2"} {
		if emitted, err := f.settle(t, "full", scan); emitted != 1 || err != nil {
			t.Errorf("%s: %d, %v", scan, emitted, err)
		}
	}
}

func TestANamespaceWhereNothingWaitsIsForgotten(t *testing.T) {
	f := newFull(t)
	_, _ = f.settle(t, "full", "s-1")
	f.clock.Step(3 * maxFull)
	_ = f.quotas.refused(t.Context(), "fuller", errors.New("exceeded quota"))
	if _, known := f.quotas.namespaces["full"]; known || len(f.quotas.namespaces) != 1 {
		t.Errorf("known: %v", f.quotas.namespaces)
	}
	before := f.quotas.namespaces["fuller"]
	f.clock.Step(3 * maxFull)
	_ = f.quotas.refused(t.Context(), "fuller", errors.New("exceeded quota"))
	if f.quotas.namespaces["fuller"] == before {
		t.Error("a quota that is full again later is taken for the same time, and not logged")
	}
}
