package readmodel

import (
	"unique"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// The fields that findings are indexed by.
const (
	anyValue index.Field = iota + 1
	repoField
	projectField
	classField
	repoClassField
	projectClassField
	// repoProjectField only counts: it shows whether all findings of a project are in one repository.
	repoProjectField
	// The fields from here on are indexed without facets, and only for findings that have a value.
	toolField
	categoryField
	ruleField
	ownerField
	vulnerabilityField
	packageField
	scoreField
	staleField
	suppressedField
	policyField
)

// Indexes of findingLayout's sorts.
const (
	findingCreatedAt = iota
	findingUpdatedAt
	findingSeverity
)

// findingLayout defines how findings are indexed.
var findingLayout = &index.Layout[*Item]{
	Sorts: []index.Sort{
		findingCreatedAt: SortCreatedAt, findingUpdatedAt: SortUpdatedAt, findingSeverity: SortSeverity,
	},
	Values:    func(i *Item) []string { return []string{i.CreatedAt(), i.UpdatedAt, i.graded} },
	CountOnly: 1,
	// Nine more buckets in a third tree would take about 200 bytes per finding; one takes 40.
	Held: []int{findingUpdatedAt: 9, findingSeverity: 1},
	Text: func(i *Item) string { return i.text },
	Keys: findingKeys,
}

func findingKeys(i *Item) []index.Key {
	t, facet := i.traits.Value(), unique.Make(index.Facet{i.Status, i.UserStatus, i.Severity})
	keys := append(make([]index.Key, 0, 16),
		index.Key{Field: anyValue, Facet: facet},
		index.Key{Field: index.Everything},
		index.Key{Field: repoField, Value: i.RepoID, Facet: facet},
		index.Key{Field: projectField, Value: i.ProjectID, Facet: facet},
		index.Key{Field: classField, Value: i.Class, Facet: facet},
		index.Key{Field: repoClassField, Value: both(i.RepoID, i.Class), Facet: facet},
		index.Key{Field: projectClassField, Value: both(i.ProjectID, i.Class), Facet: facet},
		index.Key{Field: toolField, Value: t.tool},
		index.Key{Field: ownerField, Value: i.Project.Owner()},
	)
	keys = append(keys, t.keys()...)
	if i.Stale {
		keys = append(keys, index.Key{Field: staleField})
	}
	if i.Suppressed {
		keys = append(keys, index.Key{Field: suppressedField})
	}
	if policy := i.Policy(); policy != "" {
		keys = append(keys, index.Key{Field: policyField, Value: policy})
	}
	return append(keys, index.Key{Field: repoProjectField, Value: both(i.RepoID, i.ProjectID), Facet: facet})
}

// both returns the value of a combination. It needs no escaping: neither the names of resources nor the ids in requests
// contain control characters.
func both(resource, other string) string { return resource + "\x00" + other }

// FindingQuery asks for a page of an organization's findings, sorted by created_at, updated_at or severity; empty means
// created_at. With severity, findings of the same severity are sorted by score, where no score is the lowest, and then
// by created_at.
type FindingQuery struct {
	index.Request
	// Shape returns the JSON of an item, whose bytes count against the page's Limit. It may be nil if the limit
	// has no Bytes.
	Shape func(*Item) content.Part
	// Filter leaves out findings that do not match.
	Filter FindingFilter
}

// ListFindings answers a query from the organization's snapshot. It takes no lock. The error is
// ErrNoOrganization.
//
// Its cost is proportional to the page for a filter with one condition, with several of the documented ones, or
// with these and times of the field sorted by. Otherwise it examines each finding that meets the most selective
// condition, at most every finding: for words, a file, findings that are not stale or not suppressed, several
// conditions, a package in one version, and a project with findings in several repositories. Sorted by severity,
// the cost is proportional to the page for filters by status, user status and severity; for any other filter it
// examines all matches, or walks the list past the findings that do not match.
func (m *Model) ListFindings(organization string, q FindingQuery) (index.Page[*Item], error) {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return index.Page[*Item]{}, err
	}
	return listFindings(snapshot.findings, q), nil
}

func listFindings(x *index.Index[*Item], q FindingQuery) index.Page[*Item] {
	length := func(i *Item) int { return q.Shape(i).Len() }
	if q.Limit.Bytes == 0 {
		length = func(*Item) int { return 0 }
	}
	asked := findingLayout.Query(q.Request)
	return x.List(asked, q.Filter.choose(x, asked.Sort), length)
}

func matches(want *string, value string) bool { return want == nil || *want == value }

func (f FindingFilter) matchesFacet(has index.Facet) bool {
	return matches(f.Status, has[0]) && matches(f.UserStatus, has[1]) && matches(f.Severity, has[2])
}

// pick returns buckets that exist in all trees except that of the sort by severity.
func pick(
	x *index.Index[*Item], field index.Field, value string, matches func(index.Facet) bool,
) index.Selection[*Item] {
	return x.PickUpTo(findingUpdatedAt, field, value, matches)
}

// everything selects all findings.
func everything(x *index.Index[*Item]) index.Selection[*Item] {
	return pick(x, index.Everything, "", index.AnyFacet)
}

// chooseDocumented picks the buckets for the filters whose combinations have buckets.
func (f FindingFilter) chooseDocumented(x *index.Index[*Item]) index.Selection[*Item] {
	switch {
	case f.ProjectID != nil:
		return f.chooseProject(x)
	case f.RepoID != nil && f.Class != nil:
		return pick(x, repoClassField, both(*f.RepoID, *f.Class), f.matchesFacet)
	case f.RepoID != nil:
		return pick(x, repoField, *f.RepoID, f.matchesFacet)
	case f.Class != nil:
		return pick(x, classField, *f.Class, f.matchesFacet)
	default:
		return x.Pick(anyValue, "", f.matchesFacet)
	}
}

// chooseProject picks the buckets of a project. A project is in one repository, so usually a filter by
// repository as well matches either all or none of its findings.
func (f FindingFilter) chooseProject(x *index.Index[*Item]) index.Selection[*Item] {
	project := pick(x, projectField, *f.ProjectID, f.matchesFacet)
	selected := project
	if f.Class != nil {
		selected = pick(x, projectClassField, both(*f.ProjectID, *f.Class), f.matchesFacet)
	}
	if f.RepoID == nil {
		return selected
	}
	inRepo := x.Pick(repoProjectField, both(*f.RepoID, *f.ProjectID), f.matchesFacet)
	switch inRepo.Count {
	case project.Count:
	case 0:
		return index.Selection[*Item]{}
	default:
		selected.Also(func(i *Item) bool { return i.RepoID == *f.RepoID })
	}
	return selected
}
