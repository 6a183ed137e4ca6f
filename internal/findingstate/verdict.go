package findingstate

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// Judge returns what policies decide about a finding, or somebody about the same result in a pull request; nil where
// none does. It is asked about findings that are not closed and that no person has decided about. The time of the
// verdict is not its business.
type Judge func(*v1alpha1.Finding) *v1alpha1.FindingVerdict

// NewVerdict is what a policy of that spec decides, as a status has room for it. Since when is for whoever records it.
func NewVerdict(policy v1alpha1.ResourceName, spec *v1alpha1.TriagePolicySpec) *v1alpha1.FindingVerdict {
	return &v1alpha1.FindingVerdict{
		Policy: policy, UserStatus: spec.Set.UserStatus, Reason: spec.Set.Reason, Comment: cut(spec.Set.Comment),
		By: shortened(spec.By, v1alpha1.MaxTransitionAuthor),
	}
}

// ReviewVerdict is what a person decided about the same result in a pull request, as a finding's status has room for
// it: the issue of that name, by that triage, which is in force. Nil where the name is longer than that room.
func ReviewVerdict(issue string, triage *v1alpha1.ReviewIssueTriage) *v1alpha1.FindingVerdict {
	if len(issue) > v1alpha1.MaxVerdictReviewIssue {
		return nil
	}
	return &v1alpha1.FindingVerdict{
		ReviewIssue: issue, UserStatus: v1alpha1.PolicyStatus(triage.UserStatus), Reason: triage.Reason,
		Comment: cut(triage.Comments), By: shortened(triage.By, v1alpha1.MaxTransitionAuthor),
	}
}

// PersonsStatus is what a person decided: about the finding, else about the same result in a pull request; open where
// none did, or the decision has ended.
func PersonsStatus(finding *v1alpha1.Finding) v1alpha1.UserStatus {
	if verdict := Verdict(finding); verdict != nil && verdict.ReviewIssue != "" {
		return v1alpha1.UserStatus(verdict.UserStatus)
	}
	return UserStatus(finding)
}

// Undecided reports whether a verdict counts: the finding is not closed, and no person's decision about it is in force.
func Undecided(finding *v1alpha1.Finding) bool {
	return finding.Spec.Closed == nil && UserStatus(finding) == v1alpha1.UserStatusOpen
}

// Verdict is what was decided about the finding in its status; nil where that does not count, because a person has
// decided meanwhile, or the scanner has closed the finding.
func Verdict(finding *v1alpha1.Finding) *v1alpha1.FindingVerdict {
	if !Undecided(finding) {
		return nil
	}
	return finding.Status.Verdict
}

// DecidingPolicy is the policy by which the verdict is that counts; "" where none does, or it is not a policy's.
func DecidingPolicy(finding *v1alpha1.Finding) v1alpha1.ResourceName {
	if verdict := Verdict(finding); verdict != nil {
		return verdict.Policy
	}
	return ""
}

// SameVerdict reports whether both decide the same, by the same policy or issue and for the same reason. Who wrote the
// policy, and since when it decides, is that of the first of them; a person's decision is another if another made it.
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

// statusOf is what the verdict decides; open where there is none.
func statusOf(verdict *v1alpha1.FindingVerdict) v1alpha1.UserStatus {
	if verdict == nil {
		return v1alpha1.UserStatusOpen
	}
	return v1alpha1.UserStatus(verdict.UserStatus)
}

// due is the verdict that the finding's status is to hold: the one that it holds, where that is the same.
func due(finding *v1alpha1.Finding, judge Judge) *v1alpha1.FindingVerdict {
	if judge == nil || !Undecided(finding) {
		return nil
	}
	verdict := judge(finding)
	if before := finding.Status.Verdict; SameVerdict(verdict, before) {
		return before
	}
	return verdict
}

// judged is the transition that another verdict makes. There is none where a person's decision, or the end of the
// finding, makes the verdict count no longer: that has a transition of its own.
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
		// The scan brought what the policy decides about: for who receives a scan's events in pages it is one of them.
		t.Scan = scanOf(&finding.Spec, v1alpha1.TransitionJudged)
	}
	return []v1alpha1.Transition{t}
}

// sourceOf names the policy or the issue of a review that the verdict comes from.
func sourceOf(verdict *v1alpha1.FindingVerdict) string {
	if verdict.ReviewIssue != "" {
		return v1alpha1.ReviewIssueAuthorPrefix + verdict.ReviewIssue
	}
	return v1alpha1.PolicyAuthorPrefix + string(verdict.Policy)
}
