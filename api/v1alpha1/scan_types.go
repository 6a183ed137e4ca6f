package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScanAbandonedAfter is the time after its start when a scan with neither an end nor a Lease counts as failed.
const ScanAbandonedAfter = time.Hour

// ConditionSettled of a Scan reports whether the status of every finding that the scan changed is recorded: what lists,
// webhooks and counts show is complete then. Absent while the scan runs, and for scans of pull requests.
const ConditionSettled = "Settled"

// Reasons of a Scan's conditions.
const (
	// ReasonStatusesPending goes with Settled=False: the controllers have not recorded all statuses yet.
	ReasonStatusesPending = "StatusesPending"
	// ReasonStatusesRecorded goes with Settled=True.
	ReasonStatusesRecorded = "StatusesRecorded"
	// ReasonScanRunning goes with Ready=False: the import is running.
	ReasonScanRunning = "ScanRunning"
	// ReasonScanFailed goes with Ready=False: the scanner or the import failed.
	ReasonScanFailed = "ScanFailed"
	// ReasonAbandoned goes with Ready=False and Stalled=True: no end was recorded, and the import no longer renews its
	// Lease. For a scan without a Lease: an hour has passed since the start.
	ReasonAbandoned = "Abandoned"
)

// ScanOutcome is the result of a scan that has ended.
//
// +kubebuilder:validation:Enum=Succeeded;Failed
type ScanOutcome string

// The outcomes.
const (
	ScanSucceeded ScanOutcome = "Succeeded"
	ScanFailed    ScanOutcome = "Failed"
)

// ScanPhase is the progress of a scan.
//
// +kubebuilder:validation:Enum=Running;Completed;Failed
type ScanPhase string

// The phases.
const (
	ScanPhaseRunning   ScanPhase = "Running"
	ScanPhaseCompleted ScanPhase = "Completed"
	ScanPhaseFailed    ScanPhase = "Failed"
)

// FindingCategory is the type of problem that a scanner looks for.
//
// +kubebuilder:validation:Enum=Code;Package;Secret
type FindingCategory string

// The categories.
const (
	// CategoryCode is a weakness in code or configuration.
	CategoryCode FindingCategory = "Code"
	// CategoryPackage is a known vulnerability of a package that is used.
	CategoryPackage FindingCategory = "Package"
	// CategorySecret is a credential where it should not be.
	CategorySecret FindingCategory = "Secret"
)

// FindingCategories are all categories.
func FindingCategories() []FindingCategory {
	return []FindingCategory{CategoryCode, CategoryPackage, CategorySecret}
}

// ScanSpec describes what was scanned and how the scan ended. The importer sets the end once, as its last
// write.
//
// +kubebuilder:validation:XValidation:rule="has(self.completedAt) == has(self.outcome)",message="spec.completedAt and spec.outcome are set together"
// +kubebuilder:validation:XValidation:rule="self.repositoryRef == oldSelf.repositoryRef && self.projectRef == oldSelf.projectRef && self.tool == oldSelf.tool && self.category == oldSelf.category && has(self.analysis) == has(oldSelf.analysis) && (!has(self.analysis) || self.analysis == oldSelf.analysis) && self.startedAt == oldSelf.startedAt",message="spec.repositoryRef, projectRef, tool, category, analysis and startedAt are immutable"
// +kubebuilder:validation:XValidation:rule="has(self.upload) == has(oldSelf.upload) && (!has(self.upload) || self.upload == oldSelf.upload) && has(self.importedBy) == has(oldSelf.importedBy) && (!has(self.importedBy) || self.importedBy == oldSelf.importedBy) && has(self.lease) == has(oldSelf.lease) && (!has(self.lease) || self.lease == oldSelf.lease)",message="spec.upload, importedBy and lease are immutable"
// +kubebuilder:validation:XValidation:rule="has(self.review) == has(oldSelf.review) && (!has(self.review) || self.review.name == oldSelf.review.name && self.review.prNumber == oldSelf.review.prNumber)",message="spec.review.name and prNumber are immutable"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.completedAt) || self == oldSelf",message="a scan that has ended is immutable"
type ScanSpec struct {
	// repositoryRef names the scanned Repository. Immutable.
	// +required
	RepositoryRef RepositoryReference `json:"repositoryRef"`
	// projectRef names the scanned Project. Immutable.
	// +required
	ProjectRef ProjectReference `json:"projectRef"`
	// tool is the name of the scanner, for example "gosec". 1 to 128 characters. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Tool string `json:"tool"`
	// toolVersion is the version of the scanner, for example "2.22.0". At most 128 characters.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ToolVersion string `json:"toolVersion,omitempty"`
	// category of what the scanner looked for: Code, Package or Secret. Immutable.
	// +required
	Category FindingCategory `json:"category"`
	// analysis distinguishes scans of one tool and category that cover different parts of the project, for example
	// "/language:ruby". A scan replaces only the findings of its own analysis. Written by the importer, from
	// automationDetails.id of the file up to its last slash; at most 256 characters. Immutable. Absent: the scan has no
	// analysis.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Analysis string `json:"analysis,omitempty"`
	// commit is the hash of the scanned commit, for example "8f3e1c2d". At most 128 characters.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Commit string `json:"commit,omitempty"`
	// startedAt is when the scan started, in RFC 3339. Immutable.
	// +required
	StartedAt Time `json:"startedAt"`
	// completedAt is when the scan ended, or, if an import of findings may have lost its Lease, when that last held it;
	// in RFC 3339. The importer sets it once, together with outcome, as its last write. Absent while the scan runs.
	// +optional
	CompletedAt *Time `json:"completedAt,omitempty"`
	// outcome is Succeeded or Failed. Absent while the scan runs.
	// +optional
	Outcome ScanOutcome `json:"outcome,omitempty"`
	// message describes for people what failed or was skipped. At most 4096 characters.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Message string `json:"message,omitempty"`
	// counts are the numbers of results by what the import did with them.
	// +optional
	Counts *ScanCounts `json:"counts,omitempty"`
	// upload is the REST request that uploaded the scan. One upload can create several scans. Immutable. Absent:
	// the scan was not uploaded.
	// +optional
	Upload *ScanUpload `json:"upload,omitempty"`
	// importedBy is the API key that the scan was uploaded with, for example "apikey/ci". At most 320
	// characters. Immutable. Absent: the scan was not uploaded.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	ImportedBy string `json:"importedBy,omitempty"`
	// lease is the heartbeat of the import: the Lease that it holds while it runs. If it is not renewed,
	// the scan counts as abandoned. Immutable. Absent: the scan counts as abandoned an hour after its start.
	// +optional
	Lease *ScanLease `json:"lease,omitempty"`
	// progress is the number of the import's changes that are written. The importer updates it every 5 seconds at
	// most, and at the end. Absent until the import knows what it has to write.
	// +optional
	Progress *ScanProgress `json:"progress,omitempty"`
	// lastChange is the finding that the import wrote last, set at the end. The condition Settled waits until the
	// controllers have seen it. Absent: no finding was written.
	// +optional
	LastChange *ScanChange `json:"lastChange,omitempty"`
	// skippedBecause counts the skipped results by reason, written at the end. At most 32 reasons, the
	// most frequent first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	SkippedBecause []ScanSkip `json:"skippedBecause,omitempty"`
	// warnings are events that somebody should check, for example that a repository was created, written at the
	// end. At most 32 of at most 512 characters.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	// +optional
	Warnings []string `json:"warnings,omitempty"`
	// review is the pull request that was scanned. Such a scan was uploaded over REST, changed issues of the
	// Review and no finding, and its counts refer to issues. It does not count as a scan of the project. Absent:
	// the scan is of the repository's scan branch.
	// +optional
	Review *ScanReview `json:"review,omitempty"`
}

// IsOfReview reports whether the scan is of a pull request: imports, projects and repositories ignore it.
func (s *Scan) IsOfReview() bool { return s.Spec.Review != nil }

// Began returns when the scan started. A recorded start after the creation of the Scan is that of a clock that was
// ahead, by which the scan would count as newer than those that really came later: then it is the creation.
func (s *Scan) Began() time.Time {
	if created := s.CreationTimestamp.Time; !created.IsZero() && created.Before(s.Spec.StartedAt.Time) {
		return created
	}
	return s.Spec.StartedAt.Time
}

// SettledAt returns when the status of every finding that the scan changed was recorded, nil if that is not so.
func (s *Scan) SettledAt() *Time {
	condition := FindCondition(s.Status.Conditions, ConditionSettled)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	return &condition.LastTransitionTime
}

// IsRefused reports whether the scan records an upload that was refused before its import began: nothing was scanned.
func (s *Scan) IsRefused() bool {
	return s.Spec.Upload != nil && s.Spec.Lease == nil && s.Spec.Outcome == ScanFailed
}

// Uncounted returns the value of UncountedLabel for the scan; empty for a scan of the scan branch, which may not have
// the label.
func (s *Scan) Uncounted() string {
	switch {
	case s.IsOfReview():
		return UncountedReview
	case s.IsRefused():
		return UncountedRefused
	}
	return ""
}

// WroteFindings reports whether the import got as far as writing findings.
func (s *Scan) WroteFindings() bool { return s.Spec.Outcome == ScanSucceeded || s.Spec.Progress != nil }

// MaxScanSkips is the maximum number of skip reasons in a Scan, MaxScanSkipReason the maximum length of each.
const (
	MaxScanSkips      = 32
	MaxScanSkipReason = 128
)

// MaxScanWarnings is the maximum number of warnings in a Scan, MaxScanWarning the maximum length of each.
const (
	MaxScanWarnings = 32
	MaxScanWarning  = 512
)

// ScanUpload is the upload that created a scan.
type ScanUpload struct {
	// id of the upload, for example "u-3f6d1a3b5c0e4f6f8a7b9c0d1e": a DNS label, at most 63 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	ID string `json:"id"`
	// scans is the number of scans that the upload created, from 1.
	// +kubebuilder:validation:Minimum=1
	// +required
	Scans int32 `json:"scans"`
}

// ScanLease is a Lease in the namespace of the scan, and who must hold it.
type ScanLease struct {
	// name of the Lease (coordination.k8s.io), for example "import-3f6d1a3b5c0e4f6f8a7b9c0d1e". At most
	// 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// holder is the identity of the import in the Lease, for example
	// "runner-7_4be8e2a2-7c0e-4a5e-9d2e-3f6d1a3b5c0e". If another holds the Lease, the import is over. 1 to
	// 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Holder string `json:"holder"`
}

// ScanProgress is the progress of an import.
type ScanProgress struct {
	// done is the number of changes that are written.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Done int32 `json:"done"`
	// total is the number of findings that the import has to create, change or close.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Total int32 `json:"total"`
}

// ScanChange is a finding that an import wrote.
type ScanChange struct {
	// finding is the name of the Finding, for example "f-3f6d1a3b5c0e4f6f8a7b9c0d1e". 1 to 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Finding string `json:"finding"`
	// resourceVersion of the Finding after the write, for example "48211". 1 to 64 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	ResourceVersion string `json:"resourceVersion"`
}

// ScanSkip is a reason for skipping results, with their number.
type ScanSkip struct {
	// reason for people, for example "suppressed in the source". At most 128 characters.
	// +kubebuilder:validation:MaxLength=128
	// +required
	Reason string `json:"reason"`
	// count is the number of results that were skipped for this reason.
	// +kubebuilder:validation:Minimum=0
	// +required
	Count int32 `json:"count"`
}

// ScanReview is the scanned pull request and the recorded result.
type ScanReview struct {
	// name of the Review, for example "r-3f6d1a3b5c0e4f6f8a7b9c0d1e". It exists once the scan has
	// succeeded. 1 to 253 characters. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// prNumber is the number of the pull request at the provider, for example 412. From 1. Immutable.
	// +kubebuilder:validation:Minimum=1
	// +required
	PRNumber int32 `json:"prNumber"`
	// failOn is the gate that the upload requested: high, medium or new. Absent: none.
	// +kubebuilder:validation:Enum=high;medium;new
	// +optional
	FailOn string `json:"failOn,omitempty"`
	// result is what the upload found in the pull request, the same in all its scans. Written at the
	// end, if the scan succeeded.
	// +optional
	Result *ScanReviewResult `json:"result,omitempty"`
}

// Bounds of what a Scan keeps of a review.
const (
	MaxScanReviewIssues    = 20
	MaxScanReviewTitle     = 160
	MaxScanReviewPlace     = 200
	MaxScanReviewUnscanned = 32
	MaxScanReviewScan      = 512
)

// ScanReviewResult is how an upload compares with the issues of a pull request and with the base branch.
type ScanReviewResult struct {
	// created is the number of issues that no earlier commit showed.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Created int32 `json:"created"`
	// reopened is the number of resolved issues that the commit shows again.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Reopened int32 `json:"reopened"`
	// seen is the number of issues, already open, that the commit also shows.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Seen int32 `json:"seen"`
	// unchanged is the number of issues already recorded for this commit.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Unchanged int32 `json:"unchanged"`
	// resolved is the number of open issues that the commit does not show.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Resolved int32 `json:"resolved"`
	// skipped is the number of results that became no issue.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Skipped int32 `json:"skipped"`
	// known is the number of results that are findings of the base branch.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Known int32 `json:"known"`
	// inDoubt is how many of the known results may be another problem of the same kind.
	// +kubebuilder:validation:Minimum=0
	// +optional
	InDoubt int32 `json:"inDoubt"`
	// unsuppressed is how many of the known results the source of the base branch suppresses, and the commit does not.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Unsuppressed int32 `json:"unsuppressed,omitempty"`
	// replaced is how many results count as issues because a finding that is muted in the base branch has other code.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replaced int32 `json:"replaced,omitempty"`
	// fixed is the number of findings of the base branch that the commit does not show.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Fixed int32 `json:"fixed"`
	// openHigh is the number of open issues of high severity after the review.
	// +kubebuilder:validation:Minimum=0
	// +optional
	OpenHigh int32 `json:"openHigh"`
	// openMedium is the number of open issues of medium severity after the review.
	// +kubebuilder:validation:Minimum=0
	// +optional
	OpenMedium int32 `json:"openMedium"`
	// openLow is the number of open issues of low severity after the review.
	// +kubebuilder:validation:Minimum=0
	// +optional
	OpenLow int32 `json:"openLow"`
	// unscanned lists the scans without a counterpart in the base branch: all their results count as new. At most
	// 32 of at most 512 characters.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	// +optional
	Unscanned []string `json:"unscanned,omitempty"`
	// scannerWarnings is how many warnings the scanners gave, about files that they could not read or about their
	// configuration. They come first in the warnings of the same scan, which has room for 32; the upload's other scans
	// have 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ScannerWarnings int32 `json:"scannerWarnings,omitempty"`
	// issues are the most severe open issues after the review. At most 20.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Issues []ScanReviewIssue `json:"issues,omitempty"`
}

// ScanReviewIssue is an open issue of a pull request as of the end of a scan.
type ScanReviewIssue struct {
	// name of the ReviewIssue. 1 to 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// severity is high, medium or low.
	// +required
	Severity Level `json:"severity"`
	// title of the issue, for example "SQL string formatting". At most 160 characters.
	// +kubebuilder:validation:MaxLength=160
	// +optional
	Title string `json:"title,omitempty"`
	// place is the file and the line, for example "src/db.go:42". At most 200 characters.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	Place string `json:"place,omitempty"`
	// new is true if the previous commit did not show the issue.
	// +optional
	New bool `json:"new,omitempty"`
}

// ScanCounts are numbers of results by what the import did with each.
type ScanCounts struct {
	// created is the number of new findings.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Created int32 `json:"created"`
	// updated is the number of known findings with a changed fact.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Updated int32 `json:"updated"`
	// closed is the number of known findings that are no longer reported.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Closed int32 `json:"closed"`
	// reopened is the number of closed findings that are reported again.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Reopened int32 `json:"reopened"`
	// unchanged is the number of known findings that were not written.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Unchanged int32 `json:"unchanged"`
	// skipped is the number of results that are not findings, are suppressed, or cannot be used.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Skipped int32 `json:"skipped"`
}

// ScanStatus is what the controllers observe of a scan.
type ScanStatus struct {
	// observedGeneration is the metadata.generation that the status describes. If it is smaller
	// than the current one, the status is not up to date yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is Running, Completed or Failed. A scan without an end is Failed once its import no longer
	// renews its Lease; if it names none, an hour after its start.
	// +optional
	Phase ScanPhase `json:"phase,omitempty"`
	// progress is spec.progress as the columns of kubectl show it, for example "1200/5000". At most 32
	// characters.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Progress string `json:"progress,omitempty"`
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
	// conditions of the scan: Ready, Stalled, Settled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// Scan is one run of a scanner over a project, as the importer recorded it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=scn,categories=appsec
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectRef.name`
// +kubebuilder:printcolumn:name="Tool",type=string,JSONPath=`.spec.tool`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Created",type=integer,JSONPath=`.spec.counts.created`
// +kubebuilder:printcolumn:name="Closed",type=integer,JSONPath=`.spec.counts.closed`
// +kubebuilder:printcolumn:name="Started",type=date,JSONPath=`.spec.startedAt`
// +kubebuilder:printcolumn:name="Repository",type=string,priority=1,JSONPath=`.spec.repositoryRef.name`
// +kubebuilder:printcolumn:name="Category",type=string,priority=1,JSONPath=`.spec.category`
// +kubebuilder:printcolumn:name="Analysis",type=string,priority=1,JSONPath=`.spec.analysis`
// +kubebuilder:printcolumn:name="Commit",type=string,priority=1,JSONPath=`.spec.commit`
// +kubebuilder:printcolumn:name="Updated",type=integer,priority=1,JSONPath=`.spec.counts.updated`
// +kubebuilder:printcolumn:name="Reopened",type=integer,priority=1,JSONPath=`.spec.counts.reopened`
// +kubebuilder:printcolumn:name="Unchanged",type=integer,priority=1,JSONPath=`.spec.counts.unchanged`
// +kubebuilder:printcolumn:name="Skipped",type=integer,priority=1,JSONPath=`.spec.counts.skipped`
// +kubebuilder:printcolumn:name="Imported By",type=string,priority=1,JSONPath=`.spec.importedBy`
// +kubebuilder:printcolumn:name="Upload",type=string,priority=1,JSONPath=`.spec.upload.id`
// +kubebuilder:printcolumn:name="PR",type=integer,priority=1,JSONPath=`.spec.review.prNumber`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:selectablefield:JSONPath=`.spec.repositoryRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.projectRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.tool`
// +kubebuilder:selectablefield:JSONPath=`.spec.category`
// +kubebuilder:selectablefield:JSONPath=`.spec.analysis`
// +kubebuilder:selectablefield:JSONPath=`.spec.outcome`
// +kubebuilder:selectablefield:JSONPath=`.spec.upload.id`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
type Scan struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is what the importer recorded.
	// +required
	Spec ScanSpec `json:"spec"`
	// status is what the controllers observed. Only they write it.
	// +optional
	Status ScanStatus `json:"status,omitzero"`
}

// ScanList is a list of Scans.
//
// +kubebuilder:object:root=true
type ScanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Scan `json:"items"`
}
