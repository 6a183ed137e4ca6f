package readmodel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// CountQuery asks how many of an organization's findings have each value of a field.
type CountQuery struct {
	Filter FindingFilter
	// Field is the one that is counted by; empty means all but the file.
	Field string
	// Values is how many values of a field are told at most.
	Values int
}

// FindingCounts are how many findings have each value.
type FindingCounts struct {
	// Total is how many findings match the filter.
	Total  int
	Fields []FieldCounts
}

// FieldCounts are the counts of a field's values, the greatest first.
type FieldCounts struct {
	Name   string
	Values []ValueCount
	// Distinct is how many values there are, told or not.
	Distinct int
}

// ValueCount is how many findings a list shows that is asked for the value, and for all that the filter asks of other
// fields.
type ValueCount struct {
	Value string
	Count int
}

// CountFindings counts what a list with the filter would show. The errors are ErrNoOrganization and the context's.
//
// Its cost is that of a look through the table of the organization's findings. An organization is counted by one caller
// at a time, so that no other waits for it.
func (m *Model) CountFindings(ctx context.Context, organization string, q CountQuery) (FindingCounts, error) {
	view, ok := (*m.visible.Load())[organization]
	if !ok {
		return FindingCounts{}, fmt.Errorf("%w: %s", ErrNoOrganization, organization)
	}
	if err := view.counting.Acquire(ctx, 1); err != nil {
		return FindingCounts{}, err
	}
	defer view.counting.Release(1)
	snapshot := view.catchUp()
	view.table.prepare()
	counting := newCounting(&view.table, snapshot.findings, q.Filter, m.clock.Now())
	counting.count()
	return counting.result(q), nil
}

// asked is what a filter asks of one field, or, with ofNone, of what is not counted by.
type asked struct {
	field int8
	meets func(*Item) bool
}

// ofNone is the field of what is asked of none that is counted by.
const ofNone int8 = -1

// What a finding misses where that is not one field.
const (
	missesNone    int8 = -1
	missesSeveral int8 = -2
)

// missedBy returns the field whose condition alone keeps the finding out of the list. A count of a value is of what the
// list shows with that value in place of the one that is asked for.
func missedBy(conditions []asked, item *Item) int8 {
	missed := missesNone
	for _, c := range conditions {
		if c.meets(item) {
			continue
		}
		if c.field == ofNone || missed != missesNone && missed != c.field {
			return missesSeveral
		}
		missed = c.field
	}
	return missed
}

// tests are all that the filter asks but for words, row by row.
func (f FindingFilter) tests(x *index.Index[*Item]) []func(*Item) bool {
	var all []func(*Item) bool
	for _, c := range f.conditions(x) {
		all = append(all, c.meets)
	}
	for _, sort := range []int{findingCreatedAt, findingUpdatedAt} {
		if !f.spanOf(sort).Unbounded() {
			all = append(all, f.inTime(sort))
		}
	}
	return all
}

// counting counts the rows of a table. What is alike is looked at once for what the filter asks of the fields that go
// by it, and its values are looked up once.
type counting struct {
	table  *findingTable
	fields []countField
	// misses are what the samples miss, for each likeness that the filter asks anything of; the others have none.
	misses [likenesses][]int8
	// words are looked for in each finding's text, and each is what else is looked up finding by finding.
	words []string
	each  []asked
	// met is how many findings there are like each sample that meet all that is asked, metBut for each field how many
	// that miss what is asked of it alone; nil where nothing is.
	total  int
	met    [likenesses][]int
	metBut [][]int
}

func newCounting(table *findingTable, x *index.Index[*Item], f FindingFilter, now time.Time) *counting {
	fields := countFields(now)
	c := &counting{table: table, fields: fields, metBut: make([][]int, len(fields)), words: f.Words}
	f.Words = nil
	var alike [likenesses][]asked
	for k := range fields {
		by := fields[k].by
		if by == byHour && !onTheHour(f.Created.Since) {
			continue
		}
		for _, meets := range fields[k].take(&f).tests(x) {
			alike[by] = append(alike[by], asked{int8(k), meets})
			c.metBut[k] = make([]int, len(table.samples[by]))
		}
	}
	for by := range likenesses {
		c.met[by] = make([]int, len(table.samples[by]))
		if len(alike[by]) == 0 {
			continue
		}
		c.misses[by] = make([]int8, len(table.samples[by]))
		for number, sample := range table.sampled(by) {
			if sample != nil {
				c.misses[by][number] = missedBy(alike[by], sample)
			}
		}
	}
	for k := range fields {
		for _, meets := range fields[k].take(&f).tests(x) {
			c.each = append(c.each, asked{int8(k), meets})
			c.metBut[k] = make([]int, len(table.samples[fields[k].by]))
		}
	}
	for _, meets := range f.tests(x) {
		c.each = append(c.each, asked{ofNone, meets})
	}
	return c
}

// onTheHour reports whether findings of one hour are all after a time or all before it.
func onTheHour(at *time.Time) bool { return at == nil || at.Equal(at.Truncate(time.Hour)) }

// count looks at each finding once.
func (c *counting) count() {
	waiting := make([]*tableRow, 0, batchSize)
	for k := range c.table.rows {
		row := &c.table.rows[k]
		switch {
		case row.item == nil || c.missed(row) == missesSeveral:
		case len(c.words) == 0 && len(c.each) == 0:
			c.add(row, c.missed(row))
		default:
			if waiting = append(waiting, row); len(waiting) == batchSize {
				c.look(waiting)
				waiting = waiting[:0]
			}
		}
	}
	c.look(waiting)
}

// look counts findings that are to be looked up.
func (c *counting) look(rows []*tableRow) {
	if len(c.words) > 0 {
		fetchTexts(rows)
		rows = slices.DeleteFunc(rows, func(row *tableRow) bool { return !findingquery.HasWords(row.text, c.words) })
	}
	if len(c.each) > 0 {
		fetchFindings(rows)
	}
	for _, row := range rows {
		c.add(row, missing(c.missed(row), missedBy(c.each, row.item)))
	}
}

// missed is what the finding misses of what is asked of those alike.
func (c *counting) missed(row *tableRow) int8 {
	missed := missesNone
	for by, number := range row.alike {
		if c.misses[by] != nil {
			missed = missing(missed, c.misses[by][number])
		}
	}
	return missed
}

// missing is what a finding misses that misses one and the other.
func missing(one, other int8) int8 {
	switch {
	case one == missesNone:
		return other
	case other == missesNone || one == other:
		return one
	}
	return missesSeveral
}

func (c *counting) add(row *tableRow, missed int8) {
	switch missed {
	case missesSeveral:
	case missesNone:
		c.total++
		for by, number := range row.alike {
			c.met[by][number]++
		}
	default:
		c.metBut[missed][row.alike[c.fields[missed].by]]++
	}
}

func (c *counting) result(q CountQuery) FindingCounts {
	out := FindingCounts{Total: c.total}
	for k := range c.fields {
		name := c.fields[k].name
		if name != q.Field && (q.Field != "" || name == fileField) {
			continue
		}
		counts := c.valuesOf(k)
		out.Fields = append(out.Fields, FieldCounts{Name: name, Values: greatest(counts, q.Values), Distinct: len(counts)})
	}
	return out
}

// valuesOf are the counts of a field's values.
func (c *counting) valuesOf(k int) []ValueCount {
	column := c.table.column(&c.fields[k])
	counts := make([]int, len(column.values))
	for _, found := range [][]int{c.met[c.fields[k].by], c.metBut[k]} {
		for sample, n := range found {
			if n > 0 {
				column.add(sample, n, counts)
			}
		}
	}
	values := make([]ValueCount, 0, len(counts))
	for place, n := range counts {
		if n > 0 {
			values = append(values, ValueCount{column.values[place], n})
		}
	}
	return values
}

// greatest are the values that the most findings have. There may be thousands, and few are told.
func greatest(values []ValueCount, most int) []ValueCount {
	order := func(a, b ValueCount) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value)) }
	first := make([]ValueCount, 0, min(len(values), most)+1)
	for _, v := range values {
		if n := len(first); n > 0 && n == most && order(first[n-1], v) < 0 {
			continue
		}
		place, _ := slices.BinarySearchFunc(first, v, order)
		first = slices.Insert(first, place, v)
		first = first[:min(len(first), most)]
	}
	return first
}
