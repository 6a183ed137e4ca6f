package builder

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// FindingBuilder builds a Finding.
type FindingBuilder struct {
	base[*FindingBuilder, *v1alpha1.Finding]
}

// Finding starts a finding of low severity in repository "repo" and project "proj".
func Finding(name string) *FindingBuilder {
	b := &FindingBuilder{}
	return b.start(b, "Finding", name, &v1alpha1.Finding{
		Spec: v1alpha1.FindingSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "repo"},
			ProjectRef:    v1alpha1.ProjectReference{Name: "proj"},
			Details:       v1alpha1.FindingDetails{Title: "Title of " + name, Severity: v1alpha1.LevelLow},
		},
	})
}

// Project sets the repository and the project.
func (b *FindingBuilder) Project(repository, project string) *FindingBuilder {
	b.object.Spec.RepositoryRef.Name = v1alpha1.ResourceName(repository)
	b.object.Spec.ProjectRef.Name = v1alpha1.ResourceName(project)
	return b
}

// Severity sets the severity.
func (b *FindingBuilder) Severity(severity v1alpha1.Level) *FindingBuilder {
	b.object.Spec.Details.Severity = severity
	return b
}

// Tool sets the scanner and the category of what it looks for.
func (b *FindingBuilder) Tool(tool string, category v1alpha1.FindingCategory) *FindingBuilder {
	b.object.Spec.Tool, b.object.Spec.Category = tool, category
	return b
}

// Title sets the title.
func (b *FindingBuilder) Title(title string) *FindingBuilder {
	b.object.Spec.Details.Title = title
	return b
}

// DetectedAt sets when the finding was first seen.
func (b *FindingBuilder) DetectedAt(at time.Time) *FindingBuilder {
	b.object.Spec.DetectedAt = new(v1alpha1.NewTime(at))
	return b
}

// Triage sets the triage decision.
func (b *FindingBuilder) Triage(status v1alpha1.UserStatus, comments string) *FindingBuilder {
	b.object.Spec.Triage.UserStatus, b.object.Spec.Triage.Comments = status, comments
	return b
}

// Scan sets the scan that created the finding or changed it last.
func (b *FindingBuilder) Scan(id string) *FindingBuilder {
	b.object.Spec.Scan = &v1alpha1.FindingScan{ScanID: id}
	return b
}

// Closed marks the finding as closed: a scan that started at that time no longer reports it.
func (b *FindingBuilder) Closed(at time.Time, scanID string) *FindingBuilder {
	b.object.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(at), ScanID: scanID}
	return b
}

// Suppressed marks the finding as suppressed in the source code.
func (b *FindingBuilder) Suppressed(kind v1alpha1.SuppressionKind, why string) *FindingBuilder {
	b.object.Spec.Suppression = &v1alpha1.FindingSuppression{Kind: kind, Justification: why}
	return b
}
