package readmodel

import "cmp"

// FindingQuery asks for a page of an organization's findings.
type FindingQuery struct {
	// Sort is the field to sort by; empty means created_at.
	Sort Sort
	// Order is the direction; empty means desc.
	Order Order
	// Size is how many items the page holds at most; less than 1 counts as 1.
	Size int
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

// Page is a part of a list.
type Page struct {
	Items []*Item
	// HasMore says that more items follow.
	HasMore bool
	// Next is where this page ends: the After of the next. Zero unless HasMore.
	Next Position
	// Total is how many findings match in all, on this page or not.
	Total int
}

// list answers a query from an index that does not change meanwhile. Its cost is that of the
// page, whatever the filter, except where a project has findings in several repositories.
func (x *index) list(q FindingQuery) Page {
	q.Sort = cmp.Or(q.Sort, SortCreatedAt)
	q.Order = cmp.Or(q.Order, OrderDesc)
	q.Size = max(q.Size, 1)
	selected := x.choose(q.Filter)
	page := Page{Total: selected.count}
	rows := x.merge(selected.buckets, q)
	for item := range rows {
		if !selected.matches(item) {
			continue
		}
		if len(page.Items) == q.Size {
			page.HasMore = true
			page.Next = page.Items[q.Size-1].position(q.Sort)
			break
		}
		page.Items = append(page.Items, item)
	}
	return page
}

// selection is the buckets that hold what a filter matches, and perhaps more.
type selection struct {
	buckets []uint64
	// repo is what the buckets do not make sure of; nil where they hold just what matches.
	repo *string
	// count is how many findings match.
	count int
}

func (s *selection) matches(i *Item) bool { return matches(s.repo, i.RepoID) }

func matches(want *string, value string) bool { return want == nil || *want == value }

// choose picks the buckets that hold what a filter matches.
func (x *index) choose(filter FindingFilter) selection {
	switch {
	case filter.ProjectID != nil:
		return x.chooseProject(filter)
	case filter.RepoID != nil && filter.Class != nil:
		return x.pick(repoClassField, both(*filter.RepoID, *filter.Class), filter)
	case filter.RepoID != nil:
		return x.pick(repoField, *filter.RepoID, filter)
	case filter.Class != nil:
		return x.pick(classField, *filter.Class, filter)
	case filter == FindingFilter{}:
		return x.pick(everything, "", filter)
	default:
		return x.pick(anyValue, "", filter)
	}
}

// chooseProject picks the buckets of a project. A project is in one repository, so as a rule
// the repository asks for nothing more, or for something else.
func (x *index) chooseProject(filter FindingFilter) selection {
	project := x.pick(projectField, *filter.ProjectID, filter)
	selected := project
	if filter.Class != nil {
		selected = x.pick(projectClassField, both(*filter.ProjectID, *filter.Class), filter)
	}
	if filter.RepoID == nil {
		return selected
	}
	inRepo := x.pick(repoProjectField, both(*filter.RepoID, *filter.ProjectID), filter)
	switch inRepo.count {
	case project.count:
	case 0:
		return selection{}
	default:
		selected.repo = filter.RepoID
		selected.count = x.countMatches(selected)
	}
	return selected
}

// countMatches looks at each finding.
func (x *index) countMatches(s selection) (count int) {
	for _, id := range s.buckets {
		x.byCreated.Ascend(entry{bucket: id, item: &Item{}}, func(e entry) bool {
			if e.bucket != id {
				return false
			}
			if s.matches(e.item) {
				count++
			}
			return true
		})
	}
	return count
}

// pick returns the buckets of a field's value whose facets match.
func (x *index) pick(f field, value string, filter FindingFilter) selection {
	var s selection
	x.buckets.Ascend(bucket{key: bucketKey{field: f, value: value}}, func(b bucket) bool {
		if b.key.field != f || b.key.value != value {
			return false
		}
		facet := b.key.facet
		if f == everything || matches(filter.Status, facet.status) &&
			matches(filter.UserStatus, facet.userStatus) && matches(filter.Severity, facet.severity) {
			s.buckets = append(s.buckets, b.id)
			s.count += b.count
		}
		return true
	})
	return s
}
