package builder

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// FindingTrendBuilder builds a FindingTrend.
type FindingTrendBuilder struct{ object v1alpha1.FindingTrend }

// FindingTrend starts a trend of project "proj", without rows.
func FindingTrend(name string, quarter v1alpha1.Quarter) *FindingTrendBuilder {
	return &FindingTrendBuilder{object: v1alpha1.FindingTrend{
		TypeMeta:   typeMeta("FindingTrend"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.FindingTrendSpec{
			ProjectRef: v1alpha1.ProjectReference{Name: "proj"}, Quarter: quarter, UpdatedAt: Time(time.Unix(0, 0)),
		},
	}}
}

// In sets the namespace.
func (b *FindingTrendBuilder) In(namespace string) *FindingTrendBuilder {
	b.object.Namespace = namespace
	return b
}

// Project sets the project.
func (b *FindingTrendBuilder) Project(name string) *FindingTrendBuilder {
	b.object.Spec.ProjectRef.Name = v1alpha1.ResourceName(name)
	return b
}

// Rows adds rows, in the order of their days.
func (b *FindingTrendBuilder) Rows(rows ...v1alpha1.FindingTrendDay) *FindingTrendBuilder {
	b.object.Spec.Days = append(b.object.Spec.Days, rows...)
	return b
}

// Build returns the trend.
func (b *FindingTrendBuilder) Build() *v1alpha1.FindingTrend { return &b.object }
