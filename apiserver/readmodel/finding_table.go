package readmodel

import (
	"time"
	"unique"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// likeness is in what findings are alike: those that are have the same values of the fields that go by it.
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

// findingKind is what few findings differ in.
type findingKind struct {
	status, userStatus, severity string
	stale, suppressed            bool
	policy                       unique.Handle[string]
}

func (i *Item) kind() findingKind {
	return findingKind{i.Status, i.UserStatus, i.Severity, i.Stale, i.Suppressed, i.policy}
}

// findingPlace is where a finding is, with what its project says.
type findingPlace struct {
	repository, project string
	shown               *render.Project
}

// findingTable is what all findings of a snapshot are counted by, side by side: findings lie all over the memory, and
// to go to each of them for each count would take ten times as long (BenchmarkCountFindings). It is made when the
// snapshot is first counted. Whoever uses it, or numbers findings, holds the view's semaphore.
type findingTable struct {
	rows []tableRow
	// samples are, for each likeness, one finding of each number; nil where no finding of the snapshot has it.
	samples [likenesses][]*Item
	numbers *numbering
}

// tableRow is a finding, and the numbers of what it is like.
type tableRow struct {
	item  *Item
	alike [likenesses]uint32
}

// fill makes the table, unless it has been made. The numbers are those of the tables before it, unless most of those
// are of what no finding is like any more.
func (t *findingTable) fill(v *view, x *index.Index[*Item]) {
	if t.numbers != nil {
		return
	}
	if v.numbers == nil {
		v.numbers = newNumbering()
	}
	t.numbers = v.numbers
	t.rows = make([]tableRow, 0, x.Len())
	var unknown batch
	for item := range x.With(index.Everything, "") {
		t.rows = append(t.rows, tableRow{item: item})
		if item.numbers.by != t.numbers && unknown.add(item) {
			t.numbers.addAll(unknown.fetched(false))
		}
	}
	t.numbers.addAll(unknown.fetched(false))
	given, used := 0, 0
	for by := range t.samples {
		t.samples[by] = make([]*Item, t.numbers.given[by])
		given += t.numbers.given[by]
	}
	for k := range t.rows {
		row := &t.rows[k]
		row.alike = row.item.numbers.of
		for by, number := range row.alike {
			if t.samples[by][number] == nil {
				t.samples[by][number] = row.item
				used++
			}
		}
	}
	if given > 2*used+maxUnused {
		v.numbers = nil
	}
}

// maxUnused is how many numbers may be unused, however many are used.
const maxUnused = 1000

// numbers are those of what a finding is like, and who has given them. Items have them from when they are first
// counted.
type numbers struct {
	by *numbering
	of [likenesses]uint32
}

// numbering gives a number to each way to be alike, and has the values that go by it.
type numbering struct {
	given  [likenesses]int
	kinds  map[findingKind]uint32
	places map[findingPlace]uint32
	traits map[unique.Handle[traits]]uint32
	// texts are the classes, hours and paths.
	texts [likenesses]map[string]uint32
	// fields go by each likeness, and their columns have their names.
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
		if !f.moves {
			n.fields[f.by] = append(n.fields[f.by], f)
			n.columns[f.name] = newColumn()
		}
	}
	return n
}

// addAll numbers findings.
func (n *numbering) addAll(items []*Item) {
	for _, item := range items {
		var of [likenesses]uint32
		place := findingPlace{item.RepoID, item.ProjectID, item.Project}
		of[byKind] = numberOf(n, n.kinds, item.kind(), byKind, item)
		of[byPlace] = numberOf(n, n.places, place, byPlace, item)
		of[byTraits] = numberOf(n, n.traits, item.traits, byTraits, item)
		of[byClass] = numberOf(n, n.texts[byClass], item.Class, byClass, item)
		of[byHour] = numberOf(n, n.texts[byHour], hourOf(item), byHour, item)
		of[byPath] = numberOf(n, n.texts[byPath], item.path, byPath, item)
		item.numbers = numbers{n, of}
	}
}

// hourOf is when a finding was created, to the hour.
func hourOf(i *Item) string { return i.CreatedAt()[:min(len("2006-01-02T15"), len(i.CreatedAt()))] }

// numberOf returns the number of what the finding is like, the next one if it is the first.
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

// column are the values of a field, of each number of its likeness.
type column struct {
	values []string
	// places of the numbers' values, one number after the other, and where those of each end.
	places, ends []uint32
	known        map[string]uint32
}

func newColumn() *column { return &column{known: map[string]uint32{}} }

// extend adds the values that a finding has to those of the next number; without a finding there are none.
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

// add adds so many findings to the counts of the values that a number has.
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
	if !f.moves {
		return t.numbers.columns[f.name]
	}
	c := newColumn()
	for _, sample := range t.samples[f.by] {
		c.extend(f, sample)
	}
	return c
}

func asNumber(n int) uint32 { return uint32(n) } //nolint:gosec // of findings, of which there are millions at most

// batch gathers some findings and has what is looked at of them fetched from memory at the same time: waiting for
// memory one by one would take two to five times as long.
type batch struct {
	items [64]*Item
	count int
	// seen is read by nobody: without it the compiler would leave out the reads.
	seen int
}

// add reports whether the batch is full.
func (b *batch) add(item *Item) bool {
	b.items[b.count] = item
	b.count++
	return b.count == len(b.items)
}

// fetched returns what was gathered, and begins anew. Text says that texts are looked at.
func (b *batch) fetched(text bool) []*Item {
	items := b.items[:b.count]
	b.count = 0
	for _, i := range items {
		if i.stored != nil {
			b.seen++
		}
	}
	for _, i := range items {
		b.seen += len(i.graded) + len(i.Class) + len(i.Severity) + len(i.text)
		if i.Stale {
			b.seen++
		}
	}
	for _, i := range items {
		b.seen += int(i.graded[0])
		if text && i.text != "" {
			b.seen += int(i.text[0]) + int(i.text[len(i.text)-1])
		}
	}
	return items
}
