package importer

import (
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// aliasesOf returns one canonical vulnerability id per result and per finding: all that share an id get the same one.
// Ids of advisories do not count, because an advisory covers many vulnerabilities. The id is empty without a
// vulnerability, and everywhere if no vulnerability has an alias.
func aliasesOf(results []reported, existing []v1alpha1.Finding) (ofResults, ofKnown []string) {
	ids := make([][]string, 0, len(results)+len(existing))
	for i := range results {
		ids = append(ids, ownIDs(results[i].spec.Vulnerability))
	}
	for i := range existing {
		ids = append(ids, ownIDs(existing[i].Spec.Vulnerability))
	}
	same := sameIDs{}
	for _, of := range ids {
		for i := 1; i < len(of); i++ {
			same.join(of[0], of[i])
		}
	}
	all := make([]string, len(ids))
	for i, of := range ids {
		if len(same) > 0 && len(of) > 0 {
			all[i] = same.of(of[0])
		}
	}
	return all[:len(results)], all[len(results):]
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
