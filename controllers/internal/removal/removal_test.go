package removal

// The tests of Batch that need an API server are in reconcile/removal_test.go.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// parent is a Project that is being deleted, and has a finding.
type parent struct {
	// live is what the API server returns for it, with the error.
	live  metav1.ObjectMeta
	fails error
	// removed is the limit of the call that removes its findings, 0 without one. writes are its own.
	removed int64
	writes  []string
}

func (p *parent) client(cached *v1alpha1.Project) client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(testenv.NewScheme()).Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			if project, is := into.(*v1alpha1.Project); is {
				cached.DeepCopyInto(project)
				return nil
			}
			into.(*metav1.PartialObjectMetadata).ObjectMeta = p.live
			return p.fails
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			list.(*metav1.PartialObjectMetadataList).Items = make([]metav1.PartialObjectMetadata, 1)
			return nil
		},
		DeleteAllOf: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteAllOfOption) error {
			p.removed = (&client.DeleteAllOfOptions{}).ApplyOptions(options).Limit
			return nil
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			p.writes = append(p.writes, "finalizers")
			return nil
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, resource string, _ client.Object, _ client.Patch,
			_ ...client.SubResourcePatchOption) error {
			p.writes = append(p.writes, resource)
			return nil
		},
	})
}

func TestAnObjectsChildrenAreRemovedInBatches(t *testing.T) {
	type scope = reconcile.Scope[*v1alpha1.Project, *v1alpha1.ProjectStatus]
	cached := builder.Project("proj").Build()
	cached.Finalizers = []string{v1alpha1.CleanupFinalizer}
	cached.UID, cached.DeletionTimestamp = "u-1", new(metav1.Now())
	deleted := cached.ObjectMeta
	other := deleted
	other.UID = "u-2"
	gone, outage := apierrors.NewNotFound(schema.GroupResource{}, "proj"), errors.New("connection refused")
	refusal := apierrors.NewForbidden(schema.GroupResource{}, "proj", nil)
	status, none := []string{"status"}, []string(nil)
	for _, c := range []struct {
		reason  string
		live    metav1.ObjectMeta
		fails   error
		removed int64
		writes  []string
		again   time.Duration
		want    error
	}{
		{"it is being deleted", deleted, nil, batch, status, soon, nil},
		{"the cache is behind: another object of its name is", other, nil, 0, none, later, nil},
		{"the API server's object is not being deleted", metav1.ObjectMeta{UID: "u-1"}, nil, 0, none, later, nil},
		{"the cache is behind: it is gone", metav1.ObjectMeta{}, gone, 0, none, later, nil},
		{"reading it is refused", metav1.ObjectMeta{}, refusal, 0, none, reconcile.RefusedRetry, nil},
		{"it cannot be read", metav1.ObjectMeta{}, outage, 0, none, 0, outage},
	} {
		p := parent{live: c.live, fails: c.fails}
		stub := p.client(cached)
		base := reconcile.Base{Client: stub, Live: stub, Clock: clock.RealClock{}, Recorder: &events.FakeRecorder{}}
		findings := []Child{{Kind: &v1alpha1.Finding{}, Name: "findings"}}
		plan := Plan{Parent: "project", Field: "spec.projectRef.name", Children: findings}
		result, err := reconcile.Loop[*scope]{
			Base: base, New: func() *scope { return reconcile.NewScope(&v1alpha1.Project{}) },
			Removal: []reconcile.Phase[*scope]{func(ctx context.Context, s *scope) error {
				s.Status.ObservedGeneration++ // as phases before it would
				return Children(ctx, base, s, plan, func() string { return "" })
			}},
		}.Run(t.Context(), ctrl.Request{})
		harness.Same(t, c.reason+": the limit of the call", c.removed, p.removed)
		harness.Same(t, c.reason+": the writes", c.writes, p.writes)
		harness.Same(t, c.reason+": the next reconcile", c.again, result.RequeueAfter)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: it ends with error %v, want %v", c.reason, err, c.want)
		}
	}
}

// Otherwise nobody would learn that the API server refuses removals.
func TestARefusalIsReportedWhateverElseHappens(t *testing.T) {
	going := metav1.ObjectMeta{Name: "f-2", DeletionTimestamp: new(metav1.Now())}
	cases := map[string]struct {
		others []metav1.ObjectMeta // They come after a child whose removal is refused.
		pages  int
		// The time ends with this list or removal; 0 is none.
		atList, atRemoval int
	}{
		"another child waits for a finalizer": {others: []metav1.ObjectMeta{going}, pages: 1},
		"the time ends at a removal":          {others: []metav1.ObjectMeta{going, {Name: "f-3"}}, pages: 1, atRemoval: 2},
		"the time ends at the next page":      {pages: 2, atList: 2},
	}
	for reason, tc := range cases {
		ctx, cancel := context.WithCancel(t.Context())
		end := func() error { cancel(); return ctx.Err() }
		lists, removals := 0, 0
		stub := interceptor.NewClient(nil, interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
				if lists++; lists == tc.atList {
					return end()
				}
				page := list.(*metav1.PartialObjectMetadataList)
				page.Items, page.Continue = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "f-1"}}}, ""
				for _, other := range tc.others {
					page.Items = append(page.Items, metav1.PartialObjectMetadata{ObjectMeta: other})
				}
				if lists < tc.pages {
					page.Continue = "more"
				}
				return nil
			},
			DeleteAllOf: func(context.Context, client.WithWatch, client.Object, ...client.DeleteAllOfOption) error {
				if removals++; removals == tc.atRemoval {
					return end()
				}
				return apierrors.NewForbidden(schema.GroupResource{}, "f-1", nil)
			},
		})
		again, err := oneByOne(ctx, reconcile.Base{Client: stub, Live: stub}, &v1alpha1.Finding{},
			&metav1.PartialObjectMetadataList{}, client.ListOptions{FieldSelector: fields.Everything()})
		if again != 0 || !kube.IsRefusal(err) {
			t.Errorf("%s: again in %v after %v, want the refusal alone", reason, again, err)
		}
		cancel()
	}
}

// A webhook that is down may hold a deletion for days.
func TestWhatHoldsADeletionIsReported(t *testing.T) {
	for reason, tc := range map[string]struct {
		err  error
		want string
	}{
		"nothing":   {nil, "its findings are being removed."},
		"a refusal": {apierrors.NewForbidden(schema.GroupResource{}, "f-1", errors.New("a legal hold")), "refuses to remove some of its findings"},
		"a failure": {fmt.Errorf("remove it: %w", apierrors.NewInternalError(errors.New("a webhook"))), "occurred: a webhook"},
		"no answer": {errors.New("connection refused"), "its findings are being removed."},
	} {
		harness.Contains(t, reason+": the message", deleting("project", "findings", tc.err).Message, tc.want)
	}
}
