package index

import "slices"

// Collector makes a page of items that come in any order and are not indexed. It keeps only those that can be on the
// page.
type Collector[T any] struct {
	query  Query
	length func(T) int
	rows   []*row[T]
	count  int
}

// NewCollector returns a Collector for a page of a list with a single sort. length returns the length of an item's
// JSON.
func NewCollector[T any](r Request, length func(T) int) *Collector[T] {
	return &Collector[T]{query: r.query(0), length: length}
}

// Add counts an item, and keeps it if it can be on the page. item is called only then; its error is returned.
func (c *Collector[T]) Add(at Position, item func() (T, error)) error {
	c.count++
	if c.query.after != nil && c.query.compare(at, *c.query.after) <= 0 {
		return nil
	}
	place, _ := slices.BinarySearchFunc(c.rows, at, func(r *row[T], at Position) int {
		return c.query.compare(r.position(0), at)
	})
	if place == len(c.rows) && c.kept() < len(c.rows) {
		return nil
	}
	made, err := item()
	if err != nil {
		return err
	}
	c.rows = slices.Insert(c.rows, place, &row[T]{id: at.ID, values: []string{at.Value}, item: made})
	if kept := c.kept(); kept < len(c.rows) { // one more shows that another page follows
		clear(c.rows[kept+1:])
		c.rows = c.rows[:kept+1]
	}
	return nil
}

// kept returns how many of the rows fit on the page.
func (c *Collector[T]) kept() int {
	bytes := 0
	for i, r := range c.rows {
		takes := c.length(r.item) + 1
		if !c.query.fits(i, bytes, takes) {
			return i
		}
		bytes += takes
	}
	return len(c.rows)
}

// Page returns the page.
func (c *Collector[T]) Page() Page[T] {
	return pageOf(c.query, slices.Values(c.rows), c.count, c.length)
}
