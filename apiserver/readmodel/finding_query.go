package readmodel

import "github.com/appsec-dev/findings-operator/apiserver/content"

// The fields by which findings are kept apart.
const (
	anyValue field = iota + 1
	repoField
	projectField
	classField
	repoClassField
	projectClassField
	// repoProjectField only counts: it tells whether a project's findings are all in a repository.
	repoProjectField
)

// findingLayout is how findings are listed.
var findingLayout = &layout[*Item]{
	sorts:     []Sort{SortCreatedAt, SortUpdatedAt},
	values:    func(i *Item) []string { return []string{i.CreatedAt, i.UpdatedAt} },
	countOnly: 1,
	keys: func(i *Item) []bucketKey {
		facet := facet{i.Status, i.UserStatus, i.Severity}
		return []bucketKey{
			{field: everything},
			{field: anyValue, facet: facet},
			{field: repoField, value: i.RepoID, facet: facet},
			{field: projectField, value: i.ProjectID, facet: facet},
			{field: classField, value: i.Class, facet: facet},
			{field: repoClassField, value: both(i.RepoID, i.Class), facet: facet},
			{field: projectClassField, value: both(i.ProjectID, i.Class), facet: facet},
			{field: repoProjectField, value: both(i.RepoID, i.ProjectID), facet: facet},
		}
	},
}

// both is a value of a combination. It needs no escapes: resource names hold no slash.
func both(resource, other string) string { return resource + "/" + other }

// FindingQuery asks for a page of an organization's findings.
type FindingQuery struct {
	// Sort is the field to sort by, created_at or updated_at; empty means created_at.
	Sort Sort
	// Order is the direction; empty means desc.
	Order Order
	// Limit is how much the page holds at most.
	Limit Limit
	// Shape is the JSON of an item, of which the page's Limit counts the bytes. It may be nil
	// where they have no bound.
	Shape func(*Item) content.Part
	// After is where the page before ended; nil for the first page.
	After *Position
	// Filter leaves out findings that do not match.
	Filter FindingFilter
}

// FindingFilter matches findings that have every value given. A nil member matches all; an
// empty Class matches findings without one.
type FindingFilter struct {
	Status     *string
	UserStatus *string
	Severity   *string
	RepoID     *string
	ProjectID  *string
	Class      *string
}

// ListFindings answers a query from the organization's snapshot. It takes no lock. The error
// is ErrNoOrganization.
//
// Its cost is that of the page, whatever the filter, except where a project has findings in
// several repositories.
func (m *Model) ListFindings(organization string, q FindingQuery) (Page[*Item], error) {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return Page[*Item]{}, err
	}
	return listFindings(snapshot.findings, q), nil
}

func listFindings(x *index[*Item], q FindingQuery) Page[*Item] {
	length := func(i *Item) int { return q.Shape(i).Len() }
	if q.Limit.Bytes == 0 {
		length = func(*Item) int { return 0 }
	}
	return x.list(findingLayout.query(q.Sort, q.Order, q.Limit, q.After), q.Filter.choose(x), length)
}

func matches(want *string, value string) bool { return want == nil || *want == value }

func (f FindingFilter) matchesFacet(has facet) bool {
	return matches(f.Status, has[0]) && matches(f.UserStatus, has[1]) && matches(f.Severity, has[2])
}

func anyFacet(facet) bool { return true }

// choose picks the buckets that hold what a filter matches.
func (f FindingFilter) choose(x *index[*Item]) selection[*Item] {
	switch {
	case f.ProjectID != nil:
		return f.chooseProject(x)
	case f.RepoID != nil && f.Class != nil:
		return x.pick(repoClassField, both(*f.RepoID, *f.Class), f.matchesFacet)
	case f.RepoID != nil:
		return x.pick(repoField, *f.RepoID, f.matchesFacet)
	case f.Class != nil:
		return x.pick(classField, *f.Class, f.matchesFacet)
	case f == FindingFilter{}:
		return x.pick(everything, "", anyFacet)
	default:
		return x.pick(anyValue, "", f.matchesFacet)
	}
}

// chooseProject picks the buckets of a project. A project is in one repository, so as a rule
// the repository asks for nothing more, or for something else.
func (f FindingFilter) chooseProject(x *index[*Item]) selection[*Item] {
	project := x.pick(projectField, *f.ProjectID, f.matchesFacet)
	selected := project
	if f.Class != nil {
		selected = x.pick(projectClassField, both(*f.ProjectID, *f.Class), f.matchesFacet)
	}
	if f.RepoID == nil {
		return selected
	}
	inRepo := x.pick(repoProjectField, both(*f.RepoID, *f.ProjectID), f.matchesFacet)
	switch inRepo.count {
	case project.count:
	case 0:
		return selection[*Item]{}
	default:
		selected.only = func(i *Item) bool { return i.RepoID == *f.RepoID }
		selected.count = x.countOnly(selected)
	}
	return selected
}

// countOnly looks at each row that a selection holds.
func (x *index[T]) countOnly(s selection[T]) (count int) {
	for _, id := range s.buckets {
		x.each(id, func(item T) bool {
			if s.only(item) {
				count++
			}
			return true
		})
	}
	return count
}
