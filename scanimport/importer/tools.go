package importer

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
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

// names returns all names of the tool, the given former one included. The batch's own name comes last.
func (b *Batch) names() []string {
	others := slices.DeleteFunc(slices.Clone(fingerprints.NamesOfTool(b.Tool)), func(name string) bool {
		return name == b.Tool || name == b.GivenFormer
	})
	if b.GivenFormer != "" && b.GivenFormer != b.Tool {
		others = append(others, b.GivenFormer)
	}
	return append(others, b.Tool)
}

// findings lists the findings under all names of the tool, and returns the names of unreadable ones, too. It reads the
// lists forwards and then backwards: if another job renames a finding in the meantime, to a newer or an older name, the
// finding is in the list of its old name or in that of its new one. Most findings have the batch's own name, which
// comes last and is listed only once.
func (b *Batch) findings(ctx context.Context, c *Client, namespace string,
	selector func(tool string) fields.Selector) (findings []v1alpha1.Finding, unreadable []string, err error) {
	names := b.names()
	again := slices.Clone(names[:len(names)-1])
	slices.Reverse(again)
	for _, tool := range append(names, again...) {
		listed, odd, err := List[v1alpha1.Finding](ctx, c, namespace, selector(tool))
		if err != nil {
			return nil, nil, err
		}
		findings, unreadable = append(findings, listed...), append(unreadable, odd...)
	}
	slices.Sort(unreadable)
	return b.merged(findings), slices.Compact(unreadable), nil
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
		if findingstate.Declared(&f.Spec) == v1alpha1.UserStatusOpen {
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
