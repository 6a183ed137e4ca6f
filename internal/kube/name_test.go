package kube

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestANameIsAlwaysAValidOneAndItsOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?`)
		owner := strings.Join(rapid.SliceOfN(label, 1, 20).Draw(t, "labels"), ".")
		if len(owner) > maxNameLength {
			owner = strings.TrimRight(owner[:maxNameLength], "-.")
		}
		name := SuffixedName(owner, "-token")
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Fatalf("%q gives %q: %v", owner, name, problems)
		}
		if SuffixedName(owner, "-token") != name {
			t.Fatalf("%q gives another name the second time", owner)
		}
	})
	long, seen := strings.Repeat("a", 240)+strings.Repeat(".b", 6), map[string]string{}
	for _, owner := range []string{"team", long, long + "c", strings.Repeat("a", 252) + "b", strings.Repeat("a", 252) + "c"} {
		if other, twice := seen[SuffixedName(owner, "-token")]; twice {
			t.Errorf("%s and %s share a name", owner, other)
		}
		seen[SuffixedName(owner, "-token")] = owner
	}
}
