package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperationsServiceAccount is the name, in each organization's namespace, under which the controllers write what
// TriageOperations decide. It may triage there and nothing else. No ServiceAccount is made.
const OperationsServiceAccount = "findings-operations"

// OperationAuthorPrefix comes before a TriageOperation's name in spec.triage.by of what it has decided.
const OperationAuthorPrefix = "operation/"

// MaxOperationFindings is how many findings an operation may cover.
const MaxOperationFindings = 50000

// ReasonInProgress goes with Ready=False: the operation is selecting its findings, or works through them.
const ReasonInProgress = "InProgress"

// Reasons of Stalled of a TriageOperation.
const (
	// ReasonTooManyFindings: the selection matches more findings than an operation may cover.
	ReasonTooManyFindings = "TooManyFindings"
	// ReasonTooManyOperations: as many others are kept as may be in an organization.
	ReasonTooManyOperations = "TooManyOperations"
	// ReasonInvalidSelection: a selector in spec.select cannot be read.
	ReasonInvalidSelection = "InvalidSelection"
	// ReasonNotUndoable: what is to be undone does not exist, was not committed, or is not completed.
	ReasonNotUndoable = "NotUndoable"
	// ReasonPartsLost: a part of the operation's set has been removed or cannot be read.
	ReasonPartsLost = "PartsLost"
)

// OperationPhase says how far a TriageOperation is.
//
// +kubebuilder:validation:Enum=Selecting;Preview;Running;Completed;Failed
type OperationPhase string

// The phases.
const (
	// OperationSelecting: its findings are being selected.
	OperationSelecting OperationPhase = "Selecting"
	// OperationPreview: they are selected, and nothing happens until it is committed.
	OperationPreview OperationPhase = "Preview"
	// OperationRunning: it is committed, and works through its findings.
	OperationRunning OperationPhase = "Running"
	// OperationCompleted: it has worked through all of them.
	OperationCompleted OperationPhase = "Completed"
	// OperationFailed: it cannot go on; the condition Stalled says why.
	OperationFailed OperationPhase = "Failed"
)

// Bounds of what a TriageOperation's status lists.
const (
	// MaxOperationSamples is how many findings are named.
	MaxOperationSamples = 10
	// MaxOperationDeciders is how many of those who had decided before are named.
	MaxOperationDeciders = 10
)

// TriageOperationSpec says which findings are decided about, and how; or which operation is undone. Once it is stored,
// only commit changes.
//
// +kubebuilder:validation:XValidation:rule="has(self.undo) ? !has(self.select) && !has(self.set) : has(self.select) && has(self.set)",message="an operation has select and set, or undo alone"
// +kubebuilder:validation:XValidation:rule="has(self.undo) == has(oldSelf.undo) && has(self.select) == has(oldSelf.select) && has(self.set) == has(oldSelf.set) && (!has(self.undo) || self.undo == oldSelf.undo) && (!has(self.select) || self.select == oldSelf.select) && (!has(self.set) || self.set == oldSelf.set)",message="select, set and undo are immutable: make another operation"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.commit) || !oldSelf.commit || has(self.commit) && self.commit",message="what is committed stays so: undo it with another operation"
type TriageOperationSpec struct {
	// select says which findings. The operation keeps to those that match when it is made.
	// +optional
	Select *FindingSelection `json:"select,omitempty"`
	// set is what is decided about each of them.
	// +optional
	Set *OperationDecision `json:"set,omitempty"`
	// undo names a completed TriageOperation. Each finding whose decision is still that operation's gets back the
	// status, reason, comments and end that it had before.
	// +optional
	Undo ResourceName `json:"undo,omitempty"`
	// commit has the operation done. Without it the status shows what it would do. Default: false.
	// +optional
	Commit bool `json:"commit,omitempty"`
	// by is who made the operation, for example "ann@example.com". The API server stamps it with the name of the
	// authenticated user; a value that a client sends is overwritten. At most 320 characters.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	By string `json:"by,omitempty"`
	// committedBy is who committed it, stamped like by.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	CommittedBy string `json:"committedBy,omitempty"`
}

// FindingSelection says which findings are meant: those named in ids, or all of the namespace that have everything that
// the other members ask for.
//
// +kubebuilder:validation:XValidation:rule="has(self.ids) != (has(self.state) || has(self.userStatus) || has(self.severity) || has(self.repository) || has(self.project) || has(self.class) || has(self.tool) || has(self.rule) || has(self.vulnerability) || has(self.package) || has(self.owner) || has(self.category) || has(self.createdSince) || has(self.createdUntil) || has(self.updatedSince) || has(self.updatedUntil) || has(self.minScore) || has(self.text) || has(self.stale) || has(self.suppressed) || has(self.policy) || has(self.file) || has(self.labelSelector) || has(self.fieldSelector))",message="select has ids, or at least one filter, and not both"
type FindingSelection struct {
	// ids are names of findings, at most 400.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=400
	// +optional
	IDs []ResourceName `json:"ids,omitempty"`
	// state of the finding: open, open_muted or closed. Several mean any of them.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +optional
	State []FindingState `json:"state,omitempty"`
	// userStatus in force: open, active or muted. Several mean any of them.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +optional
	UserStatus []UserStatus `json:"userStatus,omitempty"`
	// severity: high, medium or low. Several mean any of them.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +optional
	Severity []Level `json:"severity,omitempty"`
	// repository is the name of a Repository.
	// +optional
	Repository ResourceName `json:"repository,omitempty"`
	// project is the name of a Project.
	// +optional
	Project ResourceName `json:"project,omitempty"`
	// class, for example "CWE-89"; the empty text means findings without one.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Class *string `json:"class,omitempty"`
	// tool that found it, for example "gosec".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Tool string `json:"tool,omitempty"`
	// rule of the tool, for example "G201".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Rule string `json:"rule,omitempty"`
	// vulnerability by its id or an alias, whatever the case, for example "CVE-2019-1549".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Vulnerability string `json:"vulnerability,omitempty"`
	// package by its name, whatever the case, or by its package URL, with or without a version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Package string `json:"package,omitempty"`
	// owner of the project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Owner string `json:"owner,omitempty"`
	// category: Code, Package or Secret. Several mean any of them.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +optional
	Category []FindingCategory `json:"category,omitempty"`
	// createdSince is the first moment at which a finding may have been found.
	// +optional
	CreatedSince *Time `json:"createdSince,omitempty"`
	// createdUntil is the first moment that is too late.
	// +optional
	CreatedUntil *Time `json:"createdUntil,omitempty"`
	// updatedSince is the first moment at which a finding may have changed last.
	// +optional
	UpdatedSince *Time `json:"updatedSince,omitempty"`
	// updatedUntil is the first moment that is too late.
	// +optional
	UpdatedUntil *Time `json:"updatedUntil,omitempty"`
	// minScore is the lowest score, from "0.0" to "10.0". A finding without a score has none that is enough.
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^(10\.0|[0-9]\.[0-9])$`
	// +optional
	MinScore string `json:"minScore,omitempty"`
	// text of which each word is in the title or the path, whatever the case. At most 8 words.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Text string `json:"text,omitempty"`
	// stale is whether the decision rests on facts that have changed.
	// +optional
	Stale *bool `json:"stale,omitempty"`
	// suppressed is whether the source suppresses the finding.
	// +optional
	Suppressed *bool `json:"suppressed,omitempty"`
	// policy is the name of the TriagePolicy by which the verdict in force is.
	// +optional
	Policy ResourceName `json:"policy,omitempty"`
	// file that the finding is in, or a folder if it ends in a slash.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	File string `json:"file,omitempty"`
	// labelSelector as kubectl takes it, for example "team=payments,env!=test".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
	// fieldSelector as kubectl takes it, by the fields that findings are selected by, for example
	// "spec.class=CWE-89,status.state!=closed".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	FieldSelector string `json:"fieldSelector,omitempty"`
}

// OperationDecision is what an operation decides about each finding. A member that is absent stays as it is, but that
// another userStatus comes without the reason and the end of the one before.
//
// +kubebuilder:validation:XValidation:rule="has(self.userStatus) || has(self.comments)",message="nothing to do: set userStatus or comments"
// +kubebuilder:validation:XValidation:rule="!has(self.reason) && !has(self.expiresAt) || has(self.userStatus) && self.userStatus != 'open'",message="reason and expiresAt belong to a decision: userStatus must be active or muted"
type OperationDecision struct {
	// userStatus is open (undecided again), active (confirmed) or muted (not to be acted on).
	// +optional
	UserStatus UserStatus `json:"userStatus,omitempty"`
	// reason for the decision. An Organization may require one to mute.
	// +optional
	Reason DecisionReason `json:"reason,omitempty"`
	// comments explain the decision and replace those before. At most 10000 characters; the empty text takes them away.
	// +kubebuilder:validation:MaxLength=10000
	// +optional
	Comments *string `json:"comments,omitempty"`
	// expiresAt is when the decision ends, for example "2026-12-31T00:00:00Z". Absent: it does not end.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`
}

// TriageOperationStatus is what the controllers observe of an operation.
type TriageOperationStatus struct {
	// observedGeneration is the metadata.generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is Selecting, Preview, Running, Completed or Failed.
	// +optional
	Phase OperationPhase `json:"phase,omitempty"`
	// selectedAt is when its findings were selected. Absent: they are not yet.
	// +optional
	SelectedAt *Time `json:"selectedAt,omitempty"`
	// parts is how many TriageOperationParts hold them, named after the operation.
	// +optional
	Parts int32 `json:"parts,omitempty"`
	// doneParts is how many of these are worked through.
	// +optional
	DoneParts int32 `json:"doneParts,omitempty"`
	// matched is how many findings were selected.
	// +optional
	Matched int32 `json:"matched"`
	// wouldChange is how many of them the operation changes unless somebody decides about them before it does.
	// +optional
	WouldChange int32 `json:"wouldChange"`
	// notUndoable is how many of them have longer comments than the operation has room for: an undo leaves them.
	// +optional
	NotUndoable int32 `json:"notUndoable,omitempty"`
	// decided says who had decided about the findings when they were selected, the most frequent first, at most 10.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Decided []OperationDecider `json:"decided,omitempty"`
	// samples name findings that were selected, at most 10.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Samples []ResourceName `json:"samples,omitempty"`
	// changed is how many findings the operation has decided about.
	// +optional
	Changed int32 `json:"changed"`
	// unchanged is how many were as they should be.
	// +optional
	Unchanged int32 `json:"unchanged"`
	// conflicted is how many were left alone since somebody had decided about them after they were selected.
	// +optional
	Conflicted int32 `json:"conflicted"`
	// failed is how many could not be changed.
	// +optional
	Failed int32 `json:"failed"`
	// conflicts are the first of those that were left alone, at most 10. The parts have all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Conflicts []OperationExample `json:"conflicts,omitempty"`
	// failures are the first of those that failed, at most 10.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Failures []OperationExample `json:"failures,omitempty"`
	// completedAt is when the last finding had been worked through.
	// +optional
	CompletedAt *Time `json:"completedAt,omitempty"`
	// conditions of the operation: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// OperationDecider is one who had decided about findings of an operation.
type OperationDecider struct {
	// by is the author of the decisions, as spec.triage.by has it; empty where it is not known.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	By string `json:"by,omitempty"`
	// count of the findings.
	// +required
	Count int32 `json:"count"`
}

// OperationExample is a finding that an operation has not changed, and why.
type OperationExample struct {
	// finding is its name.
	// +required
	Finding ResourceName `json:"finding"`
	// message says why, for example "ann@example.com decided about it in the meantime". At most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Message string `json:"message"`
}

// TriageOperation decides about many findings at once: it shows what it would do, does it when it is committed, and can
// be undone.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 200",message="the name is at most 200 characters: those of its parts are longer"
// +kubebuilder:resource:path=triageoperations,scope=Namespaced,shortName=top,categories=appsec
// +kubebuilder:printcolumn:name="Set",type=string,JSONPath=`.spec.set.userStatus`
// +kubebuilder:printcolumn:name="Undo",type=string,JSONPath=`.spec.undo`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Matched",type=integer,JSONPath=`.status.matched`
// +kubebuilder:printcolumn:name="Changed",type=integer,JSONPath=`.status.changed`
// +kubebuilder:printcolumn:name="Conflicted",type=integer,JSONPath=`.status.conflicted`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.by`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Would Change",type=integer,priority=1,JSONPath=`.status.wouldChange`
// +kubebuilder:printcolumn:name="Unchanged",type=integer,priority=1,JSONPath=`.status.unchanged`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.spec.set.reason`
// +kubebuilder:printcolumn:name="Committed By",type=string,priority=1,JSONPath=`.spec.committedBy`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.spec.undo`
type TriageOperation struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is what is declared.
	// +required
	Spec TriageOperationSpec `json:"spec"`
	// status is what the controllers observed. Only they write it.
	// +structType=atomic
	// +optional
	Status TriageOperationStatus `json:"status,omitzero"`
}

// TriageOperationList is a list of TriageOperations.
//
// +kubebuilder:object:root=true
type TriageOperationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TriageOperation `json:"items"`
}
