package policies

import (
	"fmt"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
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
	if again, err := c.compile("true"); err != nil || again == first {
		t.Errorf("what was forgotten is compiled anew: %v", err)
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
