package importer

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// Described is a result as shown to users: within the bounds of the CRDs, and without credentials that the result may
// quote.
type Described struct {
	fingerprints.Identity
	// Facts is what an import into the base branch would write to the result's finding.
	Facts v1alpha1.FindingSpec
	// Index of the result in the batch's Results.
	Index int

	result *sarif.Result
}

// Describe identifies and describes the results of a batch, sorted by name. scope is the part of a repository that the
// results belong to. Exact duplicates are left out and named in skipped. Links point to the batch's commit. If the
// descriptions do not fit in memory, it returns an error for users.
func Describe(b *Batch, repository *v1alpha1.Repository,
	scope fingerprints.Scope) (out []Described, skipped []string, err error) {
	c := b.contextOf(repository, "")
	c.commit = "" // not part of the description
	scope.Repository, scope.Tool, scope.Category = repository.Name, b.Tool, string(b.Category)
	reported := *b
	reported.Suppressed = nil
	for i, identity := range reported.identities(scope) {
		r := &b.Results[i]
		if identity.Duplicate {
			skipped = append(skipped, fmt.Sprintf("result %d (rule %q): %s", r.Index, cut(r.RuleID, 64), SkipDuplicate))
			continue
		}
		facts := c.spec(r)
		facts.Analysis = cmp.Or(facts.Analysis, r.Analysis)
		if err := b.budget.share(&facts); err != nil {
			return nil, nil, err
		}
		out = append(out, Described{Identity: identity, Facts: facts, Index: i, result: r})
	}
	slices.SortFunc(out, func(a, b Described) int { return cmp.Compare(a.Name, b.Name) })
	return out, skipped, nil
}
