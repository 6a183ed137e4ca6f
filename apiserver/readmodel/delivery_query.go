package readmodel

import (
	"unique"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// Fields that deliveries are indexed by, with facets of status and event type.
const (
	endpointField = index.Everything + 1
	subjectField  = index.Everything + 2
)

// deliveryLayout defines how webhook deliveries are indexed.
var deliveryLayout = &index.Layout[*deliveryItem]{
	Sorts:  []index.Sort{SortCreatedAt},
	Values: func(i *deliveryItem) []string { return []string{i.createdAt} },
	Keys: func(i *deliveryItem) []index.Key {
		facet := unique.Make(index.Facet{i.status, i.event})
		return []index.Key{
			{Field: index.Everything, Facet: facet},
			{Field: endpointField, Value: i.endpoint, Facet: facet},
			{Field: subjectField, Value: i.subject, Facet: facet},
		}
	},
}

// DeliveryQuery asks for a page of an organization's webhook deliveries, sorted by created_at.
type DeliveryQuery struct {
	index.Request
	// Status is pending, delivered or failed, Event the type of the event; nil matches all.
	Status, Event *string
	// Endpoint is the id of the endpoint, Subject that of the resource that the event is about; nil matches all.
	Endpoint, Subject *string
}

// ListWebhookDeliveries answers a query from the organization's snapshot; an item is the delivery's JSON, ready
// to be sent. It takes no lock. The error is ErrNoOrganization. Its cost is proportional to the page, or to the
// number of deliveries about the subject if endpoint and subject are both given.
func (m *Model) ListWebhookDeliveries(organization string, q DeliveryQuery) (index.Page[content.Part], error) {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return index.Page[content.Part]{}, err
	}
	x := snapshot.deliveries
	return listJSON(x, deliveryLayout.Query(q.Request), q.choose(x),
		func(i *deliveryItem) content.Part { return &i.json }), nil
}

// choose picks the buckets that contain the matches of the query.
func (q *DeliveryQuery) choose(x *index.Index[*deliveryItem]) index.Selection[*deliveryItem] {
	wanted := func(has index.Facet) bool { return matches(q.Status, has[0]) && matches(q.Event, has[1]) }
	switch {
	case q.Subject != nil:
		s := x.Pick(subjectField, *q.Subject, wanted)
		if q.Endpoint != nil {
			s.Also(func(i *deliveryItem) bool { return i.endpoint == *q.Endpoint })
		}
		return s
	case q.Endpoint != nil:
		return x.Pick(endpointField, *q.Endpoint, wanted)
	default:
		return x.Pick(index.Everything, "", wanted)
	}
}
