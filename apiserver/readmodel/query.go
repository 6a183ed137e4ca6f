package readmodel

import "cmp"

// FindingQuery asks for a page of an organization's findings.
type FindingQuery struct {
	// Sort is the field to sort by; empty means created_at.
	Sort Sort
	// Order is the direction; empty means desc.
	Order Order
	// Size is how many items the page holds at most, at least 1.
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

// list answers a query from an index that does not change meanwhile.
//
// Its cost is that of the page, except that a class with another high-cardinality filter
// looks at each finding of the rarest value to count those that match.
func (x *index) list(q FindingQuery) Page {
	q.Sort = cmp.Or(q.Sort, SortCreatedAt)
	q.Order = cmp.Or(q.Order, OrderDesc)
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
	// rest is what the buckets do not already make sure of.
	rest FindingFilter
	// count is how many findings match.
	count int
}

func (s *selection) matches(i *Item) bool {
	return matches(s.rest.RepoID, i.RepoID) && matches(s.rest.ProjectID, i.ProjectID) && matches(s.rest.Class, i.Class)
}

func matches(want *string, value string) bool { return want == nil || *want == value }

// choose picks the buckets of the field that leaves the fewest findings to look at.
func (x *index) choose(filter FindingFilter) selection {
	var best *selection
	consider := func(f field, value *string, rest FindingFilter) {
		if value == nil {
			return
		}
		s := x.pick(f, *value, filter)
		s.rest = rest
		if best == nil || s.count < best.count {
			best = &s
		}
	}
	consider(repoField, filter.RepoID, FindingFilter{ProjectID: filter.ProjectID, Class: filter.Class})
	consider(projectField, filter.ProjectID, FindingFilter{RepoID: filter.RepoID, Class: filter.Class})
	consider(classField, filter.Class, FindingFilter{RepoID: filter.RepoID, ProjectID: filter.ProjectID})
	if best == nil {
		none := ""
		if filter == (FindingFilter{}) {
			return x.pick(everything, none, filter)
		}
		return x.pick(anyValue, none, filter)
	}
	x.settle(best, filter)
	return *best
}

// settle makes the count exact where the buckets hold more than what matches.
func (x *index) settle(s *selection, filter FindingFilter) {
	if filter.RepoID != nil && filter.ProjectID != nil {
		// A project is in one repository, so as a rule one of the two says it all.
		both := x.pick(repoProjectField, repoProjectValue(*filter.RepoID, *filter.ProjectID), filter)
		if both.count == 0 {
			*s = selection{}
			return
		}
		if filter.Class == nil {
			if both.count == s.count {
				s.rest = FindingFilter{}
			}
			s.count = both.count
			return
		}
	}
	if s.rest == (FindingFilter{}) {
		return
	}
	s.count = 0
	for _, id := range s.buckets {
		x.byCreated.Ascend(entry{bucket: id, item: &Item{}}, func(e entry) bool {
			if e.bucket != id {
				return false
			}
			if s.matches(e.item) {
				s.count++
			}
			return true
		})
	}
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
