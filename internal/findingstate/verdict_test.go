package findingstate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// rules returns the verdict of the named policy; "" for no verdict.
func rules(name string, status v1alpha1.UserStatus, comment string) *v1alpha1.FindingVerdict {
	if name == "" {
		return nil
	}
	return &v1alpha1.FindingVerdict{
		Policy: v1alpha1.ResourceName(name), UserStatus: v1alpha1.PolicyStatus(status), Reason: v1alpha1.DecisionUsedInTests,
		Comment: comment, By: "bob",
	}
}

func closedBy(f *v1alpha1.Finding) { f.Spec.Closed = &v1alpha1.FindingClosure{ScanID: "s-3"} }

func TestAPersonOverAPolicyOverNothing(t *testing.T) {
	var none *v1alpha1.FindingVerdict
	mutes, active := rules("tests", v1alpha1.UserStatusMuted, "in tests"), rules("confirm", v1alpha1.UserStatusActive, "")
	nothing := func(*v1alpha1.Finding) {}
	steps := []struct {
		reason  string
		change  func(*v1alpha1.Finding)
		verdict *v1alpha1.FindingVerdict
		want    string // state, user status, policy
		added   string
	}{
		{"no policy", nothing, none, "open open -", "created  open scanner/gosec s-1"},
		{"a policy mutes", nothing, mutes, "open_muted open tests", "judged open muted policy/tests "},
		{"it says the same", nothing, mutes, "open_muted open tests", ""},
		{"a person confirms: that wins", decide(v1alpha1.UserStatusActive), mutes, "open active -", "triaged open active ann "},
		{"the person takes it back, and the policy counts again", decide(v1alpha1.UserStatusOpen), mutes, "open_muted open tests",
			"triaged active open ann |judged open muted policy/tests "},
		{"the scanner closes it", closedBy, mutes, "closed open -", "closed open_muted closed scanner/gosec s-3"},
		{"it comes back muted", func(f *v1alpha1.Finding) { f.Spec.Closed = nil }, mutes, "open_muted open tests",
			"reopened closed open_muted scanner/gosec s-1|judged open muted policy/tests s-1"},
		{"another policy decides otherwise", nothing, active, "open open confirm", "judged muted active policy/confirm "},
		{"a person mutes it, as nobody else does", decide(v1alpha1.UserStatusMuted), active, "open_muted muted -", "triaged open muted ann "},
		{"no policy is left", decide(v1alpha1.UserStatusOpen), none, "open open -", "triaged muted open ann "},
		{"a policy confirms", nothing, active, "open open confirm", "judged open active policy/confirm "},
		{"and is removed", nothing, none, "open open -", "judged active open policy/confirm "},
	}
	f := imported()
	for i, s := range steps {
		at := now.Add(time.Duration(i) * time.Minute)
		before, last := *f.Status.DeepCopy(), findingstate.History(&f.Status).LastSeq()
		generation := f.Spec.DeepCopy()
		s.change(f)
		if !cmp.Equal(*generation, f.Spec) {
			f.Generation++
		}
		f.Status = findingstate.Observe(f, s.verdict, at)
		policy, added := "-", []string{}
		if v := findingstate.Verdict(f); v != nil {
			policy = string(v.Policy)
		}
		for _, tr := range f.Status.Transitions {
			if tr.Seq > last {
				added = append(added, strings.Join([]string{string(tr.Type), tr.From, tr.To, tr.By, tr.Scan}, " "))
				if tr.Type == v1alpha1.TransitionJudged && tr.Author != "bob" {
					t.Errorf("%s: the author is %q", s.reason, tr.Author)
				}
			}
		}
		got := strings.Join([]string{string(findingstate.State(f)), string(findingstate.UserStatus(f)), policy}, " ")
		if got != s.want || strings.Join(added, "|") != s.added || f.Status.State != findingstate.State(f) {
			t.Errorf("%s: got %q and %q, want %q and %q", s.reason, got, added, s.want, s.added)
		}
		if moved := !f.Status.UpdatedAt.Equal(before.UpdatedAt); s.added != "" && strings.HasPrefix(s.added, "judged") && !moved {
			t.Errorf("%s: updatedAt does not move", s.reason)
		} else if s.added == "" && !cmp.Equal(before, f.Status) {
			t.Errorf("%s: it writes %s", s.reason, cmp.Diff(before, f.Status))
		}
	}
	harness.Same(t, "the given verdict, which others may use", rules("tests", v1alpha1.UserStatusMuted, "in tests"), mutes)
}

func TestAVerdictSaysSinceWhenAndMovesUpdatedAt(t *testing.T) {
	f := imported()
	f.Status = findingstate.Observe(f, rules("p", v1alpha1.UserStatusMuted, "why"), now)
	since := f.Status.Verdict.Since
	if f.Status.ObservedGeneration == 0 || !since.Equal(f.Status.UpdatedAt) || f.Status.State != v1alpha1.FindingStateOpenMuted {
		t.Fatalf("a new finding does not arrive with its verdict: %+v", f.Status)
	}
	if got := f.Status.Transitions; len(got) != 2 || got[1].Type != v1alpha1.TransitionJudged || got[1].Scan == "" ||
		got[1].Comment != "why" || got[1].Reason != v1alpha1.DecisionUsedInTests {
		t.Errorf("the transitions are %+v", got)
	}
	f.Generation++
	f.Spec.Details.Title = "other"
	later := now.Add(time.Hour)
	f.Status = findingstate.Observe(f, rules("p", v1alpha1.UserStatusMuted, "why"), later)
	if !f.Status.Verdict.Since.Equal(&since) {
		t.Error("other facts, the same verdict: since moves")
	}
	f.Status = findingstate.Observe(f, rules("p", v1alpha1.UserStatusMuted, "another why"), later.Add(time.Minute))
	if want := v1alpha1.NewTime(later.Add(time.Minute)); !f.Status.Verdict.Since.Equal(&want) || !f.Status.UpdatedAt.Equal(&want) {
		t.Errorf("another comment: since %s, updated %s", f.Status.Verdict.Since, f.Status.UpdatedAt)
	}
}

func TestTheFacadeShowsAPersonsDecisionBeforeTheControllersDo(t *testing.T) {
	f := imported()
	f.Status = findingstate.Observe(f, rules("p", v1alpha1.UserStatusMuted, ""), now)
	decide(v1alpha1.UserStatusActive)(f)
	f.Generation++
	if findingstate.State(f) != v1alpha1.FindingStateOpen || findingstate.Verdict(f) != nil {
		t.Error("a policy's verdict stands against the decision until the controllers look")
	}
}

// A longer name would make the API server refuse the status.
func TestOnlyAReviewIssueWhoseNameFitsAStatusGivesAVerdict(t *testing.T) {
	triage := &v1alpha1.ReviewIssueTriage{UserStatus: v1alpha1.UserStatusMuted, By: "ann"}
	for length, want := range map[int]bool{63: true, 64: false} {
		verdict := findingstate.ReviewVerdict(strings.Repeat("i", length), triage)
		harness.Same(t, fmt.Sprintf("%d characters give a verdict", length), want, verdict != nil)
	}
}

func TestAVerdictKeepsWhatItHasRoomFor(t *testing.T) {
	comment, author := strings.Repeat("ä", v1alpha1.MaxTransitionComment), strings.Repeat("ä", v1alpha1.MaxTransitionAuthor)
	for source, verdict := range map[string]*v1alpha1.FindingVerdict{
		"policy": findingstate.NewVerdict("p", &v1alpha1.TriagePolicySpec{By: author + "x", Set: v1alpha1.PolicyDecision{Comment: comment + "x"}}),
		"issue":  findingstate.ReviewVerdict("i", &v1alpha1.ReviewIssueTriage{By: author + "x", Comments: comment + "x"}),
	} {
		harness.Same(t, source, [2]int{v1alpha1.MaxTransitionComment, v1alpha1.MaxTransitionAuthor},
			[2]int{utf8.RuneCountInString(verdict.Comment), utf8.RuneCountInString(verdict.By)})
	}
}

func TestAVerdictIsAnotherIfItsDecisionOrSourceDiffers(t *testing.T) {
	policy := v1alpha1.FindingVerdict{Policy: "p", UserStatus: "muted", Reason: "duplicate", Comment: "why", By: "ann"}
	issue := policy
	issue.Policy, issue.ReviewIssue = "", "i"
	for _, c := range []struct {
		reason string
		of     v1alpha1.FindingVerdict
		change func(*v1alpha1.FindingVerdict)
		same   bool
	}{
		{"another author of the policy", policy, func(v *v1alpha1.FindingVerdict) { v.By = "bob" }, true},
		{"another person decided about the issue", issue, func(v *v1alpha1.FindingVerdict) { v.By = "bob" }, false},
		{"a later time", issue, func(v *v1alpha1.FindingVerdict) { v.Since = v1alpha1.NewTime(now) }, true},
		{"another policy", policy, func(v *v1alpha1.FindingVerdict) { v.Policy = "q" }, false},
		{"another issue", issue, func(v *v1alpha1.FindingVerdict) { v.ReviewIssue = "j" }, false},
		{"another decision", policy, func(v *v1alpha1.FindingVerdict) { v.UserStatus = "active" }, false},
		{"another reason", policy, func(v *v1alpha1.FindingVerdict) { v.Reason = "accepted-risk" }, false},
		{"another comment", policy, func(v *v1alpha1.FindingVerdict) { v.Comment = "because" }, false},
	} {
		other := c.of
		c.change(&other)
		harness.Same(t, c.reason, c.same, findingstate.SameVerdict(&c.of, &other))
	}
}

// After the last policy is deleted, everything is as without policies, except the history, its numbers and the time
// of the last change.
func TestWithoutPoliciesAllIsAsIfThereHadBeenNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		with, without := imported(), imported()
		for i := range rapid.IntRange(1, 8).Draw(t, "steps") {
			at := now.Add(time.Duration(i) * time.Minute)
			change := rapid.SampledFrom([]func(*v1alpha1.Finding){
				func(*v1alpha1.Finding) {}, decide(v1alpha1.UserStatusActive), decide(v1alpha1.UserStatusMuted), decide(v1alpha1.UserStatusOpen),
				closedBy, func(f *v1alpha1.Finding) { f.Spec.Closed = nil }, severity("low"),
			}).Draw(t, "change")
			for _, f := range []*v1alpha1.Finding{with, without} {
				change(f)
				f.Generation++
			}
			verdict := rules(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "policy"),
				rapid.SampledFrom([]v1alpha1.UserStatus{"active", "muted"}).Draw(t, "decides"), "")
			with.Status, without.Status = findingstate.Observe(with, verdict, at), findingstate.Observe(without, nil, at)
			if findingstate.UserStatus(with) != findingstate.UserStatus(without) {
				t.Fatal("a policy changes the person's decision")
			}
			if decided := findingstate.UserStatus(with) != v1alpha1.UserStatusOpen; decided && with.Status.State != without.Status.State {
				t.Fatal("a policy counts against a person")
			}
		}
		end := now.Add(time.Hour)
		with.Status, without.Status = findingstate.Observe(with, nil, end), findingstate.Observe(without, nil, end)
		for _, f := range []*v1alpha1.Finding{with, without} {
			f.Status.Transitions, f.Status.UpdatedAt = nil, nil
		}
		harness.Same(t, "the status of one that was judged", without.Status, with.Status)
	})
}
