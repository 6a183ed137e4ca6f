package builder

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// ReviewIssueBuilder builds a ReviewIssue.
type ReviewIssueBuilder struct {
	base[*ReviewIssueBuilder, *v1alpha1.ReviewIssue]
}

// ReviewIssue starts an issue of low severity in review "review", not seen in any commit.
func ReviewIssue(name string) *ReviewIssueBuilder {
	b := &ReviewIssueBuilder{}
	return b.start(b, "ReviewIssue", name, &v1alpha1.ReviewIssue{
		Spec: v1alpha1.ReviewIssueSpec{
			ReviewRef: v1alpha1.ReviewReference{Name: "review"},
			Title:     "Title of " + name,
			Severity:  v1alpha1.LevelLow,
		},
	})
}

// Review sets the review.
func (b *ReviewIssueBuilder) Review(name string) *ReviewIssueBuilder {
	b.object.Spec.ReviewRef.Name = v1alpha1.ResourceName(name)
	return b
}

// Severity sets the severity.
func (b *ReviewIssueBuilder) Severity(severity v1alpha1.Level) *ReviewIssueBuilder {
	b.object.Spec.Severity = severity
	return b
}

// SeenIn adds commits that show the issue; the first commit added becomes the issue's first commit.
func (b *ReviewIssueBuilder) SeenIn(commits ...v1alpha1.CommitSHA) *ReviewIssueBuilder {
	if b.object.Spec.CommitSHA == "" && len(commits) > 0 {
		b.object.Spec.CommitSHA = string(commits[0])
	}
	b.object.Spec.SeenInCommits = append(b.object.Spec.SeenInCommits, commits...)
	return b
}
