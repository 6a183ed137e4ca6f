package importer

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// aliasesOf returns for each result, and then for each finding, one id that stands for its vulnerability whichever of
// its ids it goes by: the same one for all that have an id in common. It is empty where there is no vulnerability, and
// all are where none has another id.
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

// sameIDs leads from each id to one that means the same, and in the end to the first of them in the alphabet.
type sameIDs map[string]string

func (s sameIDs) of(id string) string {
	first := id
	for s[first] != "" {
		first = s[first]
	}
	for s[id] != "" { // the way is short from now on
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
