package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestThePlaceOfAMistakeIsPointedAt(t *testing.T) {
	long := strings.Repeat("a", 100) + "!" + strings.Repeat("b", 100)
	for reason, tc := range map[string]struct {
		expression   string
		line, column int
		want         string
	}{
		"the second line":            {"a &&\nb.c", 2, 3, "\n  b.c\n    ^"},
		"behind the end":             {"a &&", 1, 9, "\n  a &&\n      ^"},
		"in a long line":             {long, 1, 101, "\n  " + long[40:160] + "\n  " + strings.Repeat(" ", 60) + "^"},
		"after what is shown longer": {"'\x1b' + é", 1, 7, "\n  '\\x1b' + é\n           ^"},
		"after a tab":                {"\tb", 1, 2, "\n   b\n   ^"},
		"the whole":                  {"a", 0, 0, ""},
		"a line that does not exist": {"a", 2, 1, ""},
	} {
		harness.Same(t, reason, tc.want, pointed(tc.expression, tc.line, tc.column))
	}
}

func TestAFileOfPoliciesThatIsWrongIsRefused(t *testing.T) {
	file := func(match, more string) string {
		return "apiVersion: appsec.dev/v1alpha1\nkind: TriagePolicy\nmetadata: {name: p}\nspec:\n  match: |-\n    " +
			strings.ReplaceAll(match, "\n", "\n    ") + "\n  set: {userStatus: muted, reason: used-in-tests}\n  mode: Apply\n" + more
	}
	good := file("true", "")
	noCluster := testenv.WriteKubeconfig(t, &rest.Config{Host: "https://127.0.0.1:1"}, "org-acme")
	for reason, tc := range map[string]struct{ manifest, says string }{
		"it does not compile": {file("finding.ruleID == 'R0' &&\n  finding.pth == ''", ""),
			"spec.match of policy p does not compile: line 2, column 10: undefined field 'pth'\n    finding.pth == ''\n           ^"},
		"no member":       {file("true", "  prio: 3\n"), `unknown field "spec.prio"`},
		"of another type": {file("true", "  priority: high\n"), "policy p: spec.priority must be a whole number up to 2147483647, not a text"},
		"too large":       {file("true", "  priority: 99999999999\n"), "policy p: spec.priority must be a whole number up to 2147483647, not 99999999999"},
		"no expression":   {strings.Replace(good, "|-\n    true", "true", 1), "policy p: spec.match must be a text, not true or false"},
		"no decision": {strings.Replace(good, "{userStatus: muted, reason: used-in-tests}", "muted", 1),
			"policy p: spec.set must be an object, not a text"},
		"no such version": {strings.Replace(good, "v1alpha1", "v1", 1),
			"p has the apiVersion appsec.dev/v1 and the kind TriagePolicy: did you mean appsec.dev/v1alpha1 and TriagePolicy?"},
		"no group": {strings.Replace(good, "appsec.dev/v1alpha1", "v1alpha1", 1),
			`policy p has the apiVersion "v1alpha1": did you mean appsec.dev/v1alpha1?`},
		"no apiVersion": {good + "---\nkind: TriagePolicy\nmetadata: {name: q}\n",
			`policy q has the apiVersion "": did you mean appsec.dev/v1alpha1?`},
		"no such kind": {good + "---\n" + strings.Replace(good, "TriagePolicy", "TriagePolcy", 1),
			"p has the apiVersion appsec.dev/v1alpha1 and the kind TriagePolcy"},
		"the plural": {good + "---\n" + strings.Replace(good, "TriagePolicy", "TriagePolicies", 1),
			"the kind TriagePolicies: did you mean appsec.dev/v1alpha1 and TriagePolicy?"},
		"twice":              {good + "---\n" + good, "policy p is declared twice"},
		"no policy":          {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "the files contain no TriagePolicy"},
		"of another":         {strings.Replace(good, "{name: p}", "{name: p, namespace: org-other}", 1), "policy p has the namespace org-other, but the flags select org-acme"},
		"no name":            {strings.Replace(good, "{name: p}", `{name: "p\x1b[2J"}`, 1), `policy "p\x1b[2J" of namespace "" cannot exist`},
		"no namespace":       {strings.Replace(good, "{name: p}", `{name: p, namespace: "##[x]"}`, 1), `policy "p" of namespace "##[x]" cannot exist`},
		"no manifest at all": {"nonsense", "unable to decode"},
		"neither is this":    {"{token: secret}", "Object 'Kind' is missing, or apiVersion is malformed; if the file is not a manifest, leave it out of -f"},
		"malformed version":  {strings.Replace(good, "appsec.dev/v1alpha1", "a/b/c", 1), "or apiVersion is malformed"},
	} {
		path := filepath.Join(t.TempDir(), "p.yaml")
		harness.Must(t, os.WriteFile(path, []byte(tc.manifest), 0o600))
		plugin := newRootCommand(genericiooptions.NewTestIOStreamsDiscard())
		plugin.SetArgs([]string{"policy", "test", "-f", path, "-n", "org-acme", "--kubeconfig", noCluster})
		err := plugin.Execute()
		harness.ErrorContains(t, reason, err, tc.says)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: it quotes the file: %v", reason, err)
		}
	}
	a, b := errors.New("a is missing in '{}'"), errors.New("b")
	several := withoutContents(utilerrors.NewAggregate([]error{a, b, a}))
	harness.ErrorContains(t, "several files", several, "leave it out of -f, b]")
}

// The library that reads them has no time limit and knows no context.
func TestPoliciesBehindASilentURLAreNotWaitedForAfterAnInterrupt(t *testing.T) {
	ended, asked := make(chan struct{}), make(chan struct{})
	server := harness.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-ended
	}))
	defer close(ended)
	ctx, stop := context.WithTimeout(t.Context(), harness.Patience)
	defer stop()
	go func() {
		<-asked
		stop()
	}()
	o := &policyTestOptions{cli: cli{streams: genericiooptions.NewTestIOStreamsDiscard()}}
	o.files = genericclioptions.FileNameFlags{Filenames: &[]string{server + "/policy.yaml"}}
	_, err := o.readWithin(ctx)
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "import") { // a test of policies imports nothing
		t.Errorf("it ends with %v", err)
	}
}

func TestTheGateOfPolicies(t *testing.T) {
	some := make([]verdictChange, 3)
	report := &policyReport{Policy: "p", Gained: some, Lost: some[:1], Changed: some[:2], Applied: 5}
	stopped := &policyReport{Policy: "q", Stopped: v1alpha1.ReasonTooMany, Applied: 1, Failed: 4}
	for failOn, want := range map[string]string{
		"gains":             "p: findings gained: 3",
		"gains=3":           "",
		"gains=2,losses=1":  "p: findings gained: 3",
		"Losses":            "p: findings lost: 1",
		"changes=5":         "p: findings gained, lost or decided differently: 6",
		"failures=3":        "q: findings for which the expression failed: 4",
		"stopped,failures":  "q: it could not come into force; q: findings for which the expression failed: 4",
		"inert":             "",
		"inert,gains,gains": "p: findings gained: 3; p: findings gained: 3",
	} {
		gate, err := parsePolicyGate(strings.Split(failOn, ","))
		if err != nil {
			t.Errorf("%s: %v", failOn, err)
			continue
		}
		result := gate.judge([]*policyReport{report, stopped})
		if got := strings.Join(result.Because, "; "); got != want || result.Passed != (want == "") {
			t.Errorf("--fail-on %s: %q, passed %t; want %q", failOn, got, result.Passed, want)
		}
		harness.ErrorContains(t, "--fail-on "+failOn, result.err(), want)
	}
	for given, says := range map[string]string{
		"gain": "must be gains, losses", "gains=": "reads gains=50", "gains=-1": "from 0", "stopped=3": "stopped takes none",
	} {
		_, err := parsePolicyGate([]string{given})
		harness.ErrorContains(t, "--fail-on "+given, err, says)
	}
	inert := &policyReport{Policy: "r", Matched: 9, Shadowed: 9}
	gate, _ := parsePolicyGate([]string{"inert"})
	if gate.judge([]*policyReport{inert}).Passed {
		t.Error("a policy that decides about nothing passes the gate inert")
	}
	if gate, _ := parsePolicyGate(nil); gate.judge([]*policyReport{stopped}).err() != nil {
		t.Error("a gate that nobody asked for fails")
	}
}

var testedAt = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// inCluster returns a policy that the controllers have put into force.
func inCluster(name, match string, change func(*v1alpha1.TriagePolicySpec)) *v1alpha1.TriagePolicy {
	b := builder.TriagePolicy(name, match).In("org-acme")
	if change != nil {
		b.Spec(change)
	}
	policy := b.Build()
	policy.Generation, policy.Status.ObservedGeneration = 1, 1
	if policy.Spec.Mode == v1alpha1.PolicyApply {
		policy.Status.InForce = &v1alpha1.PolicyInForce{Generation: 1, Spec: policy.Spec}
	}
	return policy
}

// stoppedInCluster returns a policy that the controllers have stopped.
func stoppedInCluster(name, match string, change func(*v1alpha1.TriagePolicySpec)) *v1alpha1.TriagePolicy {
	policy := inCluster(name, match, change)
	policy.Spec.By, policy.Status.InForce = "ann", nil
	policy.Status.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionInForce, Reason: v1alpha1.ReasonTooMany, ObservedGeneration: 1}}
	return policy
}

// costly makes a policy one that the controllers could not count. inForce is the generation in force, 0 for none; an
// earlier one has another priority.
func costly(policy *v1alpha1.TriagePolicy, inForce int64, why string) *v1alpha1.TriagePolicy {
	policy.Generation, policy.Status.ObservedGeneration = 2, 2
	if policy.Status.InForce = nil; inForce != 0 {
		policy.Status.InForce = &v1alpha1.PolicyInForce{Generation: inForce, Spec: policy.Spec}
		if inForce < policy.Generation {
			policy.Status.InForce.Spec.Priority++
		}
	}
	policy.Status.Conditions = []v1alpha1.Condition{
		{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonTooCostly, ObservedGeneration: 2},
		{Type: v1alpha1.ConditionInForce, Reason: why, ObservedGeneration: 2},
	}
	return policy
}

// tooMany gives a policy that matches too many findings a count and a reason of the condition Ready.
func tooMany(policy *v1alpha1.TriagePolicy, matched int32, ready string) *v1alpha1.TriagePolicy {
	policy = costly(policy, 0, v1alpha1.ReasonTooMany)
	policy.Status.Matched, policy.Status.Conditions[0].Reason = matched, ready
	return policy
}

// tested compares policies of files with those of the cluster for five findings.
func tested(t *testing.T, cluster, files []*v1alpha1.TriagePolicy) map[string]*policyReport {
	t.Helper()
	w := &world{policies: map[string]*v1alpha1.TriagePolicy{}}
	for _, policy := range cluster {
		w.policies[policy.Name] = policy
	}
	var filed []*filedPolicy
	for _, policy := range files {
		program, err := rules.Compile(policy.Spec.Match)
		harness.Must(t, err)
		filed = append(filed, &filedPolicy{TriagePolicy: policy, source: policy.Name + ".yaml", program: program})
	}
	trials := newTrials(w, filed, testedAt)
	for i := range 5 {
		name := fmt.Sprintf("f-%d", i)
		trials.add(builder.Finding(name).Mutate(func(f *v1alpha1.Finding) { f.Spec.RuleID = name }).Build())
	}
	trials.add(builder.Finding("f-active").Triage(v1alpha1.UserStatusActive, "").Build())
	trials.add(builder.Finding("f-muted").Triage(v1alpha1.UserStatusMuted, "").Build())
	trials.add(builder.Finding("f-closed").Closed(testedAt, "s").Build())
	out := map[string]*policyReport{}
	for _, report := range trials.reports() {
		out[report.Policy] = report
	}
	return out
}

// inShort returns the changes of a report as the text shows them.
func inShort(changes []verdictChange) string {
	var out []string
	for _, c := range changes {
		out = append(out, c.Finding+": "+c.Was.text()+" -> "+c.Becomes.text())
	}
	return strings.Join(out, ", ")
}

func TestAPolicyIsComparedWithTheCluster(t *testing.T) {
	every, first := "finding.name.startsWith('f-')", "finding.ruleID in ['f-0', 'f-1']"
	high := func(s *v1alpha1.TriagePolicySpec) { s.Priority = 10 }
	active := func(s *v1alpha1.TriagePolicySpec) { s.Set = v1alpha1.PolicyDecision{UserStatus: "active"} }
	preview := func(s *v1alpha1.TriagePolicySpec) { s.Mode = v1alpha1.PolicyPreview }
	noMode := func(s *v1alpha1.TriagePolicySpec) { s.Mode = "" }
	two := func(s *v1alpha1.TriagePolicySpec) {
		s.MaxFindings, s.ValidUntil = 2, new(v1alpha1.NewTime(testedAt.Add(time.Hour)))
	}
	few := func(s *v1alpha1.TriagePolicySpec) { s.MaxFindings = 3 }
	ended := func(s *v1alpha1.TriagePolicySpec) { end := v1alpha1.NewTime(testedAt); s.ValidUntil = &end }
	later := func(s *v1alpha1.TriagePolicySpec) { at := v1alpha1.NewTime(testedAt.Add(time.Hour)); s.ValidFrom = &at }
	type policies = []*v1alpha1.TriagePolicy
	for reason, tc := range map[string]struct {
		cluster, files        policies
		counts                [6]int // matched, applied, shadowed, overridden, agreed, failed
		gained, lost, changed string
		stopped, says         string
	}{
		"a new policy": {
			nil, policies{inCluster("p", first, nil)}, [6]int{2, 2}, "f-0: open -> muted by p, f-1: open -> muted by p", "", "", "",
			"no policy of this name",
		},
		"what people decided counts, and what is closed does not": {
			nil, policies{inCluster("p", "finding.name in ['f-active', 'f-muted', 'f-closed']", nil)}, [6]int{2, 0, 0, 1, 1}, "", "", "", "",
			"1 overridden by people + 1 decided alike by people",
		},
		"the same as in the cluster": {
			policies{inCluster("p", first, nil)}, policies{inCluster("p", first, nil)}, [6]int{2, 2}, "", "", "", "",
			"generation 1 in force, 2 applied",
		},
		"narrower and elsewhere": {
			policies{inCluster("p", first, nil)}, policies{inCluster("p", "finding.ruleID in ['f-1', 'f-2']", nil)}, [6]int{2, 2},
			"f-2: open -> muted by p", "f-0: muted by p -> open", "", "", "gained 1, lost 1",
		},
		"another decision": {
			policies{inCluster("p", first, nil)}, policies{inCluster("p", first, active)}, [6]int{2, 2}, "", "",
			"f-0: muted by p -> active by p, f-1: muted by p -> active by p", "", "decided differently 2",
		},
		"it comes before another": {
			policies{inCluster("a", first, nil)}, policies{inCluster("p", "finding.ruleID == 'f-0'", high)}, [6]int{1, 1},
			"f-0: muted by a -> muted by p", "", "", "", "",
		},
		"another comes before it": {
			policies{inCluster("a", first, nil)}, policies{inCluster("p", first, nil)}, [6]int{2, 0, 2}, "", "", "", "",
			"shadowed by a: 2",
		},
		"it falls behind another": {
			policies{inCluster("a", first, nil), inCluster("p", first, high)}, policies{inCluster("p", first, nil)}, [6]int{2, 0, 2},
			"", "f-0: muted by p -> muted by a, f-1: muted by p -> muted by a", "", "", "see spec.priority",
		},
		"a new preview is tested as if it applied": {
			nil, policies{inCluster("p", first, preview)}, [6]int{2, 2}, "f-0: open -> muted by p, f-1: open -> muted by p", "", "", "",
			"mode Preview, which decides nothing: this is what mode Apply would do",
		},
		"a preview ends what is in force": {
			policies{inCluster("p", first, nil)}, policies{inCluster("p", first, preview)}, [6]int{2, 2}, "",
			"f-0: muted by p -> open, f-1: muted by p -> open", "", "",
			"mode Preview, which decides nothing: this is what mode Apply would do\n  note: applying the file as it is would end",
		},
		"what begins later ends what is in force": {
			policies{inCluster("p", first, nil)}, policies{inCluster("p", first, later)}, [6]int{2, 2}, "",
			"f-0: muted by p -> open, f-1: muted by p -> open", "", "",
			"if it were valid now\n  note: applying the file as it is would end the policy's decisions in the cluster, so they are listed as lost",
		},
		"without a mode it stays in force": {
			policies{inCluster("p", first, nil)}, policies{inCluster("p", "finding.ruleID in ['f-1', 'f-2']", noMode)}, [6]int{2, 2},
			"f-2: open -> muted by p", "f-0: muted by p -> open", "", "",
			"applied\n  matched 2 of 7 findings = 2 applied + 0 shadowed + 0 overridden by people + 0 decided alike by people; 0 failed\n" +
				"  note: the file names no mode: the policy keeps mode Apply of the cluster, unless Helm or kubectl replace removes " +
				"it. To be sure, write mode: Apply into the file\n  gained 1, lost 1",
		},
		"without a mode it stays a preview": {
			policies{inCluster("p", first, preview)}, policies{inCluster("p", first, noMode)}, [6]int{2, 2},
			"f-0: open -> muted by p, f-1: open -> muted by p", "", "", "", "0 failed\n  note: the policy has mode Preview, which decides nothing",
		},
		"without a mode it stays stopped": {
			policies{stoppedInCluster("p", first, two)}, policies{inCluster("p", first, func(s *v1alpha1.TriagePolicySpec) { two(s); noMode(s) })},
			[6]int{2, 2}, "f-0: open -> muted by p, f-1: open -> muted by p", "", "", v1alpha1.ReasonTooMany, "it stays stopped until no more than 1 do",
		},
		"a new policy without a mode is a preview": {
			nil, policies{inCluster("p", first, noMode)}, [6]int{2, 2}, "f-0: open -> muted by p, f-1: open -> muted by p", "", "", "",
			"0 failed\n  note: the policy has mode Preview, which decides nothing",
		},
		"it follows one that a preview ends": {
			policies{inCluster("a", first, nil)}, policies{inCluster("a", first, preview), inCluster("p", first, nil)}, [6]int{2, 2},
			"f-0: muted by a -> muted by p, f-1: muted by a -> muted by p", "", "", "", "",
		},
		"with a preview in the cluster all is gained": {
			policies{inCluster("p", first, preview)}, policies{inCluster("p", first, nil)}, [6]int{2, 2},
			"f-0: open -> muted by p, f-1: open -> muted by p", "", "", "", "generation 1, not in force",
		},
		"a preview in the cluster shadows nothing": {
			policies{inCluster("a", first, preview)}, policies{inCluster("p", first, nil)}, [6]int{2, 2},
			"f-0: open -> muted by p, f-1: open -> muted by p", "", "", "", "",
		},
		"more than it may": {
			nil, policies{inCluster("p", every, few)}, [6]int{7, 5, 0, 1, 1},
			"f-0: open -> muted by p, f-1: open -> muted by p, f-2: open -> muted by p, f-3: open -> muted by p, f-4: open -> muted by p",
			"", "", v1alpha1.ReasonTooMany, "WARNING: STOPPED (TooMany): 7 findings match and maxFindings is 3",
		},
		"a stopped one, and more than nine tenths of what it may": {
			policies{stoppedInCluster("p", first, two)}, policies{inCluster("p", first, two)}, [6]int{2, 2},
			"f-0: open -> muted by p, f-1: open -> muted by p", "", "", v1alpha1.ReasonTooMany, "2 findings match and it stays stopped until no more than 1 do",
		},
		"the same as one that takes too long": {
			policies{costly(inCluster("p", first, nil), 0, v1alpha1.ReasonTooCostly)}, policies{inCluster("p", first, nil)},
			[6]int{2, 2}, "f-0: open -> muted by p, f-1: open -> muted by p", "", "", v1alpha1.ReasonTooCostly, "takes too long to evaluate",
		},
		"the same as one that takes too long, while an earlier generation decides": {
			policies{costly(inCluster("p", first, nil), 1, v1alpha1.ReasonEarlierGeneration)}, policies{inCluster("p", first, nil)},
			[6]int{2, 2}, "", "", "", v1alpha1.ReasonTooCostly, "generation 1 in force",
		},
		"it puts a preview into force that takes too long": {
			policies{costly(inCluster("p", first, preview), 0, v1alpha1.ReasonPreview)}, policies{inCluster("p", first, nil)},
			[6]int{2, 2}, "f-0: open -> muted by p, f-1: open -> muted by p", "", "", v1alpha1.ReasonTooCostly, "not in force (Preview)",
		},
		"the same as a stopped one that takes too long": {
			policies{tooMany(inCluster("p", first, nil), 0, v1alpha1.ReasonTooCostly)}, policies{inCluster("p", first, nil)},
			[6]int{2, 2}, "f-0: open -> muted by p, f-1: open -> muted by p", "", "", v1alpha1.ReasonTooCostly, "takes too long to evaluate",
		},
		"the same as one that earlier controllers stopped and could not count": {
			policies{tooMany(inCluster("p", first, nil), 0, v1alpha1.ReasonTooMany)}, policies{inCluster("p", first, nil)},
			[6]int{2, 2}, "f-0: open -> muted by p, f-1: open -> muted by p", "", "", v1alpha1.ReasonTooCostly, "takes too long to evaluate",
		},
		"the same as one that was counted before it took too long": {
			policies{tooMany(inCluster("p", first, nil), 4, v1alpha1.ReasonTooCostly)}, policies{inCluster("p", first, few)},
			[6]int{2, 2}, "f-0: open -> muted by p, f-1: open -> muted by p", "", "", v1alpha1.ReasonTooCostly, "takes too long to evaluate",
		},
		"the same as a stopped one that is counted, with a higher limit": {
			policies{tooMany(inCluster("p", first, nil), 4, v1alpha1.ReasonTooMany)}, policies{inCluster("p", first, few)},
			[6]int{2, 2}, "f-0: open -> muted by p, f-1: open -> muted by p", "", "", "", "generation 2, not in force (TooMany)",
		},
		"another priority does not make it take less": {
			policies{costly(inCluster("p", first, nil), 2, v1alpha1.ReasonInForce)}, policies{inCluster("p", first, high)},
			[6]int{2, 2}, "", "", "", v1alpha1.ReasonTooCostly, "has this expression",
		},
		"what takes too long and is in force stays so": {
			policies{costly(inCluster("p", first, nil), 2, v1alpha1.ReasonInForce)}, policies{inCluster("p", first, nil)},
			[6]int{2, 2}, "", "", "", "", "generation 2 in force",
		},
		"another one than that takes too long": {
			policies{costly(inCluster("p", every, nil), 0, v1alpha1.ReasonTooCostly)}, policies{inCluster("p", first, nil)},
			[6]int{2, 2}, "f-0: open -> muted by p, f-1: open -> muted by p", "", "", "", "generation 2, not in force (TooCostly)",
		},
		"another one than that was stopped": {
			policies{stoppedInCluster("p", every, two)}, policies{inCluster("p", first, two)}, [6]int{2, 2},
			"f-0: open -> muted by p, f-1: open -> muted by p", "", "", "", "generation 1, not in force (TooMany)",
		},
		"it has ended": {
			policies{inCluster("p", first, nil)}, policies{inCluster("p", first, ended)}, [6]int{2, 2}, "",
			"f-0: muted by p -> open, f-1: muted by p -> open", "", v1alpha1.ReasonPolicyExpired, "it would decide about nothing",
		},
		"its time is to come": {
			nil, policies{inCluster("p", "finding.ruleID == 'f-0'", later)}, [6]int{1, 1}, "f-0: open -> muted by p", "", "", "",
			"if it were valid now",
		},
		"it fails for some": {
			nil, policies{inCluster("p", "finding.score > 4.0", nil)}, [6]int{0, 0, 0, 0, 0, 7}, "", "", "", "",
			"for example f-0: no such key: score",
		},
		"together with the others of the files": {
			nil, policies{inCluster("a", first, high), inCluster("p", every, nil)}, [6]int{7, 3, 2, 1, 1},
			"f-2: open -> muted by p, f-3: open -> muted by p, f-4: open -> muted by p", "", "", "", "shadowed by a: 2",
		},
	} {
		t.Run(reason, func(t *testing.T) {
			r := tested(t, tc.cluster, tc.files)["p"]
			counts := [6]int{r.Matched, r.Applied, r.Shadowed, r.Overridden, r.Agreed, r.Failed}
			got := []any{counts, inShort(r.Gained), inShort(r.Lost), inShort(r.Changed), r.Stopped}
			harness.Same(t, "counts, gained, lost, changed, stopped", []any{tc.counts, tc.gained, tc.lost, tc.changed, tc.stopped}, got)
			harness.Same(t, "findings that were looked at, all that are not closed", 7, r.Findings)
			harness.Contains(t, "the text", string((&policyTestResult{Policies: []*policyReport{r}}).text()), tc.says)
		})
	}
}

func TestTheJSONSaysHowManyFindingsAStoppedPolicyMayMatch(t *testing.T) {
	two := func(s *v1alpha1.TriagePolicySpec) { s.MaxFindings = 2 }
	stopped, file := stoppedInCluster("p", "false", two), inCluster("p", "false", two)
	text := harness.JSON(t, tested(t, []*v1alpha1.TriagePolicy{stopped}, []*v1alpha1.TriagePolicy{file})["p"])
	harness.Contains(t, "the JSON", string(text), `"maxFindings":2,"limit":1,`)
}

func TestOnePolicyMoreThanMayBeInForce(t *testing.T) {
	var cluster []*v1alpha1.TriagePolicy
	for i := range rules.MaxInForce {
		cluster = append(cluster, inCluster(fmt.Sprintf("c-%d", i), "false", nil))
	}
	match := "finding.ruleID == 'f-0'"
	harness.Same(t, "what stops one more", v1alpha1.ReasonTooManyPolicies, tested(t, cluster, []*v1alpha1.TriagePolicy{inCluster("p", match, nil)})["p"].Stopped)
	// Two may have come into force at the same moment: then all stay in force.
	cluster = append(cluster, inCluster("one-more", "false", nil))
	if r := tested(t, cluster, []*v1alpha1.TriagePolicy{inCluster("c-7", match, nil)})["c-7"]; r.Stopped != "" || len(r.Gained) != 1 {
		t.Errorf("one that is in force is stopped by %q, and gains %d", r.Stopped, len(r.Gained))
	}
}

func TestTheTextIsBounded(t *testing.T) {
	r := &policyReport{Policy: "p", Gained: make([]verdictChange, maxShown+3)}
	text := string((&policyTestResult{Policies: []*policyReport{r}}).text())
	if n := strings.Count(text, "open -> open"); n != maxShown || !strings.Contains(text, "... and 3 more gained: -o json lists all") {
		t.Errorf("%d findings are listed:\n%s", n, text)
	}
}
