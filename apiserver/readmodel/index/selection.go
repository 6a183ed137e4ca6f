package index

// Selection is a set of buckets that contain the matches of a filter, and possibly other rows.
type Selection[T any] struct {
	buckets []uint64
	// last is the last sort whose tree has the buckets.
	last int
	// among holds buckets that exist in the trees of all sorts and contain at least all matches.
	among []uint64
	// Meets reports whether an item is in the buckets. It is needed for lists by a sort whose tree does not
	// have them.
	Meets func(T) bool
	// span of the values of spanSort.
	span     Span
	spanSort int
	// Words leave out the rows whose text does not contain all of them.
	Words []string
	// only leaves out the rows in the buckets that do not match; nil if all match.
	only func(T) bool
	// Count is how many rows match; if Looks returns true, how many the buckets contain.
	Count int
}

// Looks reports whether each row must be examined to know whether it matches.
func (s *Selection[T]) Looks() bool { return s.only != nil || len(s.Words) > 0 }

// FirstSortOnly reports whether only the tree of the first sort has the buckets.
func (s *Selection[T]) FirstSortOnly() bool { return s.last == 0 }

// isOrderedBy reports whether a walk through the tree of a sort, from one end of the span to the other, visits exactly
// the rows of the buckets within the span.
func (s *Selection[T]) isOrderedBy(sort int) bool {
	return sort <= s.last && (s.span.Unbounded() || s.spanSort == sort)
}

// Among sets another selection that contains all matches and that the trees of all sorts have. Lists by a sort
// whose tree does not have the buckets search that selection instead.
func (s *Selection[T]) Among(all Selection[T]) { s.among = all.buckets }

// Also adds a condition that matches must meet. Count is then how many rows are to be examined.
func (s *Selection[T]) Also(meets func(T) bool) {
	before := s.only
	if before == nil {
		s.only = meets
		return
	}
	s.only = func(item T) bool { return before(item) && meets(item) }
}

// Within leaves out the rows outside of a span of the values of a sort.
func (x *Index[T]) Within(s *Selection[T], sort int, span Span) {
	s.span, s.spanSort = span, sort
	if !span.Unbounded() {
		s.Count = x.countWithin(s.buckets, sort, span)
	}
}
