package reviewstate

import (
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Facts returns the issue as the finding that its result would be: the terms in which policies are written, and in
// which a decision is begun and ended. What the issue does not hold is empty. review may be nil.
func Facts(issue *v1alpha1.ReviewIssue, review *v1alpha1.ReviewSpec) *v1alpha1.Finding {
	spec, status := &issue.Spec, &issue.Status
	f := &v1alpha1.Finding{ObjectMeta: issue.ObjectMeta}
	f.Spec.Details.Title, f.Spec.Details.Severity = spec.Title, spec.Severity
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
	}
	f.Spec.Triage = triageOf(spec)
	f.Status = v1alpha1.FindingStatus{
		ObservedGeneration: status.ObservedGeneration, UpdatedAt: status.UpdatedAt, State: v1alpha1.FindingStateOpen,
		UserStatus: status.UserStatus, EndedAt: status.EndedAt, Verdict: status.Verdict, TriageDigest: status.TriageDigest,
	}
	if status.UpdatedAt != nil && status.TriageDigest == "" {
		// An earlier version wrote the status, when nobody could decide about issues.
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

// UserStatus is the decision of a person that is in force; open where nobody has decided, or it has ended.
func UserStatus(issue *v1alpha1.ReviewIssue) v1alpha1.UserStatus {
	return findingstate.UserStatus(&v1alpha1.Finding{
		Spec:   v1alpha1.FindingSpec{Triage: triageOf(&issue.Spec)},
		Status: v1alpha1.FindingStatus{EndedAt: issue.Status.EndedAt},
	})
}

// Decided is what is decided about the issue: by a person, else by a policy; open where neither has.
func Decided(issue *v1alpha1.ReviewIssue) v1alpha1.UserStatus {
	if verdict := Judged(issue); verdict != nil {
		return v1alpha1.UserStatus(verdict.UserStatus)
	}
	return UserStatus(issue)
}

// Judged is what a policy decided about the issue; nil where none has, or where a person's decision is in force.
func Judged(issue *v1alpha1.ReviewIssue) *v1alpha1.FindingVerdict {
	if UserStatus(issue) != v1alpha1.UserStatusOpen {
		return nil
	}
	return issue.Status.Verdict
}

// UntilEnd returns how long a person's decision stays in force; 0 where it has no end, or that has come.
func UntilEnd(issue *v1alpha1.ReviewIssue, now time.Time) time.Duration {
	return findingstate.UntilEnd(Facts(issue, nil), now)
}

// StandingOf returns what was decided about the issue. A decision rests on no facts: the issue is about one commit, and
// the next one shows it anew.
func StandingOf(issue *v1alpha1.ReviewIssue) findingstate.Standing {
	return findingstate.Standing{UserStatus: UserStatus(issue), Triage: triageOf(&issue.Spec)}
}

// Verdict is what the finding with the same result shows of the issue; nil where no person's decision is in force.
func Verdict(issue *v1alpha1.ReviewIssue) *v1alpha1.FindingVerdict {
	if UserStatus(issue) == v1alpha1.UserStatusOpen {
		return nil
	}
	return findingstate.ReviewVerdict(issue.Name, &issue.Spec.Triage)
}

// recorded keeps the verdict as it is.
func recorded(finding *v1alpha1.Finding) *v1alpha1.FindingVerdict { return finding.Status.Verdict }

// ofDecisions are the transitions that a decision makes.
var ofDecisions = []v1alpha1.TransitionType{
	v1alpha1.TransitionTriaged, v1alpha1.TransitionExpired, v1alpha1.TransitionJudged,
}

// decide writes into the status what is decided about the issue, by the rules of a finding, and returns what has become
// of it. They have no number and no time yet.
func decide(issue *v1alpha1.ReviewIssue, review *v1alpha1.ReviewSpec, judge findingstate.Judge,
	next *v1alpha1.ReviewIssueStatus, now time.Time) []v1alpha1.Transition {
	observed := findingstate.Observe(Facts(issue, review), judge, now)
	next.UserStatus, next.EndedAt = observed.UserStatus, observed.EndedAt
	next.Verdict, next.TriageDigest = observed.Verdict, observed.TriageDigest
	return slices.DeleteFunc(observed.Transitions, func(t v1alpha1.Transition) bool {
		return !slices.Contains(ofDecisions, t.Type)
	})
}
