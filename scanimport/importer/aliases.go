package importer

import (
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// aliasesOf returns one canonical vulnerability id per index, counting the results first and then the findings: all
// that share an id get the same one. Ids of advisories do not count, because an advisory covers many vulnerabilities.
// An index without a vulnerability has no entry; the map is nil if no vulnerability has an alias.
func aliasesOf(results []reported, existing []v1alpha1.Finding) map[int]string {
	ids := make([][]string, len(results)+len(existing))
	for i := range results {
		ids[i] = ownIDs(results[i].spec.Vulnerability)
	}
	for i := range existing {
		ids[len(results)+i] = ownIDs(existing[i].Spec.Vulnerability)
	}
	same := sameIDs{}
	for _, of := range ids {
		for i := 1; i < len(of); i++ {
			same.join(of[0], of[i])
		}
	}
	if len(same) == 0 {
		return nil
	}
	out := map[int]string{}
	for i, of := range ids {
		if len(of) > 0 {
			out[i] = same.of(of[0])
		}
	}
	return out
}

// ownIDs returns the ids that stand for this vulnerability alone.
func ownIDs(v *v1alpha1.FindingVulnerability) []string {
	if v == nil {
		return nil
	}
	return slices.DeleteFunc(append([]string{v.ID}, v.Aliases...), sarif.IsAdvisory)
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
