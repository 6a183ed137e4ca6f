package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReasonReviewNotFound goes with Ready=False: the Review in spec.reviewRef does not exist.
const ReasonReviewNotFound = "ReviewNotFound"

// ReviewReference names a Review in the same namespace.
type ReviewReference struct {
	// name of the Review.
	// +required
	Name ResourceName `json:"name"`
}

// ReviewIssueState is whether the last reviewed commit still shows an issue.
//
// +kubebuilder:validation:Enum=open;resolved
type ReviewIssueState string

// The review issue states.
const (
	ReviewIssueOpen     ReviewIssueState = "open"
	ReviewIssueResolved ReviewIssueState = "resolved"
)

// ReviewIssueSpec describes a problem in a pull request, the commits that show it, and people's decision about
// it.
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
	// result is the part of the scanner's result that policies and the base branch need. Written by the import of
	// reviews, from the last reviewed commit that shows the issue. Absent: an earlier version imported the issue,
	// or it was not imported.
	// +structType=atomic
	// +optional
	Result *ReviewIssueResult `json:"result,omitempty"`
	// triage is the decision of people. Changing it requires the verb triage on reviewissues; an import
	// never does.
	// +kubebuilder:default={userStatus: "open"}
	// +optional
	Triage ReviewIssueTriage `json:"triage,omitzero"`
}

// ReviewIssueTriage is what people decided about an issue.
//
// +kubebuilder:validation:XValidation:rule="has(self.userStatus) && self.userStatus != 'open' || (!has(self.reason) || oldSelf.?reason.orValue(\"\") == self.reason) && (!has(self.expiresAt) || oldSelf.?expiresAt.orValue(\"\") == self.expiresAt)",message="reason and expiresAt belong to a decision: userStatus must be active or muted",optionalOldSelf=true
type ReviewIssueTriage struct {
	// userStatus is the decision: open (nobody has decided), active (confirmed) or muted (not to be
	// acted on).
	// +kubebuilder:default=open
	// +optional
	UserStatus UserStatus `json:"userStatus,omitempty"`
	// reason for the decision, as for findings: false-positive, not-reachable, mitigated-elsewhere, accepted-risk,
	// used-in-tests, will-not-fix or duplicate. Removed when userStatus becomes open, and with the first new
	// userStatus after the end, unless that request changes it or expiresAt. An Organization may require one to
	// mute (spec.triage.requireReason).
	// +optional
	Reason DecisionReason `json:"reason,omitempty"`
	// expiresAt is when the decision ends, for example "2026-12-31T00:00:00Z". The controllers record the end in
	// status.endedAt; userStatus here stays as it was written. Removed when userStatus becomes open, and with the
	// first new userStatus after the end, unless that request changes it. Absent: the decision does not end.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`
	// comments explain the decision. At most 10000 characters.
	// +kubebuilder:validation:MaxLength=10000
	// +optional
	Comments string `json:"comments,omitempty"`
	// by is the name of whoever decided, for example "ann@example.com". The API server sets it to the name of the
	// authenticated user; a value that a client sends is overwritten, unless it restores a backup.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	By string `json:"by,omitempty"`
}

// ReviewIssueResult is what a scanner reported in a commit of a pull request, in the terms of a finding's facts.
type ReviewIssueResult struct {
	// key by which the result is recognised in the base branch: a digest of repository, tool, rule, file and evidence, for
	// example "hb5vsq7wxwdeqplxqo6bkyfxyi". At most 32 characters. Absent: the commit has several results that differ only
	// in their lines.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Key string `json:"key,omitempty"`
	// project whose findings the pull request was compared with. Absent: those that hold the results.
	// +optional
	Project ResourceName `json:"project,omitempty"`
	// tool is the name of the scanner, for example "gosec".
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Tool string `json:"tool,omitempty"`
	// analysis whose scans report the issue, for example "/language:ruby".
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Analysis string `json:"analysis,omitempty"`
	// category of the issue: Code, Package or Secret.
	// +optional
	Category FindingCategory `json:"category,omitempty"`
	// ruleID is the scanner's id of the violated rule, for example "G201".
	// +kubebuilder:validation:MaxLength=512
	// +optional
	RuleID string `json:"ruleID,omitempty"`
	// class of weakness: the CWE if the scanner names one, for example "CWE-89", else the rule's id.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Class string `json:"class,omitempty"`
	// confidence of the scanner that the issue is real: high, medium or low.
	// +optional
	Confidence Level `json:"confidence,omitempty"`
	// secretType is the type of secret, for issues of category Secret.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	SecretType string `json:"secretType,omitempty"`
	// score of the issue from 0.0 to 10.0, as the scanner gives it.
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^(10\.0|[0-9]\.[0-9])$`
	// +optional
	Score string `json:"score,omitempty"`
	// toolSeverity is the scanner's own word for the severity, for example "CRITICAL".
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ToolSeverity string `json:"toolSeverity,omitempty"`
	// vulnerability that the issue reports, if it has a public or a vendor's id.
	// +optional
	Vulnerability *FindingVulnerability `json:"vulnerability,omitempty"`
	// package that the issue is in, for issues about a dependency or an installed package.
	// +optional
	Package *FindingPackage `json:"package,omitempty"`
	// fingerprints as the scanner reported them.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Fingerprints []Fingerprint `json:"fingerprints,omitempty"`
	// evidence by which the next review recognises the issue, as that of a finding. At most 64 characters, for
	// comparison only. Absent: an earlier version imported the issue.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Evidence string `json:"evidence,omitempty"`
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

// ReviewIssueStatus is what the controllers observe of an issue. It follows from the specs of the issue and its
// review.
type ReviewIssueStatus struct {
	// observedGeneration is the metadata.generation that the status describes. If it is smaller
	// than the current one, the status is not up to date yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// state is open while the last reviewed commit shows the issue, or no reviewed commit does; else resolved. An issue
	// with a commitSHA and an empty seenInCommits, because the review no longer keeps the commits that showed it, is
	// resolved even if no reviewed commit shows it.
	// +optional
	State ReviewIssueState `json:"state,omitempty"`
	// resolvedBy is the hash of the commit that resolved the issue: the first reviewed one after
	// the last that shows it. Absent while the issue is open, or if the review no longer keeps that commit.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ResolvedBy string `json:"resolvedBy,omitempty"`
	// resolvedAt is when that commit was reviewed. Absent like resolvedBy.
	// +optional
	ResolvedAt *Time `json:"resolvedAt,omitempty"`
	// userStatus is the decision in force: that of spec.triage, or open if that has ended.
	// +optional
	UserStatus UserStatus `json:"userStatus,omitempty"`
	// endedAt is the spec.triage.expiresAt of a decision that has ended. Absent while the decision is in force.
	// +optional
	EndedAt *Time `json:"endedAt,omitempty"`
	// verdict is a TriagePolicy's decision. Absent if no policy in force matches, or if a person has decided.
	// +optional
	Verdict *FindingVerdict `json:"verdict,omitempty"`
	// triageDigest is a digest of the triage that the last reconcile observed; the next one compares with it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TriageDigest string `json:"triageDigest,omitempty"`
	// firstSeenAt is when the first commit that shows the issue was reviewed.
	// +optional
	FirstSeenAt *Time `json:"firstSeenAt,omitempty"`
	// lastSeenAt is when the last commit that shows the issue was reviewed.
	// +optional
	LastSeenAt *Time `json:"lastSeenAt,omitempty"`
	// updatedAt is when the spec or the state last changed, a decision ended or a policy changed its verdict, to the
	// second. It never goes back.
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
// +kubebuilder:printcolumn:name="Triage",type=string,JSONPath=`.status.userStatus`
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.spec.title`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="File",type=string,priority=1,JSONPath=`.spec.file`
// +kubebuilder:printcolumn:name="Line",type=integer,priority=1,JSONPath=`.spec.line`
// +kubebuilder:printcolumn:name="Resolved By",type=string,priority=1,JSONPath=`.status.resolvedBy`
// +kubebuilder:printcolumn:name="Triaged By",type=string,priority=1,JSONPath=`.spec.triage.by`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.spec.triage.reason`
// +kubebuilder:printcolumn:name="Until",type=string,priority=1,JSONPath=`.spec.triage.expiresAt`
// +kubebuilder:printcolumn:name="Verdict",type=string,priority=1,JSONPath=`.status.verdict.userStatus`
// +kubebuilder:printcolumn:name="Policy",type=string,priority=1,JSONPath=`.status.verdict.policy`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:selectablefield:JSONPath=`.spec.reviewRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.severity`
// +kubebuilder:selectablefield:JSONPath=`.status.state`
// +kubebuilder:selectablefield:JSONPath=`.spec.triage.userStatus`
type ReviewIssue struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec holds the facts and the triage.
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
