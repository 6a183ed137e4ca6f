package v1alpha1

// Bounds of the transitions that a status keeps.
const (
	// MaxTransitions is how many are kept once they are emitted.
	MaxTransitions = 16
	// MaxStoredTransitions is how many a status holds in all. A controller with that many that
	// are still to be emitted emits before it observes anything further.
	MaxStoredTransitions = 24
	// MaxTransitionComment is how long a transition's comment is, in characters; the audit log
	// has it in full.
	MaxTransitionComment = 128
)

// TransitionType is the sort of change that a transition records. With the kind's prefix it is
// the type of the event sent: "finding.", "review.", "review_issue.", "scan.".
//
// +kubebuilder:validation:Enum=created;updated;triaged;closed;reopened;opened;resolved;completed
type TransitionType string

// The transitions of findings.
const (
	TransitionCreated  TransitionType = "created"
	TransitionUpdated  TransitionType = "updated"
	TransitionTriaged  TransitionType = "triaged"
	TransitionClosed   TransitionType = "closed"
	TransitionReopened TransitionType = "reopened"
)

// The transitions of review issues and scans. Of a Review there is TransitionUpdated alone.
const (
	TransitionOpened    TransitionType = "opened"
	TransitionResolved  TransitionType = "resolved"
	TransitionCompleted TransitionType = "completed"
)

// Transition is a change that a controller observed between two reconciles. It is recorded in
// the status write that it causes, and emitted afterwards: by its seq no event is lost or
// made twice.
type Transition struct {
	// seq numbers the object's transitions from 1, without a gap.
	// +kubebuilder:validation:Minimum=1
	// +required
	Seq int64 `json:"seq"`
	// type of change.
	// +required
	Type TransitionType `json:"type"`
	// at is when the change was made, as far as is known.
	// +required
	At Time `json:"at"`
	// from is the value before: the user status for triaged, the pull request's status of a
	// review, the outcome of a scan, else the state; empty for the first.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	From string `json:"from,omitempty"`
	// to is the value after, as in from.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	To string `json:"to,omitempty"`
	// by is who made the change: triage.by for triaged, the commit that resolved a review issue,
	// the controller for a scan that was abandoned, else the scanner; empty where it is not known.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	By string `json:"by,omitempty"`
	// comment that came with the change, for triaged; cut where it is longer.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Comment string `json:"comment,omitempty"`
	// scan that made the change; empty where none did.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Scan string `json:"scan,omitempty"`
}
