package builder

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// OrganizationBuilder builds an Organization.
type OrganizationBuilder struct{ object v1alpha1.Organization }

// Organization starts an organization without any settings.
func Organization(name string) *OrganizationBuilder {
	return &OrganizationBuilder{object: v1alpha1.Organization{
		TypeMeta:   typeMeta("Organization"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}}
}

// RequestsPerMinute sets the rate limit.
func (b *OrganizationBuilder) RequestsPerMinute(limit int32) *OrganizationBuilder {
	b.object.Spec.RateLimit = &v1alpha1.RateLimit{RequestsPerMinute: &limit}
	return b
}

// Mutate changes what has no method of its own.
func (b *OrganizationBuilder) Mutate(change func(*v1alpha1.Organization)) *OrganizationBuilder {
	change(&b.object)
	return b
}

// Build returns the organization.
func (b *OrganizationBuilder) Build() *v1alpha1.Organization { return &b.object }
