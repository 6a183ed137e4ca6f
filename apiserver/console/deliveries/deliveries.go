// Package deliveries holds the pages of webhook deliveries: which events were sent where, with every attempt.
package deliveries

import (
	"context"
	"net/http"
	"net/url"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

const (
	listPath = "/console/deliveries"
	apiPath  = "/v2/webhook-deliveries"
)

// Routes returns the pages.
func Routes() []page.Route {
	return []page.Route{
		{Method: http.MethodGet, Path: "deliveries", Serve: list},
		{Method: http.MethodGet, Path: "deliveries/:id", Serve: show},
		{Method: http.MethodPost, Path: "deliveries/:id/redeliver", Serve: redeliver},
	}
}

// listing is the content of the list.
type listing struct {
	client.WebhookDeliveryList
	view url.Values
	// subjects are the objects that the deliveries are about.
	subjects subjects
}

func list(ctx context.Context, v *page.Visit) (page.Response, error) {
	view, err := v.View("status", "event", "endpoint_id", "subject_id", "order")
	if err != nil {
		return page.Response{}, err
	}
	l := listing{view: view}
	if err := v.List(ctx, apiPath, l.view, &l.WebhookDeliveryList); err != nil {
		return page.Response{}, err
	}
	if l.subjects, err = readSubjects(ctx, v, l.Items); err != nil {
		return page.Response{}, err
	}
	return page.Response{Title: "Webhooks", Body: listPage(l)}, nil
}

// events are the event types to filter deliveries by.
var events = []client.ListWebhookDeliveriesParamsEvent{
	client.FindingCreated, client.FindingUpdated, client.FindingTriaged, client.FindingJudged, client.FindingExpired,
	client.FindingClosed, client.FindingReopened, client.FindingStale, client.FindingFresh, client.FindingSuppressed,
	client.FindingUnsuppressed, client.FindingBatch, client.ReviewUpdated, client.ReviewIssueOpened,
	client.ReviewIssueResolved, client.ReviewIssueTriaged, client.ReviewIssueExpired, client.ReviewIssueJudged,
	client.ScanCompleted, client.WebhookPing,
}

// filters returns the filters of the list.
func filters() []ui.Filter {
	types := make([]ui.Option, len(events))
	for i, event := range events {
		types[i] = ui.Option{Value: string(event), Word: string(event)}
	}
	return []ui.Filter{
		{Name: "status", Label: "State", Any: "any", Options: []ui.Option{
			{Value: "pending", Word: "pending"}, {Value: "delivered", Word: "delivered"},
			{Value: "failed", Word: "failed"},
		}},
		{Name: "event", Label: "Event", Any: "any", Options: types},
		{Name: "endpoint_id", Label: "Endpoint"},
		{Name: "subject_id", Label: "About"},
		ui.NewestFirst,
	}
}

// show serves the page of a delivery.
func show(ctx context.Context, v *page.Visit) (page.Response, error) {
	var d client.WebhookDelivery
	if _, err := v.API.Get(ctx, v.Resource(apiPath), nil, &d); err != nil {
		return page.Response{}, err
	}
	body := deliveryPage(d, v.Who.OrganizationId, v.Token, v.May("webhooks:redeliver"))
	return page.Response{Title: d.EventType + " to " + d.EndpointId, Body: body, Modules: modules}, nil
}

// modules update the page while a delivery is under way.
var modules = []string{"ui/follow.js"}

// redeliver requests that the delivery is sent again.
func redeliver(ctx context.Context, v *page.Visit) (page.Response, error) {
	var d client.WebhookDelivery
	if err := v.API.Send(ctx, http.MethodPost, v.Resource(apiPath)+"/redeliver", "", struct{}{}, &d); err != nil {
		return page.Response{}, err
	}
	return page.SeeOther(page.Of(listPath, d.Id)), nil
}

// of returns the address of the list of deliveries that share a value.
func of(name, value string) string { return page.Address(listPath, nil, name, value) }
