package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperationsServiceAccount is the name, in each organization's namespace, under which the controllers write the
// decisions of TriageOperations. It may only triage there. No ServiceAccount object is created.
const OperationsServiceAccount = "findings-operations"

// OperationAuthorPrefix is the prefix of a TriageOperation's name in spec.triage.by of its decisions.
const OperationAuthorPrefix = "operation/"

// MaxOperationFindings is the maximum number of findings per operation.
const MaxOperationFindings = 50000

// ReasonInProgress goes with Ready=False: the operation is selecting or changing its findings.
const ReasonInProgress = "InProgress"

// Reasons of Stalled of a TriageOperation.
const (
	// ReasonTooManyFindings: the selection matches more findings than an operation may cover, or, because the operation's
	// comments are long, more than may each store them.
	ReasonTooManyFindings = "TooManyFindings"
	// ReasonTooManyOperations: the organization already has the maximum number of operations.
	ReasonTooManyOperations = "TooManyOperations"
	// ReasonInvalidSelection: a filter in spec.select cannot be read, or is a text, a selector or a time that
	// selects everything.
	ReasonInvalidSelection = "InvalidSelection"
	// ReasonSelectionFailed: a fault of the controllers ended each try to select the findings.
	ReasonSelectionFailed = "SelectionFailed"
	// ReasonNotUndoable: the operation to undo does not exist, is not committed, failed before it decided about
	// anything, or waits for this one, itself or through other undos.
	ReasonNotUndoable = "NotUndoable"
	// ReasonPartsLost: a part of the operation's set, or of the operation that it undoes, has been removed or cannot be
	// read; or a part of the undone operation does not record which of its findings were changed.
	ReasonPartsLost = "PartsLost"
	// ReasonPartsRefused: the API server refuses to store a part of the operation's set, or the mark that work on a part
	// has begun.
	ReasonPartsRefused = "PartsRefused"
	// ReasonOperationExpired: the end of the decision had passed before the operation decided about anything.
	ReasonOperationExpired = "Expired"
)

// OperationPhase is the progress of a TriageOperation.
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
	// OperationFailed: it cannot continue; the condition Stalled gives the reason.
	OperationFailed OperationPhase = "Failed"
)

// Bounds of what a TriageOperation's status lists.
const (
	// MaxOperationSamples is the maximum number of findings listed.
	MaxOperationSamples = 10
	// MaxOperationDeciders is the maximum number of earlier deciders listed.
	MaxOperationDeciders = 10
)

// TriageOperationSpec selects findings and sets a decision about them, or names an operation to undo. Once it
// is stored, only commit can change.
//
// +kubebuilder:validation:XValidation:rule="has(self.undo) ? !has(self.select) && !has(self.set) : has(self.select) && has(self.set)",message="an operation has select and set, or undo alone"
// +kubebuilder:validation:XValidation:rule="has(self.undo) == has(oldSelf.undo) && has(self.select) == has(oldSelf.select) && has(self.set) == has(oldSelf.set) && (!has(self.undo) || self.undo == oldSelf.undo) && (!has(self.select) || self.select == oldSelf.select) && (!has(self.set) || self.set == oldSelf.set)",message="select, set and undo are immutable: make another operation"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.commit) || !oldSelf.commit || has(self.commit) && self.commit",message="what is committed stays so: undo it with another operation"
type TriageOperationSpec struct {
	// select chooses the findings: those named in ids, or those that match the filters once older operations have ended.
	// If the operation is already committed then, the filters select no finding that was created in a later second than
	// the operation. Absent with undo.
	// +optional
	Select *FindingSelection `json:"select,omitempty"`
	// set is the decision about each of them. Absent with undo.
	// +optional
	Set *OperationDecision `json:"set,omitempty"`
	// undo is the name of a committed TriageOperation, for example "mute-test-secrets". Once that operation has ended,
	// each finding that still has its decision gets back its previous status, reason, comments and end.
	// +optional
	Undo ResourceName `json:"undo,omitempty"`
	// commit carries the operation out. Without it the status shows what it would do. It cannot be unset. Default:
	// false.
	// +optional
	Commit bool `json:"commit,omitempty"`
	// by is the name of whoever created the operation, for example "ann@example.com". The API server sets it to
	// the name of the authenticated user; a value that a client sends is overwritten. At most 320 characters.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	By string `json:"by,omitempty"`
	// committedBy is the name of whoever committed it, set by the API server like by.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	CommittedBy string `json:"committedBy,omitempty"`
}

// FindingSelection selects the findings named in ids, or all findings of the namespace that match every other
// field.
//
// +kubebuilder:validation:XValidation:rule="has(self.ids) != (has(self.state) || has(self.userStatus) || has(self.severity) || has(self.repository) || has(self.project) || has(self.class) || has(self.tool) || has(self.rule) || has(self.vulnerability) || has(self.package) || has(self.owner) || has(self.category) || has(self.createdSince) || has(self.createdUntil) || has(self.updatedSince) || has(self.updatedUntil) || has(self.minScore) || has(self.text) || has(self.stale) || has(self.suppressed) || has(self.policy) || has(self.file) || has(self.labelSelector) || has(self.fieldSelector))",message="select has ids, or at least one filter, and not both"
type FindingSelection struct {
	// ids are names of findings, at most 400.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=400
	// +optional
	IDs []ResourceName `json:"ids,omitempty"`
	// state of the finding: open, open_muted or closed. With several, any of them matches.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +optional
	State []FindingState `json:"state,omitempty"`
	// userStatus in force: open, active or muted. With several, any of them matches.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +optional
	UserStatus []UserStatus `json:"userStatus,omitempty"`
	// severity: high, medium or low. With several, any of them matches.
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
	// class, for example "CWE-89"; the empty string selects findings without a class.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Class *string `json:"class,omitempty"`
	// tool that found it, for example "gosec".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Tool string `json:"tool,omitempty"`
	// rule of the tool, for example "G201".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Rule string `json:"rule,omitempty"`
	// vulnerability by its id or an alias, ignoring case, for example "CVE-2019-1549".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Vulnerability string `json:"vulnerability,omitempty"`
	// package by its name, ignoring case, or by its package URL, with or without a version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Package string `json:"package,omitempty"`
	// owner of the project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Owner string `json:"owner,omitempty"`
	// category: Code, Package or Secret. With several, any of them matches.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +optional
	Category []FindingCategory `json:"category,omitempty"`
	// createdSince selects findings detected at this time or later, for example "2026-03-02T00:00:00Z". The operation
	// fails unless it is after "1970-01-02T00:00:00Z".
	// +optional
	CreatedSince *Time `json:"createdSince,omitempty"`
	// createdUntil selects findings detected before this time. The operation fails unless it is before
	// "9999-12-30T00:00:00Z".
	// +optional
	CreatedUntil *Time `json:"createdUntil,omitempty"`
	// updatedSince selects findings last changed at this time or later. The operation fails unless it is after
	// "1970-01-02T00:00:00Z".
	// +optional
	UpdatedSince *Time `json:"updatedSince,omitempty"`
	// updatedUntil selects findings last changed before this time. The operation fails unless it is before
	// "9999-12-30T00:00:00Z".
	// +optional
	UpdatedUntil *Time `json:"updatedUntil,omitempty"`
	// minScore is the lowest score, from "0.0" to "10.0". Findings without a score do not match.
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^(10\.0|[0-9]\.[0-9])$`
	// +optional
	MinScore string `json:"minScore,omitempty"`
	// text: every word must occur in the title or the path, ignoring case. From 1 to 8 words.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Text string `json:"text,omitempty"`
	// stale selects findings whose decision is stale (true) or not stale (false).
	// +optional
	Stale *bool `json:"stale,omitempty"`
	// suppressed selects findings that the source suppresses (true) or does not suppress (false).
	// +optional
	Suppressed *bool `json:"suppressed,omitempty"`
	// policy is the name of the TriagePolicy whose verdict is in force.
	// +optional
	Policy ResourceName `json:"policy,omitempty"`
	// file that contains the finding, or a folder if it ends in a slash, for example "src/api/".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	File string `json:"file,omitempty"`
	// labelSelector in kubectl's syntax, for example "team=payments,env!=test".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
	// fieldSelector in kubectl's syntax, over the selectable fields of findings, for example
	// "spec.class=CWE-89,status.state!=closed".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	FieldSelector string `json:"fieldSelector,omitempty"`
}

// OperationDecision is an operation's decision about each finding. Absent fields stay as they are, except that
// a new userStatus removes the previous reason and end.
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
	// comments explain the decision and replace earlier ones. At most 10000 characters; the empty string removes
	// them.
	// +kubebuilder:validation:MaxLength=10000
	// +optional
	Comments *string `json:"comments,omitempty"`
	// expiresAt is when the decision ends, for example "2026-12-31T00:00:00Z". Absent: it does not end, but
	// findings that have this userStatus already keep their end.
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
	// selectedAt is when its findings were selected. Absent until then.
	// +optional
	SelectedAt *Time `json:"selectedAt,omitempty"`
	// parts is the number of TriageOperationParts that hold the findings, named after the operation.
	// +optional
	Parts int32 `json:"parts,omitempty"`
	// doneParts is the number of parts that are finished.
	// +optional
	DoneParts int32 `json:"doneParts,omitempty"`
	// matched is the number of selected findings.
	// +optional
	Matched int32 `json:"matched"`
	// wouldChange is the number of findings that the operation changes unless somebody decides about them first.
	// +optional
	WouldChange int32 `json:"wouldChange"`
	// notUndoable is the number of findings whose previous decision was not stored, because the previous comments in the
	// set exceed what an operation may keep: an undo leaves these as they are.
	// +optional
	NotUndoable int32 `json:"notUndoable,omitempty"`
	// decided lists who had decided about the findings, or about the same results in pull requests, when they were
	// selected, the most frequent first, at most 10.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Decided []OperationDecider `json:"decided,omitempty"`
	// samples name findings that were selected, at most 10.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Samples []ResourceName `json:"samples,omitempty"`
	// changed is the number of findings that the operation has decided about.
	// +optional
	Changed int32 `json:"changed"`
	// unchanged is the number of findings that already had the decision.
	// +optional
	Unchanged int32 `json:"unchanged"`
	// conflicted is the number of findings that were skipped because somebody decided about them after they were selected,
	// or because they were named, or are to be restored, and were created or repaired only after the selection. A finding
	// that only a scan has changed is also skipped if it is unknown whether the operation has decided about it: the
	// controllers were restarted while they worked through its part, and the scan changed it after it was selected; or a
	// write of it failed, and the scan changed it after that. So is an undecided finding without version or code to
	// compare that has changed since it was selected, though not in severity: it may be another problem.
	// +optional
	Conflicted int32 `json:"conflicted"`
	// failed is the number of findings that could not be changed.
	// +optional
	Failed int32 `json:"failed"`
	// conflicts are the first findings that were skipped, at most 10. The parts hold all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Conflicts []OperationExample `json:"conflicts,omitempty"`
	// failures are the first findings that could not be changed, at most 10.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Failures []OperationExample `json:"failures,omitempty"`
	// completedAt is when the operation finished its last finding.
	// +optional
	CompletedAt *Time `json:"completedAt,omitempty"`
	// conditions of the operation: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// OperationDecider is an author of earlier decisions about an operation's findings.
type OperationDecider struct {
	// by is the author of the decisions, as in spec.triage.by, or as in status.verdict.by, which is cut to 60
	// characters; empty if unknown.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	By string `json:"by,omitempty"`
	// count of the findings.
	// +required
	Count int32 `json:"count"`
}

// OperationExample is a finding that an operation did not change, with the reason.
type OperationExample struct {
	// finding is the name of the finding.
	// +required
	Finding ResourceName `json:"finding"`
	// message gives the reason, for example "ann@example.com decided about it in the meantime". At most 256
	// characters.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Message string `json:"message"`
}

// TriageOperation is one decision about many findings, with a preview before it is committed, and an undo.
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
	// spec is the desired state.
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
