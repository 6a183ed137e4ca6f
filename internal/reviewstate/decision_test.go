package reviewstate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func happened(issue *v1alpha1.ReviewIssue) (out []string) {
	for _, t := range issue.Status.Transitions {
		out = append(out, strings.TrimSpace(strings.Join([]string{string(t.Type), t.From, t.To, t.By}, " ")))
	}
	return out
}

func mutes(name string) *v1alpha1.FindingVerdict {
	return findingstate.NewVerdict(v1alpha1.ResourceName(name), &v1alpha1.TriagePolicySpec{By: "ann", Set: v1alpha1.PolicyDecision{
		UserStatus: v1alpha1.PolicyStatus(v1alpha1.UserStatusMuted), Reason: v1alpha1.DecisionUsedInTests,
	}})
}

func TestAPersonWinsOverAPolicyAndThePolicyOverNothing(t *testing.T) {
	review := &v1alpha1.ReviewSpec{ReviewedCommits: reviewed("a")}
	issue := &v1alpha1.ReviewIssue{ObjectMeta: written(1, 5), Spec: *seenIn("a")}
	look := func(verdict *v1alpha1.FindingVerdict, minute int) {
		issue.Status = reviewstate.JudgedStatus(issue, review, verdict, at(minute).Time)
	}
	want := func(reason string, person, decided v1alpha1.UserStatus) {
		t.Helper()
		if got := issue.Status.UserStatus; got != person || reviewstate.Decided(issue) != decided {
			t.Errorf("%s: the person's status is %s, all in all %s; want %s and %s", reason, got, reviewstate.Decided(issue), person, decided)
		}
		harness.Same(t, reason+": a second look", issue.Status, reviewstate.IssueStatus(issue, review, at(59).Time))
	}
	look(nil, 6)
	want("nobody", v1alpha1.UserStatusOpen, v1alpha1.UserStatusOpen)
	look(mutes("tests"), 7)
	want("a policy", v1alpha1.UserStatusOpen, v1alpha1.UserStatusMuted)
	harness.Same(t, "since when the verdict is", *at(7), issue.Status.Verdict.Since)
	look(mutes("tests"), 8)
	harness.Same(t, "since when the same verdict is", *at(7), issue.Status.Verdict.Since)
	issue.ObjectMeta = written(2, 9)
	issue.Spec.Triage = v1alpha1.ReviewIssueTriage{UserStatus: v1alpha1.UserStatusActive, By: "bob"}
	look(mutes("tests"), 9)
	want("a person", v1alpha1.UserStatusActive, v1alpha1.UserStatusActive)
	issue.ObjectMeta = written(3, 10)
	issue.Spec.Triage.UserStatus = v1alpha1.UserStatusOpen
	look(nil, 10)
	want("nobody again", v1alpha1.UserStatusOpen, v1alpha1.UserStatusOpen)
	harness.Same(t, "history",
		[]string{"opened  open", "judged open muted policy/tests", "triaged open active bob", "triaged active open bob"},
		happened(issue))
}

func TestADecisionAboutAnIssueEndsAtItsSecond(t *testing.T) {
	review := &v1alpha1.ReviewSpec{ReviewedCommits: reviewed("a")}
	issue := &v1alpha1.ReviewIssue{ObjectMeta: written(1, 5), Spec: *seenIn("a")}
	issue.Spec.Triage = v1alpha1.ReviewIssueTriage{UserStatus: v1alpha1.UserStatusMuted, By: "bob", ExpiresAt: at(20)}
	issue.Status = reviewstate.IssueStatus(issue, review, at(19).Time)
	harness.Same(t, "what is left", time.Minute, reviewstate.UntilEnd(issue, at(19).Time))
	if v := reviewstate.Verdict(issue); v == nil || v.By != "bob" || v.UserStatus != "muted" {
		t.Errorf("the finding would show %+v, want bob's", v)
	}
	issue.Status = reviewstate.IssueStatus(issue, review, at(20).Time)
	if got := issue.Status; got.UserStatus != v1alpha1.UserStatusOpen || !got.EndedAt.Equal(at(20)) || !got.UpdatedAt.Equal(at(20)) {
		t.Errorf("after its end: %+v", got)
	}
	if v := reviewstate.Verdict(issue); v != nil {
		t.Errorf("the finding would show %+v after the end", v)
	}
	harness.Same(t, "history",
		[]string{"opened  open", "triaged open muted bob", "expired muted open bob"}, happened(issue))
}

// REST has answered the decision with that time.
func TestAUsersDecisionAboutAnIssueIsUpdatedWhenWritten(t *testing.T) {
	review := &v1alpha1.ReviewSpec{ReviewedCommits: reviewed("a")}
	issue := &v1alpha1.ReviewIssue{ObjectMeta: written(1, 5), Spec: *seenIn("a")}
	issue.Status = reviewstate.IssueStatus(issue, review, at(5).Time)
	issue.ObjectMeta = written(2, 9)
	issue.Spec.Triage = v1alpha1.ReviewIssueTriage{UserStatus: v1alpha1.UserStatusMuted, By: "bob"}
	harness.Same(t, "updated at", at(9), reviewstate.IssueStatus(issue, review, at(12).Time).UpdatedAt)
}

// An upgrade must not count as a decision.
func TestAStatusOfAnEarlierVersionMakesNoHistory(t *testing.T) {
	review := &v1alpha1.ReviewSpec{ReviewedCommits: reviewed("a")}
	issue := &v1alpha1.ReviewIssue{ObjectMeta: written(1, 5), Spec: *seenIn("a"), Status: v1alpha1.ReviewIssueStatus{
		ObservedGeneration: 1, UpdatedAt: at(5), State: v1alpha1.ReviewIssueOpen,
	}}
	issue.ObjectMeta = written(2, 9)
	issue.Status = reviewstate.IssueStatus(issue, review, at(9).Time)
	if len(issue.Status.Transitions) > 0 || issue.Status.UserStatus != v1alpha1.UserStatusOpen {
		t.Errorf("status %+v", issue.Status)
	}
}

func TestOpenIssuesThatAreDecidedCountTwice(t *testing.T) {
	issue := func(status v1alpha1.UserStatus, verdict *v1alpha1.FindingVerdict, seen ...v1alpha1.CommitSHA) *v1alpha1.ReviewIssue {
		return &v1alpha1.ReviewIssue{
			Spec:   v1alpha1.ReviewIssueSpec{Severity: v1alpha1.LevelLow, SeenInCommits: seen, Triage: v1alpha1.ReviewIssueTriage{UserStatus: status}},
			Status: v1alpha1.ReviewIssueStatus{Verdict: verdict},
		}
	}
	var got reviewstate.Counts
	for _, i := range []*v1alpha1.ReviewIssue{
		issue("open", nil, "b"), issue("", nil, "b"), issue("muted", nil, "b"), issue("active", nil, "b"), issue("muted", nil, "a"),
		issue("open", mutes("p"), "b"),
	} {
		got.AddIssue(i, reviewed("a", "b"))
	}
	want := reviewstate.Counts{Closed: 1, Open: 5, OpenLow: 5, OpenMuted: 2, OpenConfirmed: 1}
	harness.Same(t, "counts", want, got)
	harness.Same(t, "added and taken away", got, got.Plus(1, got).Plus(-1, got))
}

func TestADecisionAboutAnIssueHasNoBasis(t *testing.T) {
	muted := v1alpha1.UserStatusMuted
	issue := &v1alpha1.ReviewIssue{Spec: *seenIn("a")}
	harness.Same(t, "decision",
		map[string]any{"userStatus": muted},
		findingstate.Decision{UserStatus: &muted}.Changes(reviewstate.StandingOf(issue), at(9).Time))
}
