package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScanAbandonedAfter is how long after its start a scan with no end counts as failed.
const ScanAbandonedAfter = time.Hour

// Reasons of a Scan's conditions.
const (
	// ReasonScanRunning goes with Ready=False: the importer is at work.
	ReasonScanRunning = "ScanRunning"
	// ReasonScanFailed goes with Ready=False: the scanner or the import failed.
	ReasonScanFailed = "ScanFailed"
	// ReasonAbandoned goes with Ready=False and Stalled=True: an hour has passed since the start and no end was recorded.
	ReasonAbandoned = "Abandoned"
)

// ScanOutcome says how a scan ended.
//
// +kubebuilder:validation:Enum=Succeeded;Failed
type ScanOutcome string

// The outcomes.
const (
	ScanSucceeded ScanOutcome = "Succeeded"
	ScanFailed    ScanOutcome = "Failed"
)

// ScanPhase says how far a scan is.
//
// +kubebuilder:validation:Enum=Running;Completed;Failed
type ScanPhase string

// The phases.
const (
	ScanPhaseRunning   ScanPhase = "Running"
	ScanPhaseCompleted ScanPhase = "Completed"
	ScanPhaseFailed    ScanPhase = "Failed"
)

// FindingCategory is the sort of thing that a scanner looks for.
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

// ScanSpec says what was scanned and how it ended. The importer sets the end once, as the
// last thing it writes.
//
// +kubebuilder:validation:XValidation:rule="has(self.completedAt) == has(self.outcome)",message="spec.completedAt and spec.outcome are set together"
// +kubebuilder:validation:XValidation:rule="self.repositoryRef == oldSelf.repositoryRef && self.projectRef == oldSelf.projectRef && self.tool == oldSelf.tool && self.category == oldSelf.category && self.startedAt == oldSelf.startedAt",message="spec.repositoryRef, projectRef, tool, category and startedAt are immutable"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.completedAt) || self == oldSelf",message="a scan that has ended is immutable"
type ScanSpec struct {
	// repositoryRef names the repository scanned. Immutable.
	// +required
	RepositoryRef RepositoryReference `json:"repositoryRef"`
	// projectRef names the project scanned. Immutable.
	// +required
	ProjectRef ProjectReference `json:"projectRef"`
	// tool is the scanner's name. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Tool string `json:"tool"`
	// toolVersion is the scanner's version.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ToolVersion string `json:"toolVersion,omitempty"`
	// category of what the scanner looked for. Immutable.
	// +required
	Category FindingCategory `json:"category"`
	// commit that was scanned.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Commit string `json:"commit,omitempty"`
	// startedAt is when the scan started. Immutable.
	// +required
	StartedAt Time `json:"startedAt"`
	// completedAt is when the scan ended; absent while it runs.
	// +optional
	CompletedAt *Time `json:"completedAt,omitempty"`
	// outcome says how the scan ended; absent while it runs.
	// +optional
	Outcome ScanOutcome `json:"outcome,omitempty"`
	// message says for people what went wrong or was passed over.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Message string `json:"message,omitempty"`
	// counts of what the import did.
	// +optional
	Counts *ScanCounts `json:"counts,omitempty"`
}

// ScanCounts are numbers of results by what the import did with each.
type ScanCounts struct {
	// created findings: not known before.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Created int32 `json:"created"`
	// updated findings: known, and a fact has changed.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Updated int32 `json:"updated"`
	// closed findings: known, and no longer reported.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Closed int32 `json:"closed"`
	// reopened findings: closed before, and reported again.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Reopened int32 `json:"reopened"`
	// unchanged findings: known, and nothing written.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Unchanged int32 `json:"unchanged"`
	// skipped results: not findings, suppressed, or not usable.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Skipped int32 `json:"skipped"`
}

// ScanStatus is what the controllers observe of a scan.
type ScanStatus struct {
	// observedGeneration is the metadata.generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase says how far the scan is.
	// +optional
	Phase ScanPhase `json:"phase,omitempty"`
	// transitions that were observed, the last 16 and every one that is not emitted yet.
	// +listType=map
	// +listMapKey=seq
	// +kubebuilder:validation:MaxItems=24
	// +optional
	Transitions []Transition `json:"transitions,omitempty"`
	// emittedSeq is the last transition whose deliveries have been made.
	// +optional
	EmittedSeq int64 `json:"emittedSeq,omitempty"`
	// conditions of the scan: Ready, Stalled.
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
// +kubebuilder:printcolumn:name="Created",type=integer,JSONPath=`.spec.counts.created`
// +kubebuilder:printcolumn:name="Closed",type=integer,JSONPath=`.spec.counts.closed`
// +kubebuilder:printcolumn:name="Started",type=date,JSONPath=`.spec.startedAt`
// +kubebuilder:printcolumn:name="Repository",type=string,priority=1,JSONPath=`.spec.repositoryRef.name`
// +kubebuilder:printcolumn:name="Category",type=string,priority=1,JSONPath=`.spec.category`
// +kubebuilder:printcolumn:name="Commit",type=string,priority=1,JSONPath=`.spec.commit`
// +kubebuilder:printcolumn:name="Updated",type=integer,priority=1,JSONPath=`.spec.counts.updated`
// +kubebuilder:printcolumn:name="Reopened",type=integer,priority=1,JSONPath=`.spec.counts.reopened`
// +kubebuilder:printcolumn:name="Unchanged",type=integer,priority=1,JSONPath=`.spec.counts.unchanged`
// +kubebuilder:printcolumn:name="Skipped",type=integer,priority=1,JSONPath=`.spec.counts.skipped`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:selectablefield:JSONPath=`.spec.repositoryRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.projectRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.tool`
// +kubebuilder:selectablefield:JSONPath=`.spec.category`
// +kubebuilder:selectablefield:JSONPath=`.spec.outcome`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
type Scan struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is what the importer recorded.
	// +required
	Spec ScanSpec `json:"spec"`
	// status is what the controllers observe.
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
