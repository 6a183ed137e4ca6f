package reviewissue

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Its own reconcile reports the panic.
func TestAPanicOverOneIssueLeavesTheOthersJudged(t *testing.T) {
	policy := builder.TriagePolicy("p", "true").Build()
	policy.Status.InForce = &v1alpha1.PolicyInForce{Generation: 1, Spec: policy.Spec}
	broken, other := builder.ReviewIssue("broken").Build(), builder.ReviewIssue("other").Build()
	broken.Spec.Result = &v1alpha1.ReviewIssueResult{Project: "broken"}
	c := interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			if key.Name == "broken" {
				panic("no such project")
			}
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		},
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, _ ...client.ListOption) error {
			switch into := into.(type) {
			case *v1alpha1.TriagePolicyList:
				into.Items = []v1alpha1.TriagePolicy{*policy}
			case *v1alpha1.ReviewIssueList:
				into.Items = []v1alpha1.ReviewIssue{*broken, *other}
			}
			return nil
		},
	})
	r := &Reconciler{Base: reconcile.Base{Client: c, Clock: clock.RealClock{}}}
	got, err := r.outdatedVerdicts(t.Context(), "org-x")
	harness.Must(t, err)
	NewWithT(t).Expect(got).To(ConsistOf(HaveField("Name", "broken"), HaveField("Name", "other")))
}
