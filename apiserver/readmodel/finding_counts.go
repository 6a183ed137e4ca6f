package readmodel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
	"unique"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
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
// It looks at each finding once. An organization is counted by one caller at a time, so that no other waits for it.
func (m *Model) CountFindings(ctx context.Context, organization string, q CountQuery) (FindingCounts, error) {
	view, ok := (*m.visible.Load())[organization]
	if !ok {
		return FindingCounts{}, fmt.Errorf("%w: %s", ErrNoOrganization, organization)
	}
	if err := view.counting.Acquire(ctx, 1); err != nil {
		return FindingCounts{}, err
	}
	defer view.counting.Release(1)
	return countFindings(view.snapshot.Load().findings, q, m.clock.Now()), nil
}

func countFindings(x *index.Index[*Item], q CountQuery, now time.Time) FindingCounts {
	fields := countFields(now)
	fields = slices.DeleteFunc(fields, func(f countField) bool {
		return q.Field == "" && f.name == fileField || q.Field != "" && f.name != q.Field
	})
	c := newCounting(fields)
	asked := askedOf(x, q.Filter, fields)
	look := func(item *Item) {
		switch missed := missedBy(asked, item); missed {
		case missesSeveral:
		case missesNone:
			c.add(item)
		default:
			c.addTo(missed, item)
		}
	}
	ahead := fetching{visit: look, text: len(q.Filter.Words) > 0}
	for item := range x.With(index.Everything, "") {
		ahead.add(item)
	}
	ahead.flush()
	return c.result(q.Values)
}

// fetching gathers some findings, has what is looked at of them fetched from memory at the same time, and then looks at
// each: waiting for memory one by one would take two to five times as long (BenchmarkCountFindings).
type fetching struct {
	visit func(*Item)
	// text says that texts are looked at.
	text  bool
	items [64]*Item
	count int
	// fetched is read by nobody: without it the compiler would leave out the reads.
	fetched int
}

func (f *fetching) add(item *Item) {
	f.items[f.count] = item
	if f.count++; f.count == len(f.items) {
		f.flush()
	}
}

func (f *fetching) flush() {
	items := f.items[:f.count]
	f.count = 0
	for _, i := range items {
		if i.stored != nil {
			f.fetched++
		}
	}
	for _, i := range items {
		f.fetched += len(i.CreatedAt) + len(i.Class) + len(i.Severity) + len(i.text)
		if i.Stale {
			f.fetched++
		}
	}
	for _, i := range items {
		f.fetched += int(i.CreatedAt[0])
		if f.text && i.text != "" {
			f.fetched += int(i.text[0]) + int(i.text[len(i.text)-1])
		}
	}
	for _, i := range items {
		f.visit(i)
	}
}

// asked is what a filter asks of one field, or, with ofNone, of what is not counted by.
type asked struct {
	field int
	meets func(*Item) bool
}

// ofNone is the field of what is asked of none that is counted by.
const ofNone = -1

// What a finding misses where that is not one field.
const (
	missesNone    = -1
	missesSeveral = -2
)

// missedBy returns the field whose condition alone keeps the finding out of the list. A count of a value is of what the
// list shows with that value in place of the one that is asked for.
func missedBy(conditions []asked, item *Item) int {
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

// askedOf splits a filter by the fields that are counted by.
func askedOf(x *index.Index[*Item], f FindingFilter, fields []countField) []asked {
	var all []asked
	for k := range fields {
		for _, meets := range fields[k].take(&f).tests(x) {
			all = append(all, asked{k, meets})
		}
	}
	for _, meets := range f.tests(x) {
		all = append(all, asked{ofNone, meets})
	}
	return all
}

// tests are all that the filter asks, row by row.
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
	if len(f.Words) > 0 {
		all = append(all, func(i *Item) bool { return findingquery.HasWords(i.text, f.Words) })
	}
	return all
}

// counting holds the counts so far. Most fields are not counted finding by finding: findings that have the same
// values of several fields share one sample, and its number is added to the counts at the end. Looking up a text for
// each finding and field is what would cost most.
type counting struct {
	fields []countField
	counts []map[string]int
	total  int

	traits alike[unique.Handle[traits]]
	kinds  alike[findingKind]
	places alike[findingPlace]
}

// findingKind is what few findings differ in.
type findingKind struct {
	status, userStatus, severity string
	stale, suppressed            bool
}

// findingPlace is where a finding is, with what its project says.
type findingPlace struct {
	repository, project string
	shown               *render.Project
}

// alike are findings of which one stands for those with the same key.
type alike[K comparable] struct {
	at      map[K]int
	samples []sample
}

type sample struct {
	item  *Item
	count int
}

func newAlike[K comparable]() alike[K] { return alike[K]{at: map[K]int{}} }

func (a *alike[K]) add(key K, item *Item) {
	at, known := a.at[key]
	if !known {
		at = len(a.samples)
		a.at[key] = at
		a.samples = append(a.samples, sample{item: item})
	}
	a.samples[at].count++
}

func newCounting(fields []countField) *counting {
	c := &counting{
		fields: fields, counts: make([]map[string]int, len(fields)),
		traits: newAlike[unique.Handle[traits]](), kinds: newAlike[findingKind](), places: newAlike[findingPlace](),
	}
	for k := range c.counts {
		c.counts[k] = map[string]int{}
	}
	return c
}

// add counts a finding by every field.
func (c *counting) add(item *Item) {
	c.total++
	c.traits.add(item.traits, item)
	c.kinds.add(findingKind{item.Status, item.UserStatus, item.Severity, item.Stale, item.Suppressed}, item)
	c.places.add(findingPlace{item.RepoID, item.ProjectID, item.Project}, item)
	for k := range c.fields {
		if c.fields[k].by == byItself {
			c.addTo(k, item)
		}
	}
}

// addTo counts a finding by one field.
func (c *counting) addTo(k int, item *Item) { c.fields[k].count(item, 1, c.counts[k]) }

func (c *counting) result(values int) FindingCounts {
	c.resolve(byTraits, c.traits.samples)
	c.resolve(byKind, c.kinds.samples)
	c.resolve(byPlace, c.places.samples)
	out := FindingCounts{Total: c.total, Fields: make([]FieldCounts, len(c.fields))}
	for k, counts := range c.counts {
		out.Fields[k] = FieldCounts{Name: c.fields[k].name, Values: greatest(counts, values), Distinct: len(counts)}
	}
	return out
}

// resolve counts those that are alike by the fields in which they are: by all fields before the next, whose values are
// elsewhere in memory.
func (c *counting) resolve(by likeness, samples []sample) {
	var fields []int
	for k := range c.fields {
		if c.fields[k].by == by {
			fields = append(fields, k)
		}
	}
	for _, s := range samples {
		for _, k := range fields {
			c.fields[k].count(s.item, s.count, c.counts[k])
		}
	}
}

// greatest are the values that the most findings have.
func greatest(counts map[string]int, most int) []ValueCount {
	values := make([]ValueCount, 0, len(counts))
	for value, count := range counts {
		values = append(values, ValueCount{value, count})
	}
	slices.SortFunc(values, func(a, b ValueCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
	return values[:min(len(values), most)]
}
