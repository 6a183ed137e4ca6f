package webhooks

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// The prefixes that begin the types of the events of reviews and of their issues.
const (
	ReviewEventPrefix      = "review"
	ReviewIssueEventPrefix = "review_issue"
)

// ReviewData is the data of an event of a review. The counters are those at the time when the
// event was made, which may be a little after the change.
type ReviewData struct {
	ReviewID string `json:"review_id"`
	// UID distinguishes the review from a later one with the same id. With Seq it
	// identifies the transition.
	UID          string             `json:"uid"`
	Seq          int64              `json:"seq"`
	RepositoryID string             `json:"repository_id"`
	PRNumber     int32              `json:"pr_number"`
	PRStatus     Change             `json:"pr_status"`
	Issues       reviewstate.Counts `json:"issues"`
}

// DataOfReview returns the event data for the review's transition.
func DataOfReview(review *v1alpha1.Review, t v1alpha1.Transition) ReviewData {
	return ReviewData{
		ReviewID:     review.Name,
		UID:          string(review.UID),
		Seq:          t.Seq,
		RepositoryID: string(review.Spec.RepositoryRef.Name),
		PRNumber:     review.Spec.PRNumber,
		PRStatus:     Change{From: t.From, To: t.To},
		Issues:       reviewstate.CountsOf(&review.Status),
	}
}

// ReviewIssueData is the data of an event of a review issue.
type ReviewIssueData struct {
	IssueID string `json:"issue_id"`
	// UID distinguishes the issue from a later one with the same id. With Seq it
	// identifies the transition.
	UID      string         `json:"uid"`
	Seq      int64          `json:"seq"`
	ReviewID string         `json:"review_id"`
	Severity v1alpha1.Level `json:"severity"`
	// Exactly one of these is set: UserStatus for a decision in spec.triage or its end; Verdict for a policy's verdict,
	// open if there is none; else State.
	State      *Change `json:"state,omitempty"`
	UserStatus *Change `json:"user_status,omitempty"`
	Verdict    *Change `json:"verdict,omitempty"`
	// By is the user or policy that decided, and Author the author of the policy.
	By     string `json:"by,omitempty"`
	Author string `json:"author,omitempty"`
	// Reason and ExpiresAt of the decision that was made, or has ended.
	Reason    v1alpha1.DecisionReason `json:"reason,omitempty"`
	ExpiresAt *v1alpha1.Time          `json:"expires_at,omitempty"`
	// ResolvedBy is the commit that resolved the issue; absent if the issue was opened, or if the
	// review no longer keeps that commit.
	ResolvedBy string `json:"resolved_by,omitempty"`
}

// DataOfReviewIssue returns the event data for the issue's transition.
func DataOfReviewIssue(issue *v1alpha1.ReviewIssue, t v1alpha1.Transition) ReviewIssueData {
	data := ReviewIssueData{
		IssueID:   issue.Name,
		UID:       string(issue.UID),
		Seq:       t.Seq,
		ReviewID:  string(issue.Spec.ReviewRef.Name),
		Severity:  issue.Spec.Severity,
		Author:    t.Author,
		Reason:    t.Reason,
		ExpiresAt: t.ExpiresAt,
	}
	change := &Change{From: t.From, To: t.To}
	switch t.Type {
	case v1alpha1.TransitionTriaged, v1alpha1.TransitionExpired:
		data.UserStatus, data.By = change, t.By
	case v1alpha1.TransitionJudged:
		data.Verdict, data.By = change, t.By
	case v1alpha1.TransitionResolved:
		data.State, data.ResolvedBy = change, t.By
	default:
		data.State = change
	}
	return data
}
