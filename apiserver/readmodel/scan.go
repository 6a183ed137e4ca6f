package readmodel

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// scanItem is a scan as it is held and shown.
type scanItem struct {
	// object has spec and status, without labels, annotations, managedFields and transitions.
	object            *v1alpha1.Scan
	createdAt, status string
	json              content.Bytes
}

// ScanJSON returns the JSON of an organization's scan. It takes no lock.
func (m *Model) ScanJSON(organization, id string) ([]byte, bool) {
	item, there := m.shown(organization).scans.Get(id)
	if !there {
		return nil, false
	}
	return item.json, true
}

// ImportedBy returns the API key that an organization's scan was uploaded with, "" if it was not uploaded or is
// not known. It takes no lock.
func (m *Model) ImportedBy(organization, id string) string {
	item, there := m.shown(organization).scans.Get(id)
	if !there {
		return ""
	}
	return item.object.Spec.ImportedBy
}

// Upload returns the scans of an organization's upload, or nil if none is known. They must not be changed. It
// takes no lock.
func (m *Model) Upload(organization, id string) []*v1alpha1.Scan {
	if id == "" {
		return nil
	}
	var scans []*v1alpha1.Scan
	for i := range m.shown(organization).scans.With(uploadField, id) {
		scans = append(scans, i.object)
	}
	return scans
}

func (m *Model) setScan(p *partition, object *v1alpha1.Scan, name string) {
	setDirect(m, p, p.scans, p.indexes.scans, name, m.newScan(object))
}

// newScan returns nil for a scan that does not exist, and for one that cannot be shown.
func (m *Model) newScan(object *v1alpha1.Scan) *scanItem {
	if object == nil {
		return nil
	}
	held := &v1alpha1.Scan{ObjectMeta: trimmed(&object.ObjectMeta), Spec: object.Spec, Status: object.Status}
	held.Status.Transitions = nil
	shown, err := render.ScanJSON(held)
	if err != nil {
		m.log.Error(err, "A scan is not shown in the REST API", "namespace", object.Namespace, "name", object.Name)
		return nil
	}
	return &scanItem{
		object:    held,
		createdAt: render.Timestamp(object.CreationTimestamp.Time),
		status:    string(render.ScanStatus(held)),
		json:      shown,
	}
}
