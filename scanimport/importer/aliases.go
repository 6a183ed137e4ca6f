package importer

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// aliasesOf returns one canonical vulnerability id per index, for the results first and then for the findings: all that
// share an id get the same one. An index without a vulnerability has no entry; the map is nil if no vulnerability has
// an alias.
func aliasesOf(results []reported, there []v1alpha1.Finding) map[int]string {
	all := func(do func(i int, v *v1alpha1.FindingVulnerability)) {
		for i := range results {
			if v := results[i].spec.Vulnerability; v != nil {
				do(i, v)
			}
		}
		for i := range there {
			if v := there[i].Spec.Vulnerability; v != nil {
				do(len(results)+i, v)
			}
		}
	}
	same := sameIDs{}
	all(func(_ int, v *v1alpha1.FindingVulnerability) {
		for _, alias := range v.Aliases {
			same.join(v.ID, alias)
		}
	})
	if len(same) == 0 {
		return nil
	}
	out := map[int]string{}
	all(func(i int, v *v1alpha1.FindingVulnerability) { out[i] = same.of(v.ID) })
	return out
}

// sameIDs maps an id to an equivalent one that sorts before it; the chain ends at the first of them in alphabetical
// order.
type sameIDs map[string]string

func (s sameIDs) of(id string) string {
	first := id
	for s[first] != "" {
		first = s[first]
	}
	for s[id] != "" { // compress the path for later lookups
		id, s[id] = s[id], first
	}
	return first
}

func (s sameIDs) join(a, b string) {
	a, b = s.of(a), s.of(b)
	if a != b {
		s[max(a, b)] = min(a, b)
	}
}
