package removal

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAnObjectsChildrenAreRemovedInBatches(t *testing.T) {
	deleted := metav1.ObjectMeta{UID: "u-1", DeletionTimestamp: new(metav1.Now())}
	other := deleted
	other.UID = "u-2"
	for _, c := range []struct {
		reason string
		live   metav1.ObjectMeta
		fails  error
		limit  int64
	}{
		{"it is being deleted", deleted, nil, batch},
		{"the cache is behind: another object of its name is", other, nil, 0},
		{"it is not", metav1.ObjectMeta{UID: "u-1"}, nil, 0},
		{"the cache is behind: it is gone", deleted, apierrors.NewNotFound(schema.GroupResource{}, "proj"), 0},
	} {
		removed := client.DeleteAllOfOptions{}
		stub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(testenv.NewScheme()).Build(), interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
				into.(*metav1.PartialObjectMetadata).ObjectMeta = c.live
				return c.fails
			},
			List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
				list.(*metav1.PartialObjectMetadataList).Items = make([]metav1.PartialObjectMetadata, 1)
				return nil
			},
			DeleteAllOf: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteAllOfOption) error {
				removed.ApplyOptions(options)
				return nil
			},
		})
		base := reconcile.Base{Client: stub, Live: stub, Recorder: &events.FakeRecorder{}}
		cached := builder.Project("proj").Build()
		cached.UID, cached.DeletionTimestamp = deleted.UID, deleted.DeletionTimestamp
		s := reconcile.NewScope(cached)
		s.Begin(time.Now())
		findings := []Child{{Kind: &v1alpha1.Finding{}, Name: "findings"}}
		plan := Plan{Parent: "project", Field: "spec.projectRef.name", Children: findings}
		harness.Must(t, Children(t.Context(), base, s, plan, func() string { return "" }))
		harness.Same(t, c.reason+": the limit of the call", c.limit, removed.Limit)
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
		remover := Remover{Client: stub, Reader: stub, Limit: batch}
		again, err := remover.oneByOne(ctx, &v1alpha1.Finding{}, &metav1.PartialObjectMetadataList{},
			client.ListOptions{FieldSelector: fields.Everything()})
		if again != 0 || !IsRefusal(err) {
			t.Errorf("%s: again in %v after %v, want the refusal alone", reason, again, err)
		}
		cancel()
	}
}
