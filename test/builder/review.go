package builder

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// ReviewBuilder builds a Review.
type ReviewBuilder struct{ object v1alpha1.Review }

// Review starts a review of the open pull request 1 of repository "repo", without reviewed commits.
func Review(name string) *ReviewBuilder {
	return &ReviewBuilder{object: v1alpha1.Review{
		TypeMeta:   typeMeta("Review"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ReviewSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "repo"},
			PRNumber:      1,
			PRStatus:      v1alpha1.PullRequestOpen,
		},
	}}
}

// In sets the namespace.
func (b *ReviewBuilder) In(namespace string) *ReviewBuilder {
	b.object.Namespace = namespace
	return b
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
		v1alpha1.ReviewedCommit{SHA: sha, ReviewedAt: Time(at)})
	return b
}

// Mutate changes what has no method of its own.
func (b *ReviewBuilder) Mutate(change func(*v1alpha1.Review)) *ReviewBuilder {
	change(&b.object)
	return b
}

// Build returns the review.
func (b *ReviewBuilder) Build() *v1alpha1.Review { return &b.object }
