package readmodel

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/newest"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// deliveryItem is a webhook delivery as it is held and shown.
type deliveryItem struct {
	createdAt, status string
	// endpoint and subject are names, event is a type.
	endpoint, event, subject string
	sent                     *webhooks.Sent
	json                     content.Bytes
}

// SentWith returns what was sent with an organization's delivery. It takes no lock.
//
// A receiver may ask about a delivery right after receiving it, before this replica's watch has delivered the
// attempt.
func (m *Model) SentWith(organization, id string) (*webhooks.Sent, bool) {
	item, there := m.deliveryItem(organization, id)
	if !there {
		return nil, false
	}
	return item.sent, true
}

// WebhookDeliveryJSON returns the JSON of an organization's delivery. It takes no lock.
func (m *Model) WebhookDeliveryJSON(organization, id string) ([]byte, bool) {
	item, there := m.deliveryItem(organization, id)
	if !there {
		return nil, false
	}
	return item.json, true
}

// ApplyDelivery adds a delivery that the API server has returned, so that a client that has received the
// response reads it from now on.
func (m *Model) ApplyDelivery(object *v1alpha1.WebhookDelivery) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, newer := m.held(webhookDeliveries, newest.Key(object)), !m.versions[webhookDeliveries].Holds(object)
	if err := m.write(change{kind: webhookDeliveries, object: object}); err != nil {
		return err
	}
	if newer && m.versions[webhookDeliveries].Holds(object) {
		m.noteApplied(webhookDeliveries, object, before)
	}
	if p := m.partitions[object.Namespace]; p != nil && p.dirty() {
		p.publish()
	}
	return nil
}

func (m *Model) deliveryItem(organization, id string) (*deliveryItem, bool) {
	return m.shown(organization).deliveries.Get(id)
}

func (m *Model) setDelivery(p *partition, object *v1alpha1.WebhookDelivery, name string) {
	setDirect(m, p, p.deliveries, p.indexes.deliveries, name, m.newDelivery(object))
}

// newDelivery returns nil for a delivery that does not exist or cannot be shown.
func (m *Model) newDelivery(object *v1alpha1.WebhookDelivery) *deliveryItem {
	if object == nil {
		return nil
	}
	shown, err := render.WebhookDeliveryJSON(object)
	if err != nil {
		m.log.Error(err, "A webhook delivery is not shown in the REST API", "namespace", object.Namespace,
			"name", object.Name)
		return nil
	}
	return &deliveryItem{
		createdAt: render.Timestamp(object.CreationTimestamp.Time),
		status:    render.DeliveryStatus(object),
		endpoint:  string(object.Spec.EndpointRef.Name),
		event:     object.Spec.Event.Type,
		subject:   string(object.Spec.Event.Subject.Name),
		sent:      webhooks.SentWith(object),
		json:      shown,
	}
}
