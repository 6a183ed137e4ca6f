package retention

import (
	"context"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// The cache leaves out what cannot be read, which may be an issue that somebody has decided about.
func TestAReviewWithAnIssueThatCannotBeReadKeepsAllIssues(t *testing.T) {
	ns := env.Organization(t, "unreadable")
	setRetention(t, "unreadable", v1alpha1.Retention{IdleReviews: duration(time.Hour)})
	review, issues := pullRequest(t, ns, "review", 3, undecided)
	review.Status.UpdatedAt = new(v1alpha1.NewTime(time.Now().Add(-2 * time.Hour)))
	markObserved(t, review, issues[0], issues[1])
	live, unreadable := env.AsController(t), issues[2].Name
	r := newReconciler(interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, from client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if key.Name == unreadable {
				return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("reviewissues").GroupResource(), key.Name)
			}
			return from.Get(ctx, key, into, options...)
		},
		List: func(ctx context.Context, from client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := from.List(ctx, list, options...)
			if issues, is := list.(*v1alpha1.ReviewIssueList); is {
				issues.Items = slices.DeleteFunc(issues.Items, func(i v1alpha1.ReviewIssue) bool { return i.Name == unreadable })
			}
			return err
		},
	}), nil, quick)
	r.Live, r.batch = live, 2 // the issues before it by name are a turn's
	r.agenda.change(nil, review)
	p := newPass()
	done, err := r.work(t.Context(), testenv.Get(t, NewWithT(t), env, builder.Organization("unreadable").Build()), p)
	harness.Must(t, err)
	harness.Same(t, "the pass is complete, and the review is held", []bool{true, true}, []bool{done, p.held})
	left := testenv.List(t, NewWithT(t), env, &v1alpha1.ReviewIssueList{}, client.InNamespace(ns)).Items
	harness.Same(t, "issues that stay", len(issues), len(left))
}
