package triagepolicy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// fact returns the facts of a finding in a project, which it shares with others.
func fact(id int, project *v1alpha1.Project) *rules.Facts {
	return &rules.Facts{Project: project, Finding: &v1alpha1.Finding{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("f-%d", id), UID: types.UID(fmt.Sprintf("uid-%d", id)), Generation: 1},
		Spec:       v1alpha1.FindingSpec{Class: "A"},
	}}
}

// matches are expressions. The last one fails for some findings.
var matches = []string{
	"finding.class == 'A'", "project.owner == 'ada'", "true", "finding.class == 'B' && project.owner == 'bob'", "now.getHours() < 12",
	"finding.score > 1.0",
}

func drawPolicy(t *rapid.T, name string) rules.Policy {
	spec := &v1alpha1.TriagePolicySpec{
		Match: rapid.SampledFrom(matches).Draw(t, "match"), Priority: rapid.Int32Range(0, 2).Draw(t, "priority"),
		Set: v1alpha1.PolicyDecision{UserStatus: rapid.SampledFrom([]v1alpha1.PolicyStatus{"active", "muted"}).Draw(t, "set")},
	}
	program, err := rules.Compile(spec.Match)
	harness.Must(t, err)
	return rules.Policy{Name: v1alpha1.ResourceName(name), Spec: spec, Program: program}
}

// After any changes, remembered outcomes equal those of an evaluation.
func TestWhatIsRememberedIsWhatAnEvaluationSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
		projects := []*v1alpha1.Project{nil, {}, {}}
		facts := []*rules.Facts{}
		for i := range 6 {
			facts = append(facts, fact(i, projects[i%3]))
		}
		others := []rules.Policy{drawPolicy(t, "a"), drawPolicy(t, "c")}
		policy := drawPolicy(t, "b")
		mem := newMemory()
		t.Repeat(map[string]func(*rapid.T){
			"a finding": func(t *rapid.T) {
				f := facts[rapid.IntRange(0, 5).Draw(t, "which")].Finding
				f.Generation++
				f.Spec.Class = rapid.SampledFrom([]string{"A", "B"}).Draw(t, "class")
				f.Spec.Details.Score = rapid.SampledFrom([]string{"", "9.8"}).Draw(t, "score")
				f.Spec.Triage.UserStatus = rapid.SampledFrom([]v1alpha1.UserStatus{"open", "active", "muted"}).Draw(t, "decision")
			},
			"a decision in a pull request": func(t *rapid.T) {
				f := facts[rapid.IntRange(0, 5).Draw(t, "which")].Finding
				f.Status.Verdict = rapid.SampledFrom([]*v1alpha1.FindingVerdict{
					nil, {ReviewIssue: "i", UserStatus: "muted"}, {ReviewIssue: "i", UserStatus: "active"},
				}).Draw(t, "verdict")
			},
			"a project": func(t *rapid.T) {
				p := projects[rapid.IntRange(1, 2).Draw(t, "which")]
				p.Generation++
				p.Spec.Owner = rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "owner")
			},
			"the time": func(*rapid.T) { now = now.Add(12 * time.Hour) },
			"a policy": func(t *rapid.T) {
				switch rapid.IntRange(0, 2).Draw(t, "which") {
				case 0:
					others = []rules.Policy{drawPolicy(t, "a"), drawPolicy(t, "c")}
				case 1:
					others = others[:1]
				default:
					policy = drawPolicy(t, "b")
				}
			},
			"": func(t *rapid.T) {
				rules.Sort(others)
				before := mem.of(&policy, generation{}, false, others, now)
				for _, f := range facts {
					want := policy.Try(others, f, now)
					got := before.try(mem.slotOf(f), others, func() rules.Trial { return want })
					if got.Outcome != want.Outcome || got.By != want.By {
						t.Fatalf("%s: remembered %v by %v, evaluated %v by %v", f.Finding.Name, got.Outcome, got.By, want.Outcome, want.By)
					}
				}
			},
		})
	})
}

func TestAChangeOfOneFindingEvaluatesThatFindingAlone(t *testing.T) {
	now, mem := time.Now(), newMemory()
	program, err := rules.Compile("finding.class == 'A'")
	harness.Must(t, err)
	policy := &rules.Policy{Name: "p", Spec: &v1alpha1.TriagePolicySpec{Match: "finding.class == 'A'"}, Program: program}
	facts := make([]*rules.Facts, 100)
	for i := range facts {
		facts[i] = fact(i, nil)
	}
	count := func() (evaluated []string) {
		before := mem.of(policy, generation{}, false, nil, now)
		for _, f := range facts {
			before.try(mem.slotOf(f), nil, func() rules.Trial {
				evaluated = append(evaluated, f.Finding.Name)
				return policy.Try(nil, f, now)
			})
		}
		return evaluated
	}
	if got := count(); len(got) != 100 {
		t.Fatalf("the first count evaluates %d findings", len(got))
	}
	facts[7].Finding.Generation++
	harness.Same(t, "evaluated after a change of f-7", []string{"f-7"}, count())
	harness.Same(t, "evaluated after no change", []string(nil), count())
}

// A policy's outcomes do not rest on those that come after it, and only some on those that come before.
func TestOnlyPoliciesWithPrecedenceMayMakeOutcomesDependOnTheTime(t *testing.T) {
	policy := func(name, match string) rules.Policy {
		program, err := rules.Compile(match)
		harness.Must(t, err)
		return rules.Policy{Name: v1alpha1.ResourceName(name), Spec: &v1alpha1.TriagePolicySpec{Match: match}, Program: program}
	}
	const timed = "finding.detectedAt < now"
	undecided := []rules.Outcome{rules.Decides, rules.Shadowed}
	all := append([]rules.Outcome{rules.NotMatched, rules.Overridden, rules.Agreed}, undecided...)
	for _, c := range []struct {
		reason         string
		policy, others rules.Policy
		evaluated      []rules.Outcome
	}{
		{"one that comes after it", policy("b", "true"), policy("c", timed), nil},
		{"one that comes before it", policy("b", "true"), policy("a", timed), undecided},
		{"the policy itself", policy("b", timed), policy("c", "true"), all},
	} {
		var evaluated []rules.Outcome
		mem, others := newMemory(), []rules.Policy{c.others}
		for count := range 2 {
			for slot, outcome := range all {
				mem.of(&c.policy, generation{}, false, others, time.Now()).try(slot, others, func() rules.Trial {
					if count > 0 {
						evaluated = append(evaluated, outcome)
					}
					return rules.Trial{Outcome: outcome}
				})
			}
		}
		harness.Same(t, c.reason+" reads the time: outcomes that are evaluated again", c.evaluated, evaluated)
	}
	mem, others := newMemory(), []rules.Policy{policy("a", "true")}
	p := policy("b", "true")
	before := mem.of(&p, generation{}, false, others, time.Now())
	if mem.of(&p, generation{}, false, append(others, policy("c", "true")), time.Now()) != before {
		t.Error("outcomes are forgotten because of another policy that comes after it")
	}
}

// Deleted findings do not take up memory forever.
func TestFindingsThatHaveGoneAreForgotten(t *testing.T) {
	mem := newMemory()
	for i := range 5000 {
		mem.slotOf(fact(i, nil))
		mem.shrink(10)
	}
	if len(mem.facts) > 2000 || len(mem.slots) > 2000 {
		t.Errorf("%d slots are kept", len(mem.slots))
	}
}

// kubectl does not limit how many there are, and each would hold two bytes per finding.
func TestOnlySomePoliciesAreRemembered(t *testing.T) {
	now, mem := time.Now(), newMemory()
	program, err := rules.Compile("true")
	harness.Must(t, err)
	policy := func(i int) *rules.Policy {
		return &rules.Policy{Name: v1alpha1.ResourceName(fmt.Sprintf("p-%03d", i)), Spec: &v1alpha1.TriagePolicySpec{Match: "true"}, Program: program}
	}
	evaluatesOf := func(i int, earlier, inForce bool, others []rules.Policy) (evaluated bool) {
		f, p := fact(0, nil), policy(i)
		before := mem.of(p, generation{string(p.Name), earlier}, inForce, others, now)
		trial := before.try(mem.slotOf(f), others, func() rules.Trial {
			evaluated = true
			return p.Try(nil, f, now)
		})
		harness.Same(t, "the outcome", rules.Decides, trial.Outcome)
		return evaluated
	}
	// evaluates reports whether a count of the policy evaluates its declared generation.
	evaluates := func(i int, inForce bool, others ...rules.Policy) bool { return evaluatesOf(i, false, inForce, others) }
	const last = maxRemembered + 99
	for i := range last + 1 {
		evaluates(i, false)
	}
	harness.Same(t, "remembered policies", maxRemembered, len(mem.policies))
	harness.Same(t, "evaluated again: one of the first, and one beyond them", []bool{false, true}, []bool{evaluates(0, false), evaluates(last, false)})
	r := &Reconciler{}
	r.memories.Store("org-acme", mem)
	r.forget(types.NamespacedName{Namespace: "org-acme", Name: "p-000"})
	evaluates(last, false)
	harness.Same(t, "evaluated again once there is room", false, evaluates(last, false))

	var inForce []rules.Policy
	for i := 500; i < 500+rules.MaxInForce; i++ {
		evaluates(i, true, inForce...)
		evaluatesOf(i, true, true, inForce)
		inForce = append(inForce, *policy(i))
	}
	for i := range last + 1 {
		delete(mem.policies, generation{string(policy(i).Name), false})
	}
	for i := 600; i < 700; i++ {
		evaluates(i, false, inForce...)
	}
	harness.Same(t, "evaluated again as the 200th policy", false, evaluates(699, false, inForce...))
	for i := range inForce {
		others := slices.Delete(slices.Clone(inForce), i, i+1)
		again := []bool{evaluates(500+i, true, others...), evaluatesOf(500+i, true, true, others)}
		harness.Same(t, "both generations evaluated again in force", []bool{false, false}, again)
	}
	harness.Same(t, "remembered policies", maxRemembered, len(mem.policies))
}
