package readmodel

import (
	"iter"
	"math"
	"slices"
	"sync/atomic"
	"time"
	"unique"

	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// likeness is a way to group findings: findings in one group have the same values of all fields that depend on
// this likeness.
type likeness int

const (
	byKind likeness = iota
	byPlace
	byTraits
	byClass
	byHour
	byPath
	likenesses
)

// cached reports whether the values of the fields that depend on the likeness are kept from one count to the next.
// Those of byHour change with the hour, and nearly every finding has a path of its own.
func (by likeness) cached() bool { return by != byHour && by != byPath }

// findingKind holds the properties with few different combinations.
type findingKind struct {
	status, userStatus, severity string
	stale, suppressed            bool
	policy                       unique.Handle[string]
}

func (i *Item) kind() findingKind {
	return findingKind{i.Status, i.UserStatus, i.Severity, i.Stale, i.Suppressed, i.policy}
}

// findingPlace is a finding's repository and project, with what the project shows.
type findingPlace struct {
	repository, project string
	shown               *render.Project
}

// findingTable holds the data for counting an organization's findings in contiguous memory: visiting the
// findings themselves, which are scattered in memory, would make each count ten times slower
// (BenchmarkCountFindings). A change of a finding changes its row. Users of the table hold the
// mutex counting of its view.
type findingTable struct {
	rows    []tableRow
	numbers *numbering
	// samples holds, for each likeness, one row per group; noRow for an empty group. They are stale after a
	// change, and after renumbering.
	samples [likenesses][]uint32
	stale   bool
}

// tableRow is a finding with its text and the numbers of its groups. A row without a finding is free.
type tableRow struct {
	item  *Item
	text  string
	alike [likenesses]uint32
}

// tableChange sets the finding of a row; nil frees the row.
type tableChange struct {
	row  uint32
	item *Item
}

const noRow = math.MaxUint32

// take applies changes in their order.
func (t *findingTable) take(changes []tableChange) {
	for _, c := range changes {
		if int(c.row) == len(t.rows) {
			t.rows = append(t.rows, tableRow{})
		}
		t.rows[c.row] = tableRow{}
		if c.item != nil {
			t.rows[c.row] = tableRow{c.item, c.item.text, t.numbers.of(c.item)}
		}
		t.stale = true
	}
	// Renumber here too, because prepare is never called for an organization whose findings nobody counts.
	if t.numbers.total() > int(likenesses)*2*len(t.rows)+maxUnused {
		t.renumber()
		t.stale = true
	}
}

// prepare updates the samples if they are stale. If most groups are empty, it renumbers all groups.
func (t *findingTable) prepare() {
	if !t.stale {
		return
	}
	t.stale = false
	if given, used := t.sample(); given > 2*used+maxUnused {
		t.renumber()
		t.sample()
	}
}

// maxUnused is how many numbers may be unused before renumbering, in addition to those in proportion to the
// used ones.
const maxUnused = 1000

// sample updates the samples, and returns how many numbers are assigned and how many of them are used.
func (t *findingTable) sample() (given, used int) {
	for by := range t.samples {
		t.samples[by] = slices.Repeat([]uint32{noRow}, t.numbers.given[by])
		given += t.numbers.given[by]
	}
	for k := range t.rows {
		row := &t.rows[k]
		if row.item == nil {
			continue
		}
		for by, number := range row.alike {
			if t.samples[by][number] == noRow {
				t.samples[by][number] = asNumber(k)
				used++
			}
		}
	}
	return given, used
}

// renumber assigns new group numbers to all findings.
func (t *findingTable) renumber() {
	t.numbers = newNumbering()
	held := make([]*tableRow, 0, batchSize)
	for rows := range slices.Chunk(t.rows, batchSize) {
		held = held[:0]
		for k := range rows {
			if rows[k].item != nil {
				held = append(held, &rows[k])
			}
		}
		fetchFindings(held)
		for _, row := range held {
			row.alike = t.numbers.of(row.item)
		}
	}
}

// sampled yields one finding per group of a likeness; nil for an empty group.
func (t *findingTable) sampled(by likeness) iter.Seq2[int, *Item] {
	return func(yield func(int, *Item) bool) {
		for number, row := range t.samples[by] {
			var item *Item
			if row != noRow {
				item = t.rows[row].item
			}
			if !yield(number, item) {
				return
			}
		}
	}
}

// tableRows assigns table rows to findings and collects changes for the table. The model's mutex guards it.
type tableRows struct {
	given   uint32
	free    []uint32
	changes []tableChange
}

// put gives a finding the row of its predecessor, which may be nil.
func (r *tableRows) put(before, item *Item) {
	switch last := len(r.free) - 1; {
	case before != nil:
		item.row = before.row
	case last >= 0:
		item.row, r.free = r.free[last], r.free[:last]
	default:
		item.row = r.given
		r.given++
	}
	r.changes = append(r.changes, tableChange{item.row, item})
}

// remove frees the row of a finding.
func (r *tableRows) remove(item *Item) {
	r.free = append(r.free, item.row)
	r.changes = append(r.changes, tableChange{item.row, nil})
}

// numbering assigns numbers to the groups of each likeness, and holds the values that depend on them.
type numbering struct {
	given  [likenesses]int
	kinds  map[findingKind]uint32
	places map[findingPlace]uint32
	traits map[unique.Handle[traits]]uint32
	// texts holds the numbers of the classes, hours and paths.
	texts [likenesses]map[string]uint32
	// fields are the fields that depend on each likeness. columns holds their values by field name.
	fields  [likenesses][]countField
	columns map[string]*column
}

func newNumbering() *numbering {
	n := &numbering{
		kinds: map[findingKind]uint32{}, places: map[findingPlace]uint32{}, traits: map[unique.Handle[traits]]uint32{},
		columns: map[string]*column{},
	}
	for by := range n.texts {
		n.texts[by] = map[string]uint32{}
	}
	for _, f := range countFields(time.Time{}) {
		if f.by.cached() {
			n.fields[f.by] = append(n.fields[f.by], f)
			n.columns[f.name] = newColumn()
		}
	}
	return n
}

// total returns how many numbers are assigned.
func (n *numbering) total() (total int) {
	for _, given := range n.given {
		total += given
	}
	return total
}

// of returns the numbers of a finding's groups.
func (n *numbering) of(item *Item) (of [likenesses]uint32) {
	place := findingPlace{item.RepoID, item.ProjectID, item.Project}
	of[byKind] = numberOf(n, n.kinds, item.kind(), byKind, item)
	of[byPlace] = numberOf(n, n.places, place, byPlace, item)
	of[byTraits] = numberOf(n, n.traits, item.traits, byTraits, item)
	of[byClass] = numberOf(n, n.texts[byClass], item.Class, byClass, item)
	of[byHour] = numberOf(n, n.texts[byHour], hourOf(item), byHour, item)
	of[byPath] = numberOf(n, n.texts[byPath], item.path, byPath, item)
	return of
}

// hourOf returns when a finding was created, to the hour.
func hourOf(i *Item) string { return i.CreatedAt()[:min(len("2006-01-02T15"), len(i.CreatedAt()))] }

// numberOf returns the number of the finding's group, which is a new one for the first finding in it.
func numberOf[K comparable](n *numbering, known map[K]uint32, key K, by likeness, item *Item) uint32 {
	if number, ok := known[key]; ok {
		return number
	}
	number := asNumber(n.given[by])
	n.given[by]++
	known[key] = number
	for k := range n.fields[by] {
		n.columns[n.fields[by][k].name].extend(&n.fields[by][k], item)
	}
	return number
}

// column holds the values of a field for each number of its likeness.
type column struct {
	values []string
	// places holds the values' indexes of all numbers one after the other, and ends where those of each number
	// end.
	places, ends []uint32
	known        map[string]uint32
}

func newColumn() *column { return &column{known: map[string]uint32{}} }

// extend adds the next number, with the values of a finding; without a finding it has no values.
func (c *column) extend(f *countField, item *Item) {
	if item != nil {
		f.values(item, func(value string) {
			place, known := c.known[value]
			if !known {
				place = asNumber(len(c.values))
				c.known[value] = place
				c.values = append(c.values, value)
			}
			c.places = append(c.places, place)
		})
	}
	c.ends = append(c.ends, asNumber(len(c.places)))
}

// add adds n findings to the counts of a number's values.
func (c *column) add(number, n int, counts []int) {
	start := uint32(0)
	if number > 0 {
		start = c.ends[number-1]
	}
	for _, place := range c.places[start:c.ends[number]] {
		counts[place] += n
	}
}

// column returns the values of a field.
func (t *findingTable) column(f *countField) *column {
	if f.by.cached() {
		return t.numbers.columns[f.name]
	}
	c := newColumn()
	for _, sample := range t.sampled(f.by) {
		c.extend(f, sample)
	}
	return c
}

func asNumber(n int) uint32 { return uint32(n) } //nolint:gosec // there are millions of findings at most

// batchSize is how many findings are fetched from memory at the same time: waiting for memory one by one would
// take two to five times as long.
const batchSize = 64

// fetched is never read: without it the compiler would remove the reads.
var fetched atomic.Int64

// fetchFindings fetches the data of findings that conditions examine.
func fetchFindings(rows []*tableRow) {
	seen := 0
	for _, row := range rows {
		if row.item.stored != nil {
			seen++
		}
	}
	for _, row := range rows {
		i := row.item
		seen += len(i.graded) + len(i.Class) + len(i.Severity)
		if i.Stale {
			seen++
		}
	}
	for _, row := range rows {
		seen += int(row.item.graded[0])
	}
	fetched.Store(int64(seen))
}

// fetchTexts fetches the texts that are searched for words.
func fetchTexts(rows []*tableRow) {
	seen := 0
	for _, row := range rows {
		if row.text != "" {
			seen += int(row.text[0]) + int(row.text[len(row.text)-1])
		}
	}
	fetched.Store(int64(seen))
}
