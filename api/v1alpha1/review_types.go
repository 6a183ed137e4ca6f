package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxReviewedCommits is the maximum number of commits in a Review.
const MaxReviewedCommits = 250

// PullRequestStatus is the status of a pull request at the provider.
//
// +kubebuilder:validation:Enum=open;closed;merged
type PullRequestStatus string

// The pull request statuses. A merged pull request stays merged.
const (
	PullRequestOpen   PullRequestStatus = "open"
	PullRequestClosed PullRequestStatus = "closed"
	PullRequestMerged PullRequestStatus = "merged"
)

// ReviewSpec describes a pull request and lists its reviewed commits.
//
// +kubebuilder:validation:XValidation:rule="self.repositoryRef == oldSelf.repositoryRef && self.prNumber == oldSelf.prNumber",message="spec.repositoryRef and spec.prNumber are immutable"
type ReviewSpec struct {
	// repositoryRef names the Repository of the pull request. Immutable.
	// +required
	RepositoryRef RepositoryReference `json:"repositoryRef"`
	// provider hosts the pull request, for example "github". At most 63 characters.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Provider string `json:"provider,omitempty"`
	// prNumber is the number of the pull request at the provider, for example 412. From 1.
	// Immutable.
	// +kubebuilder:validation:Minimum=1
	// +required
	PRNumber int32 `json:"prNumber"`
	// prTitle is the title of the pull request. At most 512 characters.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	PRTitle string `json:"prTitle,omitempty"`
	// prAuthor is the account that opened the pull request, for example "rosa". At most 256
	// characters.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	PRAuthor string `json:"prAuthor,omitempty"`
	// prStatus is open, closed or merged. A merged pull request stays merged.
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'merged' || self == 'merged'",message="a merged pull request stays merged"
	// +required
	PRStatus PullRequestStatus `json:"prStatus"`
	// reviewedCommits are the reviewed commits in the order of their review, each once. At most
	// 250; the importer drops the oldest.
	// +listType=map
	// +listMapKey=sha
	// +kubebuilder:validation:MaxItems=250
	// +optional
	ReviewedCommits []ReviewedCommit `json:"reviewedCommits,omitempty"`
}

// ReviewedCommit is a commit that was reviewed.
type ReviewedCommit struct {
	// sha is the hash of the commit, for example "9e8d7c6b". 1 to 64 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	SHA string `json:"sha"`
	// reviewedAt is when the commit was reviewed, in RFC 3339.
	// +required
	ReviewedAt Time `json:"reviewedAt"`
}

// ReviewStatus is what the controllers observe of a review.
type ReviewStatus struct {
	// observedGeneration is the metadata.generation that the status describes. If it is smaller
	// than the current one, the status is not up to date yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// closedIssueCount is the number of resolved issues.
	// +optional
	ClosedIssueCount int32 `json:"closedIssueCount"`
	// openIssueCount is the number of open issues.
	// +optional
	OpenIssueCount int32 `json:"openIssueCount"`
	// openHighCount is the number of open issues of high severity.
	// +optional
	OpenHighCount int32 `json:"openHighCount"`
	// openMediumCount is the number of open issues of medium severity.
	// +optional
	OpenMediumCount int32 `json:"openMediumCount"`
	// openLowCount is the number of open issues of low severity.
	// +optional
	OpenLowCount int32 `json:"openLowCount"`
	// openMutedCount is the number of open issues that a person muted, or that a policy mutes. They count in
	// openIssueCount too.
	// +optional
	OpenMutedCount int32 `json:"openMutedCount,omitempty"`
	// openConfirmedCount is the number of open issues that a person or a policy confirmed. They count in
	// openIssueCount too.
	// +optional
	OpenConfirmedCount int32 `json:"openConfirmedCount,omitempty"`
	// lastReviewAt is when the last reviewed commit was reviewed.
	// +optional
	LastReviewAt *Time `json:"lastReviewAt,omitempty"`
	// updatedAt is when the spec or a counter last changed, to the second. It never goes back.
	// +optional
	UpdatedAt *Time `json:"updatedAt,omitempty"`
	// transitions that the controllers observed, by seq: the last 16, and up to 24 if some are not
	// emitted yet.
	// +listType=map
	// +listMapKey=seq
	// +kubebuilder:validation:MaxItems=24
	// +optional
	Transitions []Transition `json:"transitions,omitempty"`
	// emittedSeq is the seq of the last transition whose webhook deliveries have been created or are not needed.
	// +optional
	EmittedSeq int64 `json:"emittedSeq,omitempty"`
	// conditions of the review: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// Review is the record of one pull request's reviews.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=rvw,categories=appsec
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.spec.repositoryRef.name`
// +kubebuilder:printcolumn:name="PR",type=integer,JSONPath=`.spec.prNumber`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.spec.prStatus`
// +kubebuilder:printcolumn:name="Open",type=integer,JSONPath=`.status.openIssueCount`
// +kubebuilder:printcolumn:name="Resolved",type=integer,JSONPath=`.status.closedIssueCount`
// +kubebuilder:printcolumn:name="Last Review",type=date,JSONPath=`.status.lastReviewAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Title",type=string,priority=1,JSONPath=`.spec.prTitle`
// +kubebuilder:printcolumn:name="Author",type=string,priority=1,JSONPath=`.spec.prAuthor`
// +kubebuilder:printcolumn:name="High",type=integer,priority=1,JSONPath=`.status.openHighCount`
// +kubebuilder:printcolumn:name="Medium",type=integer,priority=1,JSONPath=`.status.openMediumCount`
// +kubebuilder:printcolumn:name="Low",type=integer,priority=1,JSONPath=`.status.openLowCount`
// +kubebuilder:printcolumn:name="Muted",type=integer,priority=1,JSONPath=`.status.openMutedCount`
// +kubebuilder:printcolumn:name="Confirmed",type=integer,priority=1,JSONPath=`.status.openConfirmedCount`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:selectablefield:JSONPath=`.spec.repositoryRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.prNumber`
// +kubebuilder:selectablefield:JSONPath=`.spec.prStatus`
// +kubebuilder:selectablefield:JSONPath=`.spec.prAuthor`
type Review struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec holds the facts about the pull request and its reviewed commits.
	// +required
	Spec ReviewSpec `json:"spec"`
	// status is what the controllers observed. Only they write it.
	// +structType=atomic
	// +optional
	Status ReviewStatus `json:"status,omitzero"`
}

// ReviewList is a list of Reviews.
//
// +kubebuilder:object:root=true
type ReviewList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Review `json:"items"`
}
