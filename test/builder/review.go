package builder

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// ReviewBuilder builds a Review.
type ReviewBuilder struct {
	base[*ReviewBuilder, *v1alpha1.Review]
}

// Review starts a review of the open pull request 1 of repository "repo", without reviewed commits.
func Review(name string) *ReviewBuilder {
	b := &ReviewBuilder{}
	return b.start(b, "Review", name, &v1alpha1.Review{
		Spec: v1alpha1.ReviewSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "repo"},
			PRNumber:      1,
			PRStatus:      v1alpha1.PullRequestOpen,
		},
	})
}

// PullRequest sets the repository and the number.
func (b *ReviewBuilder) PullRequest(repository string, number int32) *ReviewBuilder {
	b.object.Spec.RepositoryRef.Name = v1alpha1.ResourceName(repository)
	b.object.Spec.PRNumber = number
	return b
}

// Status sets the state of the pull request.
func (b *ReviewBuilder) Status(status v1alpha1.PullRequestStatus) *ReviewBuilder {
	b.object.Spec.PRStatus = status
	return b
}

// Reviewed adds a commit after those reviewed so far.
func (b *ReviewBuilder) Reviewed(sha string, at time.Time) *ReviewBuilder {
	b.object.Spec.ReviewedCommits = append(b.object.Spec.ReviewedCommits,
		v1alpha1.ReviewedCommit{SHA: sha, ReviewedAt: v1alpha1.NewTime(at)})
	return b
}
