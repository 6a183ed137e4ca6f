package readmodel

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Imports returns what the organization lets imports create; nil for nothing. It takes no lock. The watch may
// be slightly behind; an admission policy makes the final decision.
func (m *Model) Imports(organization string) *v1alpha1.OrganizationImports {
	imports := (*m.imports.Load())[organization]
	if imports == nil || !imports.Create {
		return nil
	}
	return imports
}

// setImports records what an organization lets imports create. The caller holds the mutex.
func (m *Model) setImports(organization *v1alpha1.Organization, name string) {
	var after *v1alpha1.OrganizationImports
	if organization != nil {
		after = organization.Spec.Imports
	}
	before := *m.imports.Load()
	if equality.Semantic.DeepEqual(before[name], after) {
		return
	}
	all := maps.Clone(before)
	if all[name] = after; after == nil {
		delete(all, name)
	}
	m.imports.Store(&all)
}
