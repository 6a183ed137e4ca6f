package triagepolicy

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// paginator puts the changes that policies made to findings into pages, for the endpoints that subscribe to pages. It
// is a separate controller because the policy's own reconcile counts all findings, and does nothing for a deleted
// policy, whose deletion may withdraw thousands of verdicts.
type paginator struct {
	pager *ledger.Pager
	clock clock.PassiveClock
}

func setUpPages(ctx context.Context, mgr ctrl.Manager, options controller.Options, clock clock.PassiveClock) error {
	pager, err := ledger.NewPolicyPager(ctx, mgr)
	if err != nil {
		return err
	}
	options.RateLimiter = controllers.NewRateLimiter() // not shared with policies, whose requests have the same names
	return ctrl.NewControllerManagedBy(mgr).
		Named("triagepolicypages").
		Watches(&v1alpha1.Finding{}, pager.Findings()).
		Watches(&v1alpha1.WebhookEndpoint{}, pager.Endpoints()).
		WithOptions(options).
		Complete(&paginator{pager: pager, clock: clock})
}

// Reconcile makes the pages of the named policy, even if the policy was deleted. It writes nothing else.
func (p *paginator) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	again, err := p.pager.MakeOnceQuiet(ctx, req.Namespace, webhooks.CauseOfPolicy(req.Name), p.clock.Now())
	return ctrl.Result{RequeueAfter: again}, err
}
