package readmodel

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/newest"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// deliveryItem is a webhook delivery as it is held and shown.
type deliveryItem struct {
	// object has spec and status, without labels, annotations, managedFields and conditions.
	object            *v1alpha1.WebhookDelivery
	createdAt, status string
	json              content.Bytes
}

// WebhookDelivery returns an organization's delivery with its spec and status, without labels,
// annotations, managedFields and conditions. It must not be changed. It takes no lock.
//
// A receiver may ask about a delivery right after receiving it, before this replica's watch has delivered the
// attempt.
func (m *Model) WebhookDelivery(organization, id string) (*v1alpha1.WebhookDelivery, bool) {
	item, there := m.deliveryItem(organization, id)
	if !there {
		return nil, false
	}
	return item.object, true
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
	held := &v1alpha1.WebhookDelivery{ObjectMeta: trimmed(&object.ObjectMeta), Spec: object.Spec, Status: object.Status}
	held.Status.Conditions = nil
	shown, err := render.WebhookDeliveryJSON(held)
	if err != nil {
		m.log.Error(err, "A webhook delivery is not shown in the REST API", "namespace", object.Namespace,
			"name", object.Name)
		return nil
	}
	return &deliveryItem{
		object:    held,
		createdAt: render.Timestamp(object.CreationTimestamp.Time),
		status:    render.DeliveryStatus(held),
		json:      shown,
	}
}
