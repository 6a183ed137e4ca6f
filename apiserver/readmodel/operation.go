package readmodel

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// operationItem holds just enough of a triage operation to detect changes. Operations are read from the API
// server.
type operationItem struct {
	status string
	// tag identifies the state that would be shown.
	tag string
}

// CountOperations returns how many triage operations a namespace holds.
func (m *Model) CountOperations(namespace string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.partitions[namespace]; p != nil {
		return len(p.operations)
	}
	return 0
}

func (m *Model) setOperation(p *partition, object *v1alpha1.TriageOperation, name string) {
	delete(p.operations, name)
	if object == nil {
		return
	}
	shown, err := render.TriageOperationJSON(object)
	if err != nil {
		m.log.Error(err, "Changes of a triage operation are not reported", "namespace", p.namespace, "name", name)
		return
	}
	p.operations[name] = &operationItem{string(render.OperationPhase(object)), TagOf(shown)}
}
