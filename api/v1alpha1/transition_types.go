package v1alpha1

// Bounds of the transitions that a status keeps.
const (
	// MaxTransitions is the number of emitted transitions that are kept.
	MaxTransitions = 16
	// MaxStoredTransitions is the maximum number in a status. A controller that has this many to emit emits them
	// before it observes further changes.
	MaxStoredTransitions = 24
	// MaxTransitionComment is how long a transition's comment is, in characters; the audit log
	// has it in full.
	MaxTransitionComment = 128
	// MaxTransitionAuthor is the maximum length of a transition's author, in characters.
	MaxTransitionAuthor = 60
)

// TransitionType is the type of change that a transition records. With the kind's prefix it is the type of the
// event sent: "finding.", "review.", "review_issue.", "scan.".
//
// +kubebuilder:validation:Enum=created;updated;triaged;judged;expired;closed;reopened;suppressed;unsuppressed;stale;fresh;opened;resolved;completed
type TransitionType string

// The transitions of findings.
const (
	TransitionCreated TransitionType = "created"
	TransitionUpdated TransitionType = "updated"
	TransitionTriaged TransitionType = "triaged"
	// TransitionJudged records that a TriagePolicy's verdict about the finding began, changed or ended.
	TransitionJudged TransitionType = "judged"
	// TransitionExpired records that a decision ended at its expiresAt.
	TransitionExpired  TransitionType = "expired"
	TransitionClosed   TransitionType = "closed"
	TransitionReopened TransitionType = "reopened"
	// TransitionSuppressed records that the source suppresses the finding, or changed the reason.
	TransitionSuppressed TransitionType = "suppressed"
	// TransitionUnsuppressed records that the source no longer suppresses the finding.
	TransitionUnsuppressed TransitionType = "unsuppressed"
	// TransitionStale records that the facts differ, or differ further, from those on which a decision is based.
	TransitionStale TransitionType = "stale"
	// TransitionFresh records that the facts are again those on which the decision is based, without a new
	// decision.
	TransitionFresh TransitionType = "fresh"
)

// The transitions of review issues, besides TransitionTriaged, TransitionJudged and TransitionExpired, and of
// scans. A Review has only TransitionUpdated.
const (
	TransitionOpened    TransitionType = "opened"
	TransitionResolved  TransitionType = "resolved"
	TransitionCompleted TransitionType = "completed"
)

// Transition is a change that a controller observed between two reconciles. It is recorded in
// the status write that it causes, and emitted afterwards: its seq ensures that no event is lost or created
// twice.
type Transition struct {
	// seq numbers the object's transitions from 1 without gaps.
	// +kubebuilder:validation:Minimum=1
	// +required
	Seq int64 `json:"seq"`
	// type of change.
	// +required
	Type TransitionType `json:"type"`
	// at is the best known time of the change.
	// +required
	At Time `json:"at"`
	// from is the value before: the user status for triaged, expired, stale and fresh, the verdict for judged
	// (open if there is none), the pull request's status for a review, the outcome for a scan, else the state;
	// empty for the first.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	From string `json:"from,omitempty"`
	// to is the value after, as in from.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	To string `json:"to,omitempty"`
	// by is the author of the change: triage.by for triaged, the author of the ended decision for expired,
	// "policy/" or "review-issue/" and the name for judged, the commit that resolved a review issue, the
	// controller for an abandoned scan, else the scanner; empty if unknown.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	By string `json:"by,omitempty"`
	// author of the policy, or of the decision about the review issue, for judged; for triaged by an operation, who
	// committed it. Cut to 60 characters, for judged at the end, for triaged at the front. Absent if unknown, for example
	// because the operation was deleted before the change was observed, or an earlier version recorded the change.
	// +kubebuilder:validation:MaxLength=60
	// +optional
	Author string `json:"author,omitempty"`
	// reason of the decision, for triaged, judged and expired; absent if none was given.
	// +optional
	Reason DecisionReason `json:"reason,omitempty"`
	// expiresAt is when the decision ends, for triaged and expired; absent if it does not end.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`
	// comment of the decision, for triaged and judged; the justification for suppressed, the changed facts for
	// stale. Cut to 128 characters.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Comment string `json:"comment,omitempty"`
	// scan that made the change; empty if no scan did.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Scan string `json:"scan,omitempty"`
}
