package triagepolicy

import (
	"fmt"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// If too many come into force at the same time, exactly those that decide last are taken out again.
func TestNoMoreThanMayBeAreInForce(t *testing.T) {
	var others []rules.Policy
	for i := range rules.MaxInForce {
		others = append(others, rules.Policy{Name: v1alpha1.ResourceName(fmt.Sprintf("p-%03d", i)), Spec: &v1alpha1.TriagePolicySpec{}})
	}
	for _, c := range []struct {
		reason, name string
		inForce      *v1alpha1.PolicyInForce
		others       []rules.Policy
		want         bool
	}{
		{"one more", "a", nil, others, true},
		{"the last one that fits", "z", nil, others[1:], false},
		{"one too many, which comes last", "z", &v1alpha1.PolicyInForce{}, others, true},
		{"one too many, which comes first", "a", &v1alpha1.PolicyInForce{}, others, false},
		{"one too many, of a higher priority", "z", &v1alpha1.PolicyInForce{Spec: v1alpha1.TriagePolicySpec{Priority: 1}}, others, false},
		{"not one too many", "z", &v1alpha1.PolicyInForce{}, others[1:], false},
	} {
		s := newScope()
		s.Object.Name, s.Object.Status.InForce = c.name, c.inForce
		harness.Same(t, c.reason, c.want, full(s, c.others))
	}
}
