package readmodel

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// CountQuery asks how many of an organization's findings have each value of a field.
type CountQuery struct {
	Filter FindingFilter
	// Field is the field to count by; empty means all fields except the file.
	Field string
	// Values is the maximum number of values returned per field.
	Values int
}

// FindingCounts holds how many findings have each value.
type FindingCounts struct {
	// Total is how many findings match the filter.
	Total  int
	Fields []FieldCounts
}

// FieldCounts holds the counts of a field's values, the greatest first.
type FieldCounts struct {
	Name   string
	Values []ValueCount
	// Distinct is the number of values, returned or not.
	Distinct int
}

// ValueCount is the number of findings in a list that filters for the value, and for all other fields as the
// query does.
type ValueCount struct {
	Value string
	Count int
}

// CountFindings counts the findings that a list with the filter would contain. The errors are ErrNoOrganization,
// slots.ErrBusy and the context's.
//
// It scans the table of the organization's findings. Only one caller at a time counts an organization's
// findings, so that other organizations need not wait.
func (m *Model) CountFindings(ctx context.Context, organization string, q CountQuery) (FindingCounts, error) {
	view, err := m.view(organization)
	if err != nil {
		return FindingCounts{}, err
	}
	leave, err := m.counts.Enter(ctx, view)
	if err != nil {
		return FindingCounts{}, err
	}
	defer leave()
	view.counting.Lock()
	defer view.counting.Unlock()
	snapshot := view.catchUp()
	view.table.prepare()
	counting := newCounting(&view.table, snapshot.findings, q.Filter, m.clock.Now())
	counting.count()
	return counting.result(q), nil
}

// asked is a condition of a filter on one field or, with ofNone, on no counted field.
type asked struct {
	field int8
	meets func(*Item) bool
}

// ofNone is the field of a condition on a field that has no counts.
const ofNone int8 = -1

// Results of missedBy that are not a field.
const (
	missesNone    int8 = -1
	missesSeveral int8 = -2
)

// missedBy returns the one field whose conditions the finding fails, missesNone if it meets all conditions, or
// missesSeveral. A finding that fails the conditions of only one field counts for that field's values: the
// count of a value is that of a list with the value in place of the requested one.
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

// tests returns all conditions of the filter except for words, as functions of one row.
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

// counting counts the rows of a table. Conditions on fields that depend on a likeness are evaluated once per
// group, and so are the values.
type counting struct {
	table  *findingTable
	fields []countField
	// misses holds, for each likeness with conditions, the result of missedBy for each sample; nil without
	// conditions.
	misses [likenesses][]int8
	// words must occur in each finding's text, and each holds the other conditions that are evaluated per
	// finding.
	words []string
	each  []asked
	// met is the number of findings per group that meet all conditions. metBut is, for each field, the number
	// of findings per group that fail only that field's conditions; nil for fields without conditions.
	total  int
	met    [likenesses][]int
	metBut [][]int
}

func newCounting(table *findingTable, x *index.Index[*Item], f FindingFilter, now time.Time) *counting {
	fields := countFields(now)
	c := &counting{table: table, fields: fields, metBut: make([][]int, len(fields)), words: f.Words}
	f.Words = nil
	perFinding := !onTheHour(f.Created.Since)
	var alike [likenesses][]asked
	for k := range fields {
		by := fields[k].by
		for _, meets := range fields[k].take(&f).tests(x) {
			c.metBut[k] = make([]int, len(table.samples[by]))
			if by == byHour && perFinding {
				c.each = append(c.each, asked{int8(k), meets})
			} else {
				alike[by] = append(alike[by], asked{int8(k), meets})
			}
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
	for _, meets := range f.tests(x) {
		c.each = append(c.each, asked{ofNone, meets})
	}
	return c
}

// onTheHour reports whether all findings created in the same hour are on the same side of at.
func onTheHour(at *time.Time) bool { return at == nil || at.Equal(at.Truncate(time.Hour)) }

// count evaluates each finding once.
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

// look evaluates the words and the conditions per finding, and counts the rows.
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

// missed returns the field whose conditions the finding's groups fail; see missedBy.
func (c *counting) missed(row *tableRow) int8 {
	missed := missesNone
	for by, number := range row.alike {
		if c.misses[by] != nil {
			missed = missing(missed, c.misses[by][number])
		}
	}
	return missed
}

// missing combines two results of missedBy for the same finding.
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

// valuesOf returns the counts of a field's values.
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

// greatest returns the values with the highest counts. There may be thousands, of which few are returned.
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
