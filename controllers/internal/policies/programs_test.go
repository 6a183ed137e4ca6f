package policies

import (
	"fmt"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestCompiledExpressionsAreKeptWithinABound(t *testing.T) {
	c := &compiler{known: map[string]compiled{}, most: 1 << 20}
	first, err := c.compile("true")
	harness.Must(t, err)
	if again, _ := c.compile("true"); again != first {
		t.Error("an expression is compiled twice")
	}
	if _, err := c.compile("finding.nothing"); err == nil {
		t.Error("a wrong expression compiles")
	}
	for i := range 100 {
		_, err := c.compile(fmt.Sprintf("finding.path.matches('a{9}%d')", i))
		harness.Must(t, err)
		if c.bytes > c.most {
			t.Fatalf("%d bytes are kept after %d expressions", c.bytes, i)
		}
	}
	for range 50 { // each time what is known is dropped with the probability of a half
		for i := range 100 {
			_, err := c.compile(fmt.Sprintf("finding.path.matches('a{200}%d')", i))
			harness.Must(t, err)
		}
		if _, known := c.known["true"]; !known {
			return
		}
	}
	t.Error("nothing is ever dropped")
}

// Else a few hundred organizations with policies of their own compile them again at each finding.
func TestAFullCacheKeepsHalfOfTheExpressionsAndChargesPatternsByTheirSize(t *testing.T) {
	small, err := triagepolicy.Compile("finding.path.matches('^test/')")
	harness.Must(t, err)
	const match = "finding.path.matches('^test/') && finding.path.matches('a{200}')"
	large, err := triagepolicy.Compile(match)
	harness.Must(t, err)
	if few, many := triagepolicy.Footprint("", small), triagepolicy.Footprint("", large); few > 12<<10 || few < 9<<10 || many < few+200*60 {
		t.Errorf("a small pattern counts as %d bytes, and one with 200 more characters as %d", few, many)
	}
	c := &compiler{known: map[string]compiled{}, most: 1 << 20}
	least, before := c.most, 0
	for i := range 1000 {
		_, err := c.compile(fmt.Sprintf("finding.name == '%d'", i))
		harness.Must(t, err)
		if c.bytes < before {
			least = min(least, c.bytes)
		}
		before = c.bytes
	}
	if least == c.most || least < c.most/3 {
		t.Errorf("%d of %d bytes are left of a full cache", least, c.most)
	}
}

// The hourly tick reads the policies of all organizations.
func TestTheHourlyTickCompilesNothingAnew(t *testing.T) {
	policy := builder.TriagePolicy("p", "finding.name == 'of the ticker'").Build()
	policy.Status.InForce = &v1alpha1.PolicyInForce{Generation: 1, Spec: policy.Spec}
	cache := handlertest.Lists(func(list *v1alpha1.TriagePolicyList) { list.Items = []v1alpha1.TriagePolicy{*policy} })
	harness.Must(t, eachDependingOnTime(t.Context(), cache, nil))
	programs.mu.Lock()
	defer programs.mu.Unlock()
	if _, known := programs.known[policy.Spec.Match]; !known {
		t.Error("the expression was not compiled through the cache")
	}
}
