package attack

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	// maxOfPolicies is how much memory expressions may make the controllers use, in bytes.
	maxOfPolicies = 256 << 20
	// surplus is how many policies the full form declares beyond the limit.
	surplus = 10
	// policyWriters is the number of concurrent writers.
	policyWriters = 4
	// maxExpression is the schema's limit, in characters.
	maxExpression = 4096
)

// refusedExpressions pass admission, but must never be evaluated. The text is part of the condition.
var refusedExpressions = []struct{ match, because string }{
	{nested(60), "nesting"},
	{nested(3), "nesting"},
	{"['a']" + strings.Repeat(".map(x, x + x)", 25) + " == ['a']", "nesting"},
	{filled("[1].exists(a, [1].exists(b, [1].exists(c, true)))"), "nesting"},
	{strings.Repeat("(", 300) + "true" + strings.Repeat(")", 300), "recursion"},
	{"finding" + strings.Repeat(".title", 600) + " == ''", "recursion"},
	{"finding.path.split('').exists(a, finding.path.split('').exists(b, a + b == 'xx'))", "may be longer than"},
	{"finding.path.split('').exists(a, (a + a + a + a).contains(finding.title))", "may be longer than"},
	{filled("(finding.path + finding.path).contains(finding.title + 'b')"), "cost too much"},
	{filled("finding.path.split('').size() == 1"), "cost too much"},
	{"finding.path.split('').map(c, {c: finding.path.reverse()}).size() == 0", "cost too much"},
	{"finding.title.split('').exists(c, c in [" + strings.Repeat("'x', ", 700) + "'y'])", "cost too much"},
	{"finding.path.matches('(.*){200}b')", "cost too much"},
	{"[1, 2, 3, 4, 5].all(a, [1, 2, 3, 4, 5].all(b, !finding.path.matches('(.*){100}b')))", "cost too much"},
	{"finding.path.matches('(a{0,30}){30}b')", "too large"},
	{filled("finding.path.matches('(?:.?){300}b')"), "too large"},
	{"finding.path.matches(finding.title)", "must be a literal"},
	{"[finding.path.split('')].exists(p, [[" + strings.Repeat("p,", 400) + "p]].exists(q, [" + strings.Repeat("q,", 300) +
		"q] == [" + strings.Repeat("q,", 300) + "q]))", "cannot be compared"},
	{"finding.path.replace('', finding.path) == ''", "not available"},
	{"[finding.path, finding.path].join(finding.path) == ''", "not available"},
}

// costliest are expressions that may be evaluated, and match nothing despite their cost.
var costliest = []string{
	"finding.path.matches('(.*){110}b')",
	"finding.title.matches('(.*){200}b')",
	"finding.path.split('').exists(c, {c: c}.exists(d, d == 'x'))",
	"finding.path.split('').exists(c, [1].exists(d, c == 'x'))",
	"[" + joined("finding.title.split('').filter(c, c != 'x').size() == 0", ", ", 6) + "].exists(b, b)",
	"finding.vulnerability.aliases.exists(a, finding.vulnerability.aliases.exists(b, (a + b).contains(a + b + 'x')))",
	"finding.path.split('').all(c, {c: c}.exists(d, d == 'a')) && finding.score > 1.0",
}

func nested(depth int) string {
	return strings.Repeat("[1].all(x, ", depth) + "true" + strings.Repeat(")", depth)
}

// filled returns an expression of the maximum length.
func filled(part string) string { return joined(part, " || ", maxExpression/(len(part)+4)) }

func joined(part, separator string, n int) string {
	return strings.TrimSuffix(strings.Repeat(part+separator, n), separator)
}

// The costliest policies that an organization's people can declare, over the longest texts that its scanners can
// report, do not affect other organizations.
func TestPolicies_TheCostliestHarmNobodyElse(t *testing.T) {
	other := newNeighbour(t, costly)
	a := newPolicyAttacker(t)
	memory := followControllers(t)
	other.worksDuring(t, func() {
		a.declare(t)
		other.decidesByPolicy(t)
		a.endsInConditions(t)
	})
	other.stillWorks(t)
	memory.bounded(t, costly, maxOfPolicies, "costly policies")
	harness.Must(t, target.env.Client.DeleteAllOf(t.Context(), &v1alpha1.TriagePolicy{}, client.InNamespace(a.namespace)))
}

// policyAttacker is a user who may make decisions in an organization.
type policyAttacker struct {
	*tenant
	triager  client.Client
	findings int32
	// costly is the number of evaluated policies that it declares, and inForce the limit.
	costly, inForce int
	// starved comes last, and would match everything. It is in force before the others are.
	starved *v1alpha1.TriagePolicy
}

func newPolicyAttacker(t *testing.T) *policyAttacker {
	t.Helper()
	a := &policyAttacker{tenant: newOrganization(t, "costly-"+letters(6), plenty), findings: 2, costly: 29, inForce: 30}
	if full {
		a.findings, a.costly, a.inForce = 10, triagepolicy.MaxInForce-1+surplus, triagepolicy.MaxInForce
	}
	a.nameAll()
	target.env.Create(t, a.repository(), a.project())
	for i := range int(a.findings) {
		f := a.finding(i)
		f.Spec.Triage, f.Spec.RuleID, f.Spec.Details.Title = builder.Finding("f").Build().Spec.Triage, strings.Repeat("a", 256), strings.Repeat("a", 512)
		f.Spec.Details.Location.FilePath = strings.Repeat("a", 1024)
		f.Spec.Vulnerability = &v1alpha1.FindingVulnerability{ID: strings.Repeat("a", 128)}
		for n := range 8 {
			f.Spec.Vulnerability.Aliases = append(f.Spec.Vulnerability.Aliases, fmt.Sprint(n, strings.Repeat("a", 127)))
		}
		target.env.Create(t, f)
	}
	a.triager = a.members(t).as(t, "triager")
	return a
}

// declare declares policies that admission accepts: those that are refused later, and valid ones, in the full form
// more than may be in force.
func (a *policyAttacker) declare(t *testing.T) {
	t.Helper()
	a.starved = builder.TriagePolicy("z-starved", "true").In(a.namespace).Build()
	harness.Must(t, a.triager.Create(t.Context(), a.starved))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, target.env, a.starved).Status.InForce).NotTo(BeNil())
	})
	var policies []*v1alpha1.TriagePolicy
	for i, refused := range refusedExpressions {
		policies = append(policies, builder.TriagePolicy(fmt.Sprintf("refused-%d", i), refused.match).In(a.namespace).Build())
	}
	for i := range a.costly {
		match := fmt.Sprintf("%s || '%d' == ''", costliest[i%len(costliest)], i) // unique
		policies = append(policies, builder.TriagePolicy(fmt.Sprintf("costly-%d", i), match).In(a.namespace).Build())
	}
	var group errgroup.Group
	group.SetLimit(policyWriters)
	for _, policy := range policies {
		group.Go(func() error {
			err := a.triager.Create(t.Context(), policy)
			attempt(t, costly, err == nil, "%s does not pass admission, so it proves nothing: %v", policy.Name, err)
			return nil
		})
	}
	harness.Must(t, group.Wait())
}

// decidesByPolicy expects that a policy declared now comes into force and decides about its
// finding.
func (b *neighbour) decidesByPolicy(t *testing.T) {
	t.Helper()
	policy := builder.TriagePolicy("own", fmt.Sprintf("finding.tool == %q", b.marker)).In(b.namespace).Build()
	start := time.Now()
	b.kubectl(t, "declare a policy", func(ctx context.Context) error { return b.triager.Create(ctx, policy) })
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, target.env, policy).Status.InForce).NotTo(BeNil())
	})
	t.Logf("another organization's policy is in force after %s", time.Since(start))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, target.env, b.finding(0)).Status.Verdict).NotTo(BeNil())
	})
	t.Logf("and has decided after %s", time.Since(start))
}

// endsInConditions expects the result of each policy in its status and in the metrics.
func (a *policyAttacker) endsInConditions(t *testing.T) {
	t.Helper()
	harness.Within(t, afterFloods, func(g Gomega) {
		inForce := 0
		for _, policy := range a.policies(g, t) {
			g.Expect(policy.Status.ObservedGeneration).To(Equal(policy.Generation), policy.Name)
			if policy.Status.InForce != nil {
				inForce++
			}
		}
		g.Expect(inForce).To(Equal(a.inForce))
		status := testenv.Get(t, g, target.env, a.starved).Status
		g.Expect([]int32{status.Matched, status.Failed}).To(Equal([]int32{0, a.findings}), "what comes last is not evaluated")
		g.Expect(status.Failure.Message).To(ContainSubstring("not evaluated"))
	})
	for _, policy := range a.policies(NewWithT(t), t) {
		kind, digits, _ := strings.Cut(policy.Name, "-")
		n, _ := strconv.Atoi(digits) // the one that comes last has no number
		switch in := v1alpha1.FindCondition(policy.Status.Conditions, v1alpha1.ConditionInForce); kind {
		case "refused":
			compiled := v1alpha1.FindCondition(policy.Status.Conditions, v1alpha1.ConditionCompiled)
			attempt(t, costly, in.Reason == v1alpha1.ReasonNotCompiled && strings.Contains(compiled.Message, refusedExpressions[n].because),
				"%.200s: %s, %s", policy.Spec.Match, in.Reason, compiled.Message)
		case "costly":
			failed := int32(0)
			if strings.Contains(policy.Spec.Match, "finding.score") { // which no finding here has
				failed = a.findings
			}
			counted := policy.Status.Matched == 0 && policy.Status.Failed == failed
			attempt(t, costly, counted, "%.200s: matched %d, failed %d", policy.Spec.Match, policy.Status.Matched, policy.Status.Failed)
		}
	}
	failed, refused := metric(t, "findings_triage_policy_findings", "failed"), metric(t, "findings_triage_policies", v1alpha1.ReasonNotCompiled)
	attempt(t, costly, failed >= float64(2*a.findings) && refused >= float64(len(refusedExpressions)),
		"the metrics have %v failures and %v policies that do not compile", failed, refused)
}

func (a *policyAttacker) policies(g Gomega, t *testing.T) []v1alpha1.TriagePolicy {
	t.Helper()
	return testenv.List(t, g, target.env, &v1alpha1.TriagePolicyList{}, client.InNamespace(a.namespace)).Items
}

// metric returns a gauge of the controllers, which run in this process, by the value of its only
// label.
func metric(t *testing.T, name, value string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	harness.Must(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == value {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("there is no metric %s of %s", name, value)
	return 0
}
