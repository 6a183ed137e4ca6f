package readmodel

import (
	"unique"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// The fields by which findings are kept apart.
const (
	anyValue index.Field = iota + 1
	repoField
	projectField
	classField
	repoClassField
	projectClassField
	// repoProjectField only counts: it tells whether a project's findings are all in a repository.
	repoProjectField
	// The fields from here on are kept without facets, and not for a finding that has no value.
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

// Where findingLayout has its sorts.
const (
	findingCreatedAt = iota
	findingUpdatedAt
	findingSeverity
)

// findingLayout is how findings are listed.
var findingLayout = &index.Layout[*Item]{
	Sorts: []index.Sort{
		findingCreatedAt: SortCreatedAt, findingUpdatedAt: SortUpdatedAt, findingSeverity: SortSeverity,
	},
	Values:    func(i *Item) []string { return []string{i.CreatedAt(), i.UpdatedAt, i.graded} },
	CountOnly: 1,
	// Nine buckets more in a third tree would take some 200 bytes a finding, one takes 40.
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

// both is a value of a combination. It needs no escapes: resource names hold no slash.
func both(resource, other string) string { return resource + "/" + other }

// FindingQuery asks for a page of an organization's findings.
type FindingQuery struct {
	// Sort is the field to sort by: created_at, updated_at or severity; empty means created_at. By severity, findings of
	// one severity are sorted by their score, those without one lowest, and then by created_at.
	Sort index.Sort
	// Order is the direction; empty means desc.
	Order index.Order
	// Limit is how much the page holds at most.
	Limit index.Limit
	// Shape is the JSON of an item, of which the page's Limit counts the bytes. It may be nil
	// where they have no bound.
	Shape func(*Item) content.Part
	// After is where the page before ended; nil for the first page.
	After *index.Position
	// Filter leaves out findings that do not match.
	Filter FindingFilter
}

// ListFindings answers a query from the organization's snapshot. It takes no lock. The error
// is ErrNoOrganization.
//
// Its cost is that of the page where the filter asks for one thing, or for several of the documented ones, or for that
// and times of the field sorted by. Else it is that of a look at each finding that meets the condition which the fewest
// meet, at most at every finding: of words, of several conditions, of a package in one version, and of a project that
// has findings in several repositories. Sorted by severity, it is that of the page for status, user status and
// severity; for any other filter it is that of a look at what meets it, or of a walk past what comes before and does
// not.
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
	asked := findingLayout.Query(q.Sort, q.Order, q.Limit, q.After)
	return x.List(asked, q.Filter.choose(x, asked.Sort), length)
}

func matches(want *string, value string) bool { return want == nil || *want == value }

func (f FindingFilter) matchesFacet(has index.Facet) bool {
	return matches(f.Status, has[0]) && matches(f.UserStatus, has[1]) && matches(f.Severity, has[2])
}

// pick returns buckets that the tree of the sort by severity does not have.
func pick(
	x *index.Index[*Item], field index.Field, value string, matches func(index.Facet) bool,
) index.Selection[*Item] {
	return x.PickUpTo(findingUpdatedAt, field, value, matches)
}

// everything is all findings.
func everything(x *index.Index[*Item]) index.Selection[*Item] {
	return pick(x, index.Everything, "", index.AnyFacet)
}

// chooseDocumented picks the buckets that hold what the filters match which have buckets for each combination.
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

// chooseProject picks the buckets of a project. A project is in one repository, so as a rule
// the repository asks for nothing more, or for something else.
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
