package builder

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// OrganizationBuilder builds an Organization.
type OrganizationBuilder struct {
	base[*OrganizationBuilder, *v1alpha1.Organization]
}

// Organization starts an organization without any settings.
func Organization(name string) *OrganizationBuilder {
	b := &OrganizationBuilder{}
	return b.start(b, "Organization", name, &v1alpha1.Organization{})
}

// RequestsPerMinute sets the rate limit.
func (b *OrganizationBuilder) RequestsPerMinute(limit int32) *OrganizationBuilder {
	b.object.Spec.RateLimit = &v1alpha1.RateLimit{RequestsPerMinute: &limit}
	return b
}
