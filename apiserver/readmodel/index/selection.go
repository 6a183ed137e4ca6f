package index

// Selection is the buckets that hold what a filter matches, and perhaps more.
type Selection[T any] struct {
	buckets []uint64
	// last is the last sort whose tree has the buckets.
	last int
	// among are buckets in the trees of all sorts that hold at least what matches.
	among []uint64
	// Meets reports whether the buckets hold an item. It is needed for lists by a sort whose tree does not have them.
	Meets func(T) bool
	// span of the list's values, if spanSort is the list's sort.
	span     Span
	spanSort int
	// Words leave out the rows whose text does not have them all.
	Words []string
	// only leaves out what the buckets hold beside what matches; nil where that is nothing.
	only func(T) bool
	// Count is how many rows match; of a selection that Looks, how many the buckets hold.
	Count int
}

// Looks reports whether each row has to be looked at to know whether it matches.
func (s *Selection[T]) Looks() bool { return s.only != nil || len(s.Words) > 0 }

// FirstSortOnly reports whether the buckets are in the order of the first sort alone.
func (s *Selection[T]) FirstSortOnly() bool { return s.last == 0 }

// Among says that all that matches is in another selection, which the trees of all sorts have. Lists by a sort whose
// tree does not have the buckets look for it there.
func (s *Selection[T]) Among(all Selection[T]) { s.among = all.buckets }

// Also leaves out what does not meet a further condition. The count is then how many rows there are to look at.
func (s *Selection[T]) Also(meets func(T) bool) {
	before := s.only
	if before == nil {
		s.only = meets
		return
	}
	s.only = func(item T) bool { return before(item) && meets(item) }
}

// Within leaves out what is not in a span of the values of a sort.
func (x *Index[T]) Within(s *Selection[T], sort int, span Span) {
	s.span, s.spanSort = span, sort
	if !span.Unbounded() {
		s.Count = x.countWithin(s.buckets, sort, span)
	}
}
