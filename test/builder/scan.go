package builder

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// ScanBuilder builds a Scan.
type ScanBuilder struct {
	base[*ScanBuilder, *v1alpha1.Scan]
}

// Scan starts a scan by tool "gosec" of category Code, of project "proj" in repository "repo".
func Scan(name string, startedAt time.Time) *ScanBuilder {
	b := &ScanBuilder{}
	return b.start(b, "Scan", name, &v1alpha1.Scan{
		Spec: v1alpha1.ScanSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "repo"},
			ProjectRef:    v1alpha1.ProjectReference{Name: "proj"},
			Tool:          "gosec",
			Category:      v1alpha1.CategoryCode,
			StartedAt:     v1alpha1.NewTime(startedAt),
		},
	})
}

// Project sets the repository and the project.
func (b *ScanBuilder) Project(repository, project string) *ScanBuilder {
	b.object.Spec.RepositoryRef.Name = v1alpha1.ResourceName(repository)
	b.object.Spec.ProjectRef.Name = v1alpha1.ResourceName(project)
	return b
}

// Tool sets the scanner and the category of what it looks for.
func (b *ScanBuilder) Tool(tool string, category v1alpha1.FindingCategory) *ScanBuilder {
	b.object.Spec.Tool, b.object.Spec.Category = tool, category
	return b
}

// Ended sets the end time and the outcome.
func (b *ScanBuilder) Ended(at time.Time, outcome v1alpha1.ScanOutcome) *ScanBuilder {
	b.object.Spec.CompletedAt, b.object.Spec.Outcome = new(v1alpha1.NewTime(at)), outcome
	return b
}

// OfPullRequest makes the scan belong to a pull request.
func (b *ScanBuilder) OfPullRequest(review string, number int32) *ScanBuilder {
	b.object.Spec.Review = &v1alpha1.ScanReview{Name: review, PRNumber: number}
	return b
}
