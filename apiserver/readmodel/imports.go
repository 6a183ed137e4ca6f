package readmodel

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Imports returns what the organization lets imports create; nil: nothing. It takes no lock. It is the watch's word,
// which may be a moment old: an admission policy has the last.
func (m *Model) Imports(organization string) *v1alpha1.OrganizationImports {
	imports := (*m.imports.Load())[organization]
	if imports == nil || !imports.Create {
		return nil
	}
	return imports
}

// takeImports notes what an organization lets imports create. m.mu is held.
func (m *Model) takeImports(organization *v1alpha1.Organization, name string) {
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
