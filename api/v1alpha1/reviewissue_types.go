package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReasonReviewNotFound goes with Ready=False: the Review named is not there.
const ReasonReviewNotFound = "ReviewNotFound"

// ReviewReference names a Review in the same namespace.
type ReviewReference struct {
	// name of the Review.
	// +required
	Name ResourceName `json:"name"`
}

// ReviewIssueState says whether the last reviewed commit still shows an issue.
//
// +kubebuilder:validation:Enum=open;resolved
type ReviewIssueState string

// The review issue states.
const (
	ReviewIssueOpen     ReviewIssueState = "open"
	ReviewIssueResolved ReviewIssueState = "resolved"
)

// ReviewIssueSpec says what a review found, and in which commits.
//
// +kubebuilder:validation:XValidation:rule="self.reviewRef == oldSelf.reviewRef",message="spec.reviewRef is immutable"
type ReviewIssueSpec struct {
	// reviewRef names the Review that raised the issue. Immutable.
	// +required
	ReviewRef ReviewReference `json:"reviewRef"`
	// title of the issue in one line, for example "MD5 protects a receipt". 1 to 512 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Title string `json:"title"`
	// description of the problem. At most 16000 characters.
	// +kubebuilder:validation:MaxLength=16000
	// +optional
	Description string `json:"description,omitempty"`
	// severity of the issue, as the scanner rated it: high, medium or low.
	// +required
	Severity Level `json:"severity"`
	// file is the path relative to the root of the repository, with forward slashes, for example
	// "api/receipt.go". At most 1024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	File string `json:"file,omitempty"`
	// line of the problem, counted from 1. 0 if unknown.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Line int32 `json:"line,omitempty"`
	// commitSHA is the hash of the commit that first showed the issue. At most 64 characters.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	CommitSHA string `json:"commitSHA,omitempty"`
	// links to the provider's web pages.
	// +optional
	Links ReviewIssueLinks `json:"links,omitzero"`
	// seenInCommits are the commits that show the issue, among those that the review still keeps.
	// At most 250. Empty while commitSHA names a commit that the review no longer keeps: then the
	// issue was resolved before.
	// +listType=set
	// +kubebuilder:validation:MaxItems=250
	// +optional
	SeenInCommits []CommitSHA `json:"seenInCommits,omitempty"`
}

// CommitSHA is a commit's hash.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
type CommitSHA string

// ReviewIssueLinks are pages at the provider.
type ReviewIssueLinks struct {
	// commit is the web page of the commit that first showed the issue.
	// +kubebuilder:validation:MaxLength=1536
	// +optional
	Commit string `json:"commit,omitempty"`
	// fileLocation is the web page of the file at the line.
	// +kubebuilder:validation:MaxLength=1536
	// +optional
	FileLocation string `json:"fileLocation,omitempty"`
}

// ReviewIssueStatus is what the controllers observe of an issue, by a pure rule of the
// issue's spec and its review's.
type ReviewIssueStatus struct {
	// observedGeneration is the metadata.generation that the status describes. If it is smaller
	// than the current one, the status is not up to date yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// state is open while the last reviewed commit shows the issue, or no reviewed commit does;
	// else resolved.
	// +optional
	State ReviewIssueState `json:"state,omitempty"`
	// resolvedBy is the hash of the commit that resolved the issue: the first reviewed one after
	// the last that shows it. Absent while the issue is open.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ResolvedBy string `json:"resolvedBy,omitempty"`
	// resolvedAt is when that commit was reviewed. Absent while the issue is open.
	// +optional
	ResolvedAt *Time `json:"resolvedAt,omitempty"`
	// firstSeenAt is when the first commit that shows the issue was reviewed.
	// +optional
	FirstSeenAt *Time `json:"firstSeenAt,omitempty"`
	// lastSeenAt is when the last commit that shows the issue was reviewed.
	// +optional
	LastSeenAt *Time `json:"lastSeenAt,omitempty"`
	// updatedAt is when the spec or the state last changed, to the second. It never goes back.
	// +optional
	UpdatedAt *Time `json:"updatedAt,omitempty"`
	// transitions that the controllers observed, by seq: the last 16, and up to 24 if some are not
	// emitted yet.
	// +listType=map
	// +listMapKey=seq
	// +kubebuilder:validation:MaxItems=24
	// +optional
	Transitions []Transition `json:"transitions,omitempty"`
	// emittedSeq is the seq of the last transition whose webhook deliveries have been made or are
	// not needed.
	// +optional
	EmittedSeq int64 `json:"emittedSeq,omitempty"`
	// conditions of the issue: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// ReviewIssue is a problem that the review of a pull request raised.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=rvi,categories=appsec
// +kubebuilder:printcolumn:name="Review",type=string,JSONPath=`.spec.reviewRef.name`
// +kubebuilder:printcolumn:name="Severity",type=string,JSONPath=`.spec.severity`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.spec.title`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="File",type=string,priority=1,JSONPath=`.spec.file`
// +kubebuilder:printcolumn:name="Line",type=integer,priority=1,JSONPath=`.spec.line`
// +kubebuilder:printcolumn:name="Resolved By",type=string,priority=1,JSONPath=`.status.resolvedBy`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:selectablefield:JSONPath=`.spec.reviewRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.severity`
// +kubebuilder:selectablefield:JSONPath=`.status.state`
type ReviewIssue struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is what is declared.
	// +required
	Spec ReviewIssueSpec `json:"spec"`
	// status is what the controllers observed. Only they write it.
	// +structType=atomic
	// +optional
	Status ReviewIssueStatus `json:"status,omitzero"`
}

// ReviewIssueList is a list of ReviewIssues.
//
// +kubebuilder:object:root=true
type ReviewIssueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ReviewIssue `json:"items"`
}
