package index

// Selection is the buckets that hold what a filter matches, and perhaps more.
type Selection[T any] struct {
	buckets []uint64
	// first says that the buckets are in the tree of the first sort alone, and that Meets tells what they hold.
	first bool
	// Meets reports whether the buckets hold an item. It is needed for buckets of PickFirst and PickFrom.
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
func (s *Selection[T]) FirstSortOnly() bool { return s.first }

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
