package builder

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// FindingBuilder builds a Finding.
type FindingBuilder struct{ finding v1alpha1.Finding }

// Finding starts a finding of low severity in repository "repo" and project "proj".
func Finding(name string) *FindingBuilder {
	return &FindingBuilder{finding: v1alpha1.Finding{
		TypeMeta:   typeMeta("Finding"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.FindingSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "repo"},
			ProjectRef:    v1alpha1.ProjectReference{Name: "proj"},
			Details:       v1alpha1.FindingDetails{Title: "Title of " + name, Severity: v1alpha1.LevelLow},
		},
	}}
}

// In sets the namespace.
func (b *FindingBuilder) In(namespace string) *FindingBuilder {
	b.finding.Namespace = namespace
	return b
}

// Project sets the repository and the project.
func (b *FindingBuilder) Project(repository, project string) *FindingBuilder {
	b.finding.Spec.RepositoryRef.Name = v1alpha1.ResourceName(repository)
	b.finding.Spec.ProjectRef.Name = v1alpha1.ResourceName(project)
	return b
}

// Severity sets the severity.
func (b *FindingBuilder) Severity(severity v1alpha1.Level) *FindingBuilder {
	b.finding.Spec.Details.Severity = severity
	return b
}

// Tool sets the scanner and the category of what it looks for.
func (b *FindingBuilder) Tool(tool string, category v1alpha1.FindingCategory) *FindingBuilder {
	b.finding.Spec.Tool, b.finding.Spec.Category = tool, category
	return b
}

// Title sets the title.
func (b *FindingBuilder) Title(title string) *FindingBuilder {
	b.finding.Spec.Details.Title = title
	return b
}

// DetectedAt sets when the finding was first seen.
func (b *FindingBuilder) DetectedAt(at time.Time) *FindingBuilder {
	b.finding.Spec.DetectedAt = timePointer(at)
	return b
}

// Triage sets the triage decision.
func (b *FindingBuilder) Triage(status v1alpha1.UserStatus, comments string) *FindingBuilder {
	b.finding.Spec.Triage.UserStatus, b.finding.Spec.Triage.Comments = status, comments
	return b
}

// Closed marks the finding as closed: a scan that started at that time no longer reports it.
func (b *FindingBuilder) Closed(at time.Time, scanID string) *FindingBuilder {
	b.finding.Spec.Closed = &v1alpha1.FindingClosure{At: Time(at), ScanID: scanID}
	return b
}

// Suppressed marks the finding as suppressed in the source code.
func (b *FindingBuilder) Suppressed(kind v1alpha1.SuppressionKind, why string) *FindingBuilder {
	b.finding.Spec.Suppression = &v1alpha1.FindingSuppression{Kind: kind, Justification: why}
	return b
}

// Mutate changes what has no method of its own.
func (b *FindingBuilder) Mutate(change func(*v1alpha1.Finding)) *FindingBuilder {
	change(&b.finding)
	return b
}

// Build returns the finding.
func (b *FindingBuilder) Build() *v1alpha1.Finding { return &b.finding }
