package review

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// However long ago the review was deleted: the API server may have been away since.
func TestARemovalWaitsForRefusalsThatMayPass(t *testing.T) {
	refuses := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "webhookdeliveries"}, "d", errors.New(why))
	}
	starting, outage := refuses("not yet ready to handle request"), errors.New("connection refused")
	policy := apierrors.NewInvalid(schema.GroupKind{Kind: "WebhookDelivery"}, "d", nil)
	webhook := apierrors.NewBadRequest("a label is missing")
	for _, c := range []struct {
		reason string
		// attempts end with these errors, with the pause between them.
		attempts []error
		pause    time.Duration
		// want is the answer about the last one.
		want bool
	}{
		{"no error", []error{nil, nil}, time.Hour, false},
		{"a quota, which may stay full", []error{refuses("exceeded quota: deliveries")}, 0, true},
		{"the first refusal", []error{starting}, 0, false},
		{"a starting API server", []error{starting, starting}, reconcile.RefusalPatience, false},
		{"a missing right", []error{starting, starting}, reconcile.RefusalPatience + time.Second, true},
		{"a policy, which may still go", []error{policy}, 0, false},
		{"a policy", []error{policy, policy}, reconcile.RefusalPatience + time.Second, true},
		{"a webhook without a code", []error{webhook, webhook}, reconcile.RefusalPatience + time.Second, true},
		{"an outage, however long", []error{outage, outage}, time.Hour, false},
		{"an outage between two refusals", []error{starting, outage, starting}, time.Hour, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, got := &Reconciler{}, false
			for i, err := range c.attempts {
				if i > 0 {
					<-time.After(c.pause)
				}
				got = r.blocks(types.NamespacedName{Namespace: "org-acme", Name: "r-1"}, err)
			}
			harness.Same(t, c.reason, c.want, got)
		})
	}
}

// Another review may get its name.
func TestPatienceWithARemovedReviewIsForgotten(t *testing.T) {
	r, review := &Reconciler{}, types.NamespacedName{Namespace: "org-acme", Name: "r-1"}
	r.Client = handlertest.Gets(func(client.ObjectKey, client.Object) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "reviews"}, review.Name)
	})
	r.blocks(review, apierrors.NewForbidden(schema.GroupResource{}, "d", nil))
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: review})
	harness.Must(t, err)
	harness.Same(t, "refused for", time.Duration(0), r.refused.For(review, time.Now().Add(time.Hour)))
}
