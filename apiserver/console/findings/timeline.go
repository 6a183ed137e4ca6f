package findings

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
)

// timelineDeliveries is the number of deliveries in a finding's timeline, the newest ones.
const timelineDeliveries = 50

// happening is an entry of the timeline: a transition, or an event that was sent to an endpoint.
type happening struct {
	Transition *client.Transition
	Delivery   *client.WebhookDelivery
}

// readDeliveries reads the deliveries about the finding, if the key may see them.
func readDeliveries(ctx context.Context, v *page.Visit, finding string) (list client.WebhookDeliveryList, err error) {
	if !v.May("webhooks:read") {
		return list, nil
	}
	query := url.Values{"subject_id": {finding}, "size": {strconv.Itoa(timelineDeliveries)}}
	_, err = v.API.Get(ctx, "/v2/webhook-deliveries", query, &list)
	return list, err
}

// timeline merges transitions and deliveries, the newest first. Transitions keep their order. A delivery counts as
// later than the transitions up to the second of its creation.
func timeline(history []client.Transition, deliveries []client.WebhookDelivery) []happening {
	slices.SortStableFunc(history, func(a, b client.Transition) int { return int(b.Seq - a.Seq) })
	slices.SortStableFunc(deliveries, func(a, b client.WebhookDelivery) int { return b.CreatedAt.Compare(a.CreatedAt) })
	all := make([]happening, 0, len(history)+len(deliveries))
	for i := range history {
		for len(deliveries) > 0 && !deliveries[0].CreatedAt.Before(history[i].At.Truncate(time.Second)) {
			all = append(all, happening{Delivery: &deliveries[0]})
			deliveries = deliveries[1:]
		}
		all = append(all, happening{Transition: &history[i]})
	}
	for i := range deliveries {
		all = append(all, happening{Delivery: &deliveries[i]})
	}
	return all
}

// pageOf returns the address of the policy or the operation that changed the finding; "" for another author.
func pageOf(by string) string {
	for prefix, pages := range map[string]string{
		"operation/": "/console/operations", "policy/": "/console/policies",
	} {
		if name, is := strings.CutPrefix(by, prefix); is {
			return page.Of(pages, name)
		}
	}
	return ""
}
