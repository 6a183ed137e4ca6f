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
	// MaxTransitionAuthor is how long the name of a policy's author is, in characters.
	MaxTransitionAuthor = 60
)

// TransitionType is the sort of change that a transition records. With the kind's prefix it is
// the type of the event sent: "finding.", "review.", "review_issue.", "scan.".
//
// +kubebuilder:validation:Enum=created;updated;triaged;judged;expired;closed;reopened;suppressed;unsuppressed;stale;fresh;opened;resolved;completed
type TransitionType string

// The transitions of findings.
const (
	TransitionCreated TransitionType = "created"
	TransitionUpdated TransitionType = "updated"
	TransitionTriaged TransitionType = "triaged"
	// TransitionJudged says that a TriagePolicy decides about the finding, otherwise than before, or no longer.
	TransitionJudged TransitionType = "judged"
	// TransitionExpired says that a decision has ended, by the time that it gave itself.
	TransitionExpired  TransitionType = "expired"
	TransitionClosed   TransitionType = "closed"
	TransitionReopened TransitionType = "reopened"
	// TransitionSuppressed says that the source suppresses the finding, or gives another reason.
	TransitionSuppressed TransitionType = "suppressed"
	// TransitionUnsuppressed says that the source suppresses it no longer.
	TransitionUnsuppressed TransitionType = "unsuppressed"
	// TransitionStale says that the facts differ, or differ more, from what a decision rests on.
	TransitionStale TransitionType = "stale"
	// TransitionFresh says that the facts are again what the decision rests on, without another decision.
	TransitionFresh TransitionType = "fresh"
)

// The transitions of review issues, beside TransitionTriaged, TransitionJudged and TransitionExpired, and of scans. Of
// a Review there is TransitionUpdated alone.
const (
	TransitionOpened    TransitionType = "opened"
	TransitionResolved  TransitionType = "resolved"
	TransitionCompleted TransitionType = "completed"
)

// Transition is a change that a controller observed between two reconciles. It is recorded in
// the status write that it causes, and emitted afterwards: by its seq no event is lost or
// made twice.
type Transition struct {
	// seq numbers the object's transitions from 1 without gaps.
	// +kubebuilder:validation:Minimum=1
	// +required
	Seq int64 `json:"seq"`
	// type of change.
	// +required
	Type TransitionType `json:"type"`
	// at is when the change was made, as far as it is known.
	// +required
	At Time `json:"at"`
	// from is the value before: the user status for triaged, expired, stale and fresh, the verdict for judged
	// (open where there is none), the pull request's status of a review, the outcome of a scan, else the state; empty
	// for the first.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	From string `json:"from,omitempty"`
	// to is the value after, as in from.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	To string `json:"to,omitempty"`
	// by is who made the change: triage.by for triaged, whose decision ended for expired, "policy/" or "review-issue/" and
	// the name for judged, the commit that resolved a review issue, the controller for a scan that was abandoned, else the
	// scanner; empty where it is not known.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	By string `json:"by,omitempty"`
	// author of the policy, or of the decision about the review issue, for judged; cut to 60 characters.
	// +kubebuilder:validation:MaxLength=60
	// +optional
	Author string `json:"author,omitempty"`
	// reason of the decision, for triaged, judged and expired; absent where none was given.
	// +optional
	Reason DecisionReason `json:"reason,omitempty"`
	// expiresAt is when the decision ends, for triaged and expired; absent where it does not.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`
	// comment that came with the change, for triaged and judged; the justification for suppressed, what differs
	// for stale. Cut where it is longer.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Comment string `json:"comment,omitempty"`
	// scan that made the change; empty where none did.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Scan string `json:"scan,omitempty"`
}
