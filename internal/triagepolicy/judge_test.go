package triagepolicy_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func policy(t harness.T, name, match string, change func(*v1alpha1.TriagePolicySpec)) triagepolicy.Policy {
	program, err := triagepolicy.Compile(match)
	harness.Must(t, err)
	spec := &v1alpha1.TriagePolicySpec{Match: match, Set: v1alpha1.PolicyDecision{
		UserStatus: v1alpha1.PolicyStatus(v1alpha1.UserStatusMuted), Reason: v1alpha1.DecisionUsedInTests, Comment: "why",
	}, By: "ann"}
	if change != nil {
		change(spec)
	}
	return triagepolicy.Policy{Name: v1alpha1.ResourceName(name), Spec: spec, Program: program}
}

func priority(n int32) func(*v1alpha1.TriagePolicySpec) {
	return func(s *v1alpha1.TriagePolicySpec) { s.Priority = n }
}

func TestTheHighestPriorityDecidesAndThenTheName(t *testing.T) {
	policies := []triagepolicy.Policy{
		policy(t, "c", "true", priority(5)), policy(t, "a", "true", priority(5)), policy(t, "b", "true", priority(7)),
		policy(t, "none", "false", priority(9)), policy(t, "broken", "finding.score > 1.0", priority(1000)),
	}
	triagepolicy.Sort(policies)
	decides := triagepolicy.First(policies, &triagepolicy.Facts{Finding: &v1alpha1.Finding{}}, now)
	if decides == nil || decides.Name != "b" {
		t.Fatalf("got %v", decides)
	}
	verdict := decides.Verdict()
	want := v1alpha1.FindingVerdict{
		Policy: "b", UserStatus: "muted", Reason: "used-in-tests", Comment: "why", By: "ann",
	}
	harness.Same(t, "verdict", want, *verdict)
}

// Any number of costly policies take a bounded time for a verdict. Policies that are not evaluated
// are reported.
func TestPoliciesMaySpendSoMuchTogether(t *testing.T) {
	var policies []triagepolicy.Policy
	for _, name := range []string{"a", "b", "c"} {
		policies = append(policies, policy(t, name, "finding.path.matches('(.*){110}b')", nil))
	}
	last, other := policy(t, "last", "true", nil), policy(t, "last", "finding.title == 'x'", nil)
	long, short := facts(), facts()
	long.Finding.Spec.Details.Location.FilePath = fill("a", 1024)
	for _, c := range []struct {
		reason string
		first  []triagepolicy.Policy
		last   triagepolicy.Policy
		facts  *triagepolicy.Facts
		want   triagepolicy.Outcome
	}{
		{"there is something left", policies[:2], last, long, triagepolicy.Decides},
		{"nothing is left", policies, last, long, triagepolicy.Failed},
		{"nothing is left, and it does not match", policies, other, long, triagepolicy.NotMatched},
		{"a short text costs little", policies, last, short, triagepolicy.Decides},
		{"they are not in force", append(slices.Clone(policies[:2]), expired(policies[2])), last, long, triagepolicy.Decides},
	} {
		trial := c.last.Try(c.first, c.facts, now)
		if trial.Outcome != c.want || (trial.Err != nil) != (c.want == triagepolicy.Failed) {
			t.Errorf("%s: tried: %+v", c.reason, trial)
		}
		decides := triagepolicy.First(append(slices.Clone(c.first), c.last), c.facts, now) != nil
		harness.Same(t, c.reason+": it decides", c.want == triagepolicy.Decides, decides)
	}
	if failure := triagepolicy.Failure(last.Try(policies, long, now).Err); !strings.HasSuffix(failure, "spec.priority") {
		t.Errorf("the status has no room for what to do: %s", failure)
	}
}

func expired(p triagepolicy.Policy) triagepolicy.Policy {
	spec, until := *p.Spec, v1alpha1.NewTime(now)
	spec.ValidUntil = &until
	p.Spec = &spec
	return p
}

func TestAPolicyDecidesInItsWindowAlone(t *testing.T) {
	// As somebody may write them, but whole seconds count.
	from, until := v1alpha1.Time{Time: now.Add(time.Millisecond)}, v1alpha1.Time{Time: now.Add(time.Hour + time.Millisecond)}
	p := []triagepolicy.Policy{policy(t, "p", "true", func(s *v1alpha1.TriagePolicySpec) { s.ValidFrom, s.ValidUntil = &from, &until })}
	for _, c := range []struct {
		at     time.Time
		want   bool
		window triagepolicy.Window
		next   time.Duration
	}{
		{now.Add(-time.Millisecond), false, triagepolicy.NotYetValid, time.Millisecond},
		{now, true, triagepolicy.Valid, time.Hour},
		{now.Add(time.Hour - 1), true, triagepolicy.Valid, 1},
		{now.Add(time.Hour), false, triagepolicy.Expired, 0},
	} {
		decides := triagepolicy.First(p, &triagepolicy.Facts{Finding: &v1alpha1.Finding{}}, c.at) != nil
		if decides != c.want || triagepolicy.WindowOf(p[0].Spec, c.at) != c.window || triagepolicy.UntilNext(p[0].Spec, c.at) != c.next {
			t.Errorf("at %s: decides is %v, the window %v, the next %s", c.at, decides, triagepolicy.WindowOf(p[0].Spec, c.at),
				triagepolicy.UntilNext(p[0].Spec, c.at))
		}
	}
}

// For any policies in any order, exactly the policy that the rule names decides.
func TestJudgeFollowsTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type drawn struct {
			name     string
			priority int32
			matches  bool
		}
		var policies []triagepolicy.Policy
		var want []drawn
		for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,2}`), 0, 6, rapid.ID[string]).Draw(t, "names") {
			d := drawn{name, rapid.Int32Range(0, 2).Draw(t, "priority"), true}
			match := rapid.SampledFrom([]string{"true", "false", "finding.score > 1.0"}).Draw(t, "match")
			d.matches = match == "true"
			policies = append(policies, policy(t, name, match, priority(d.priority)))
			if d.matches {
				want = append(want, d)
			}
		}
		slices.SortFunc(want, func(a, b drawn) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.name, b.name))
		})
		triagepolicy.Sort(policies)
		f := &triagepolicy.Facts{Finding: &v1alpha1.Finding{}}
		// Removed one after the other, they decide in the wanted order.
		for _, d := range want {
			decides := triagepolicy.First(policies, f, now)
			if decides == nil || string(decides.Name) != d.name {
				t.Fatalf("got %v, want %v", decides, d)
			}
			policies = slices.DeleteFunc(policies, func(p triagepolicy.Policy) bool { return string(p.Name) == d.name })
		}
		if decides := triagepolicy.First(policies, f, now); decides != nil {
			t.Fatalf("%v decides too", decides)
		}
	})
}

func TestFactsThatExpressionsCannotSeeDoNotCount(t *testing.T) {
	project := &v1alpha1.Project{Spec: v1alpha1.ProjectSpec{Owner: "a", Purpose: "x"}}
	other := project.DeepCopy()
	other.Spec.Purpose = "y"
	if triagepolicy.ProjectFactsDiffer(project, other) {
		t.Error("the purpose is no fact")
	}
	if other.Spec.Owner = "b"; !triagepolicy.ProjectFactsDiffer(project, other) {
		t.Error("the owner is one")
	}
	repository := &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{FullName: "a/b"}}
	renamed := repository.DeepCopy()
	if renamed.Spec.Description = "y"; triagepolicy.RepositoryFactsDiffer(repository, renamed) {
		t.Error("the description is no fact")
	}
	if renamed.Spec.FullName = "a/c"; !triagepolicy.RepositoryFactsDiffer(repository, renamed) {
		t.Error("the name is one")
	}
}
