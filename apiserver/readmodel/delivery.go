package readmodel

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// WebhookDelivery returns an organization's delivery with its spec and status, without labels,
// annotations, managedFields and conditions. It must not be changed. It takes no lock.
//
// A receiver may ask about a delivery within moments of getting it, before the watch has told
// this replica of the attempt.
func (m *Model) WebhookDelivery(organization, id string) (*v1alpha1.WebhookDelivery, bool) {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return nil, false
	}
	return snapshot.deliveries.get(id)
}

// takeDelivery shows a delivery at once: there is nothing to render.
func (m *Model) takeDelivery(p *partition, object *v1alpha1.WebhookDelivery, name string) {
	if object == nil {
		delete(p.deliveries, name)
		if p.view != nil {
			p.indexes.deliveries.remove(name)
		}
	} else {
		held := &v1alpha1.WebhookDelivery{
			ObjectMeta: trimmed(&object.ObjectMeta), Spec: object.Spec, Status: object.Status,
		}
		held.Status.Conditions = nil
		p.deliveries[name] = held
		if p.view != nil {
			p.indexes.deliveries.put(name, held)
		}
	}
	m.signal()
}

// deliveryWork shows a delivery to an organization that has come by its namespace.
func (p *partition) deliveryWork(name string) (work, bool) {
	x := p.indexes.deliveries
	return work{
		render: func() error { return nil },
		show: func() {
			if held := p.deliveries[name]; held != nil {
				x.put(name, held)
			}
		},
	}, true
}
