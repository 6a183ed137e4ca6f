package importer

import (
	"cmp"
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
)

// newestName returns the newer of two names of one tool.
func newestName(a, b string) string {
	names := fingerprints.NamesOfTool(a)
	if slices.Index(names, b) > slices.Index(names, a) {
		return b
	}
	return a
}

// names returns the names of the tool in the order in which imports rename findings: the given former name, then the
// known ones, the oldest first. List findings under one name after the other: so a finding that an import renames
// meanwhile may be listed twice, but is not missed.
func (b *Batch) names() []string {
	known := fingerprints.NamesOfTool(b.Tool)
	if b.GivenFormer == "" || newestName(b.GivenFormer, b.Tool) == b.Tool {
		return known
	}
	isGiven := func(name string) bool { return name == b.GivenFormer }
	return append([]string{b.GivenFormer}, slices.DeleteFunc(slices.Clone(known), isGiven)...)
}

// merged merges findings that were listed under the names of the tool: of a finding that was listed twice it returns
// only the later version. Of indistinguishable findings an import keeps the first, so decided ones come first, then
// those under the current name.
func (b *Batch) merged(findings []v1alpha1.Finding) []v1alpha1.Finding {
	last := make(map[string]int, len(findings))
	for i := range findings {
		last[findings[i].Name] = i
	}
	at := -1
	findings = slices.DeleteFunc(findings, func(f v1alpha1.Finding) bool {
		at++
		return at < last[f.Name]
	})
	rank := func(f *v1alpha1.Finding) (rank int) {
		if !decided(&f.Spec.Triage) {
			rank += 2
		}
		if f.Spec.Tool != b.Tool {
			rank++
		}
		return rank
	}
	slices.SortStableFunc(findings, func(x, y v1alpha1.Finding) int { return cmp.Compare(rank(&x), rank(&y)) })
	return findings
}
