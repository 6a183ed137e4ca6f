package builder

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// FindingTrendBuilder builds a FindingTrend.
type FindingTrendBuilder struct {
	base[*FindingTrendBuilder, *v1alpha1.FindingTrend]
}

// FindingTrend starts a trend of project "proj", without rows.
func FindingTrend(name string, quarter v1alpha1.Quarter) *FindingTrendBuilder {
	b := &FindingTrendBuilder{}
	return b.start(b, "FindingTrend", name, &v1alpha1.FindingTrend{
		Spec: v1alpha1.FindingTrendSpec{
			ProjectRef: v1alpha1.ProjectReference{Name: "proj"}, Quarter: quarter, UpdatedAt: v1alpha1.NewTime(time.Unix(0, 0)),
		},
	})
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
