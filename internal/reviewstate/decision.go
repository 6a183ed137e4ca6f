package reviewstate

import (
	"cmp"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Facts returns the issue in the form of a finding, to which policies and the rules of decisions apply. Fields
// that the issue does not have are empty. review may be nil.
func Facts(issue *v1alpha1.ReviewIssue, review *v1alpha1.ReviewSpec) *v1alpha1.Finding {
	spec, status := &issue.Spec, &issue.Status
	f := &v1alpha1.Finding{ObjectMeta: issue.ObjectMeta}
	f.Spec.Details.Title, f.Spec.Details.Severity = spec.Title, spec.Severity
	f.Spec.Details.Description = spec.Description
	f.Spec.Details.Location = &v1alpha1.FileLocation{FilePath: spec.File, LineNumber: spec.Line}
	if review != nil {
		f.Spec.RepositoryRef = review.RepositoryRef
	}
	if r := spec.Result; r != nil {
		f.Spec.ProjectRef.Name = r.Project
		f.Spec.Tool, f.Spec.Analysis, f.Spec.Category = r.Tool, r.Analysis, r.Category
		f.Spec.RuleID, f.Spec.Class = r.RuleID, r.Class
		f.Spec.Confidence, f.Spec.SecretType = r.Confidence, r.SecretType
		f.Spec.Details.Score, f.Spec.Details.ToolSeverity = r.Score, r.ToolSeverity
		f.Spec.Vulnerability, f.Spec.Package = r.Vulnerability, r.Package
		f.Spec.Fingerprints, f.Spec.Evidence = r.Fingerprints, r.Evidence
	}
	f.Spec.Triage = triageOf(spec)
	f.Status = v1alpha1.FindingStatus{
		ObservedGeneration: status.ObservedGeneration, UpdatedAt: status.UpdatedAt, State: v1alpha1.FindingStateOpen,
		UserStatus: status.UserStatus, EndedAt: status.EndedAt, Verdict: status.Verdict, TriageDigest: status.TriageDigest,
	}
	if status.UpdatedAt != nil && status.TriageDigest == "" {
		// An earlier version wrote the status, which did not support decisions about issues.
		f.Status.TriageDigest = findingstate.TriageDigest(&v1alpha1.FindingSpec{})
		f.Status.UserStatus = v1alpha1.UserStatusOpen
	}
	return f
}

func triageOf(spec *v1alpha1.ReviewIssueSpec) v1alpha1.FindingTriage {
	t := &spec.Triage
	return v1alpha1.FindingTriage{
		UserStatus: t.UserStatus, Reason: t.Reason, ExpiresAt: t.ExpiresAt, Comments: t.Comments, By: t.By,
	}
}

// IsTriaged reports whether a user has decided about the issue or commented on it, even if the decision has ended.
func IsTriaged(issue *v1alpha1.ReviewIssue) bool {
	t := &issue.Spec.Triage
	return cmp.Or(t.UserStatus, v1alpha1.UserStatusOpen) != v1alpha1.UserStatusOpen || t.Comments != ""
}

// UserStatus returns the user's decision in force; open if there is none, or it has ended.
func UserStatus(issue *v1alpha1.ReviewIssue) v1alpha1.UserStatus {
	return findingstate.UserStatus(&v1alpha1.Finding{
		Spec:   v1alpha1.FindingSpec{Triage: triageOf(&issue.Spec)},
		Status: v1alpha1.FindingStatus{EndedAt: issue.Status.EndedAt},
	})
}

// Decided returns the decision about the issue, by a user, else by a policy; open if there is none.
func Decided(issue *v1alpha1.ReviewIssue) v1alpha1.UserStatus {
	if verdict := Judged(issue); verdict != nil {
		return v1alpha1.UserStatus(verdict.UserStatus)
	}
	return UserStatus(issue)
}

// Judged returns a policy's verdict on the issue; nil if there is none, or a user's decision is in force.
func Judged(issue *v1alpha1.ReviewIssue) *v1alpha1.FindingVerdict {
	if UserStatus(issue) != v1alpha1.UserStatusOpen {
		return nil
	}
	return issue.Status.Verdict
}

// UntilEnd returns how long the user's decision stays in force; 0 if it has no end or has ended.
func UntilEnd(issue *v1alpha1.ReviewIssue, now time.Time) time.Duration {
	return findingstate.UntilEnd(Facts(issue, nil), now)
}

// StandingOf returns the existing decision about the issue. A decision about an issue has no basis: the issue is about
// one commit, and is raised again by the next.
func StandingOf(issue *v1alpha1.ReviewIssue) findingstate.Standing {
	return findingstate.Standing{UserStatus: UserStatus(issue), Triage: triageOf(&issue.Spec)}
}

// Verdict returns the user's decision about the issue as a verdict for the finding with the same result; nil if no
// such decision is in force.
func Verdict(issue *v1alpha1.ReviewIssue) *v1alpha1.FindingVerdict {
	if UserStatus(issue) == v1alpha1.UserStatusOpen {
		return nil
	}
	return findingstate.ReviewVerdict(issue.Name, &issue.Spec.Triage)
}

// ofDecisions lists the transition types of decisions.
var ofDecisions = []v1alpha1.TransitionType{
	v1alpha1.TransitionTriaged, v1alpha1.TransitionExpired, v1alpha1.TransitionJudged,
}

// decide writes the decision about the issue into the status, by the rules for findings, and returns the resulting
// transitions. Their number and time are set later.
func decide(issue *v1alpha1.ReviewIssue, review *v1alpha1.ReviewSpec, verdict *v1alpha1.FindingVerdict,
	next *v1alpha1.ReviewIssueStatus, now time.Time) []v1alpha1.Transition {
	observed := findingstate.Observe(Facts(issue, review), verdict, now)
	next.UserStatus, next.EndedAt = observed.UserStatus, observed.EndedAt
	next.Verdict, next.TriageDigest = observed.Verdict, observed.TriageDigest
	return slices.DeleteFunc(observed.Transitions, func(t v1alpha1.Transition) bool {
		return !slices.Contains(ofDecisions, t.Type)
	})
}
