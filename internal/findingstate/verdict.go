package findingstate

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// NewVerdict returns the verdict of a policy with that spec, truncated to fit a status. The caller sets Since.
func NewVerdict(policy v1alpha1.ResourceName, spec *v1alpha1.TriagePolicySpec) *v1alpha1.FindingVerdict {
	return &v1alpha1.FindingVerdict{
		Policy: policy, UserStatus: spec.Set.UserStatus, Reason: spec.Set.Reason,
		Comment: cut(spec.Set.Comment, v1alpha1.MaxTransitionComment),
		By:      cut(spec.By, v1alpha1.MaxTransitionAuthor),
	}
}

// ReviewVerdict returns the decision about the same result in a pull request as a verdict, truncated to fit a
// finding's status. The triage of the named issue must be in force. It returns nil if the name is too long for a
// status.
func ReviewVerdict(issue string, triage *v1alpha1.ReviewIssueTriage) *v1alpha1.FindingVerdict {
	if len(issue) > v1alpha1.MaxVerdictReviewIssue {
		return nil
	}
	return &v1alpha1.FindingVerdict{
		ReviewIssue: issue, UserStatus: v1alpha1.PolicyStatus(triage.UserStatus), Reason: triage.Reason,
		Comment: cut(triage.Comments, v1alpha1.MaxTransitionComment), By: cut(triage.By, v1alpha1.MaxTransitionAuthor),
	}
}

// StatusWithoutPolicies returns the decision in force that no policy made: the finding's own (spec.triage), else one
// about the same result in a pull request; open if there is none.
func StatusWithoutPolicies(finding *v1alpha1.Finding) v1alpha1.UserStatus {
	if verdict := Verdict(finding); verdict != nil && verdict.ReviewIssue != "" {
		return v1alpha1.UserStatus(verdict.UserStatus)
	}
	return UserStatus(finding)
}

// VerdictCounts reports whether a verdict counts: the finding is not closed, and no decision of its own (spec.triage)
// is in force.
func VerdictCounts(finding *v1alpha1.Finding) bool {
	return finding.Spec.Closed == nil && !Decided(finding)
}

// VerdictWillCount reports whether a verdict counts in the finding's next status, where its decision may have ended.
func VerdictWillCount(finding *v1alpha1.Finding, now time.Time) bool {
	seen := *finding
	seen.Status.EndedAt = endedAt(finding, now)
	return VerdictCounts(&seen)
}

// Verdict returns the verdict in the finding's status; nil if there is none, or it does not count because the finding
// has a decision of its own meanwhile, or the scanner has closed it.
func Verdict(finding *v1alpha1.Finding) *v1alpha1.FindingVerdict {
	if !VerdictCounts(finding) {
		return nil
	}
	return finding.Status.Verdict
}

// DecidingPolicy returns the policy of the verdict that counts; "" if there is no such verdict, or it is not a
// policy's.
func DecidingPolicy(finding *v1alpha1.Finding) v1alpha1.ResourceName {
	if verdict := Verdict(finding); verdict != nil {
		return verdict.Policy
	}
	return ""
}

// SameVerdict reports whether both verdicts are the same: same decision, policy or issue, reason and comment. The time
// and the author of the policy do not count, but the author of a decision in a pull request does.
func SameVerdict(a, b *v1alpha1.FindingVerdict) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.ReviewIssue != b.ReviewIssue || a.ReviewIssue != "" && a.By != b.By {
		return false
	}
	return a.Policy == b.Policy && a.UserStatus == b.UserStatus && a.Reason == b.Reason && a.Comment == b.Comment
}

func mutedByVerdict(finding *v1alpha1.Finding) bool {
	return statusOf(Verdict(finding)) == v1alpha1.UserStatusMuted
}

// statusOf returns the decision of the verdict; open for nil.
func statusOf(verdict *v1alpha1.FindingVerdict) v1alpha1.UserStatus {
	if verdict == nil {
		return v1alpha1.UserStatusOpen
	}
	return v1alpha1.UserStatus(verdict.UserStatus)
}

// due returns the verdict for the finding's status: the existing one, if the verdict is the same, else a copy of it;
// nil if none counts.
func due(finding *v1alpha1.Finding, verdict *v1alpha1.FindingVerdict) *v1alpha1.FindingVerdict {
	if !VerdictCounts(finding) {
		return nil
	}
	if before := finding.Status.Verdict; SameVerdict(verdict, before) {
		return before
	}
	return verdict.DeepCopy()
}

// judged returns the transition for another verdict. A verdict that no longer counts because of a user's decision or a
// closure needs none, because these have their own transitions.
func judged(finding *v1alpha1.Finding, next *v1alpha1.FindingStatus) []v1alpha1.Transition {
	before, after := finding.Status.Verdict, next.Verdict
	counts := next.UserStatus == v1alpha1.UserStatusOpen && finding.Spec.Closed == nil
	if SameVerdict(before, after) || after == nil && !counts {
		return nil
	}
	by := after
	if by == nil {
		by = before
	}
	t := v1alpha1.Transition{
		Type: v1alpha1.TransitionJudged, From: string(statusOf(before)), To: string(statusOf(after)),
		By: sourceOf(by), Author: by.By,
	}
	if after != nil {
		t.Reason, t.Comment = after.Reason, after.Comment
	}
	if finding.Status.FactsDigest != next.FactsDigest || finding.Status.State == v1alpha1.FindingStateClosed {
		// The scan brought the facts that the policy decides about, so the event belongs to the scan's pages.
		t.Scan = scanOf(&finding.Spec, v1alpha1.TransitionJudged)
	}
	return []v1alpha1.Transition{t}
}

// sourceOf returns the author of the verdict: a policy or a review issue.
func sourceOf(verdict *v1alpha1.FindingVerdict) string {
	if verdict.ReviewIssue != "" {
		return v1alpha1.ReviewIssueAuthorPrefix + verdict.ReviewIssue
	}
	return v1alpha1.PolicyAuthorPrefix + string(verdict.Policy)
}
