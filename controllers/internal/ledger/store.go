package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/implied"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// store is what a Ledger or Pager reads from, and where it makes deliveries.
type store struct {
	client client.Client
	// live reads from the API server where a stale cache would lead to duplicate deliveries.
	live client.Reader
	// own reads this project's kinds from the API server, and skips unreadable objects.
	own    rest.Interface
	quotas *quotaBackoff
	// Implied holds the findings without a stored status. It knows which deliveries of their creation were deleted, which
	// are not made again, and which are still owed. It may be nil.
	Implied *implied.Statuses
}

func newStore(mgr ctrl.Manager) (store, error) {
	own, err := kube.NewClient(mgr.GetConfig())
	return store{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), own: own, quotas: newQuotaBackoff(clock.RealClock{}),
	}, err
}

// isMade reports whether the endpoint's separate delivery of the transition is in the cache, or was until it was
// deleted.
func (s store) isMade(ctx context.Context, object client.Object, t v1alpha1.Transition,
	endpoint *v1alpha1.WebhookEndpoint) (bool, error) {
	name := webhooks.DeliveryName(object.GetUID(), t.Seq, endpoint.UID)
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: name}
	err := s.client.Get(ctx, key, &v1alpha1.WebhookDelivery{}, client.UnsafeDisableDeepCopy)
	// A deletion is noted only after the cache has dropped the delivery, so check the cache first.
	return err == nil || s.Implied.IsLost(object, name), kube.IgnoreNotFound(err)
}

// covers is the cache index of pages by the transitions in them.
const covers = "covers"

func coveredBy(delivery *v1alpha1.WebhookDelivery) []string {
	entries := webhooks.Covered(delivery)
	values := make([]string, len(entries))
	for i := range entries {
		values[i] = coverage(entries[i].UID, entries[i].Seq, delivery.Spec.EndpointRef.UID)
	}
	return values
}

func coverage(finding string, seq int64, endpoint string) string {
	return strings.Join([]string{finding, strconv.FormatInt(seq, 10), endpoint}, "/")
}

// isCovered reports whether the cache has a page for the endpoint with the transition.
func (s store) isCovered(ctx context.Context, object client.Object, t v1alpha1.Transition,
	endpoint *v1alpha1.WebhookEndpoint) (bool, error) {
	return s.isShown(ctx, object.GetNamespace(), coverage(string(object.GetUID()), t.Seq, string(endpoint.UID)))
}

// isShown reports whether the cache has a page with this coverage.
func (s store) isShown(ctx context.Context, namespace, coverage string) (bool, error) {
	return index.Any(ctx, s.client, &v1alpha1.WebhookDeliveryList{}, namespace, covers, coverage)
}

// makeIfRoom calls makeDelivery, and notes whether the namespace's quota had room.
func (s store) makeIfRoom(ctx context.Context, delivery *v1alpha1.WebhookDelivery) error {
	err := s.makeDelivery(ctx, delivery)
	switch {
	case err == nil:
		s.quotas.succeeded(delivery.Namespace)
	case kube.IsQuotaExceeded(err):
		return s.quotas.refused(ctx, delivery.Namespace, err)
	}
	return err
}

// makeDelivery creates the delivery. If it exists, an interrupted run made it. A namespace that is being deleted owes
// nothing any longer.
func (s store) makeDelivery(ctx context.Context, delivery *v1alpha1.WebhookDelivery) error {
	err := s.client.Create(ctx, delivery)
	if err == nil || kube.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return fmt.Errorf("create the delivery of %s %s: %w", delivery.Spec.Event.Type, delivery.Spec.Event.Subject.Name, err)
}

// endpointsOf returns the namespace's endpoints that get events, in a fixed order, which makes retries after a failure
// deterministic.
func (s store) endpointsOf(ctx context.Context, namespace string) ([]v1alpha1.WebhookEndpoint, error) {
	all, err := EndpointsOf(ctx, s.client, namespace)
	return webhooks.Served(all), err
}

// EndpointsOf returns all endpoints of the namespace, served or not. They belong to the cache and must not be changed.
func EndpointsOf(ctx context.Context, cache client.Reader, namespace string) ([]v1alpha1.WebhookEndpoint, error) {
	list := &v1alpha1.WebhookEndpointList{}
	if err := cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the webhook endpoints: %w", err)
	}
	return list.Items, nil
}
