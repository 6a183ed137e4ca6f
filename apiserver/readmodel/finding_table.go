package readmodel

import (
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
}

// findingPlace is where a finding is, with what its project says.
type findingPlace struct {
	repository, project string
	shown               *render.Project
}

// findingTable is what all findings of a snapshot are counted by, side by side: findings lie all over the memory, and
// to go to each of them for each count would take ten times as long (BenchmarkCountFindings). It is made when the
// snapshot is first counted. Whoever uses it holds the view's semaphore.
type findingTable struct {
	made bool
	rows []tableRow
	// samples are, for each likeness, one finding of each number that findings alike in it have.
	samples [likenesses][]*Item
	columns map[string]column
}

// tableRow is a finding.
type tableRow struct {
	item *Item
	// alike are the numbers of what it is like.
	alike [likenesses]uint32
}

// column are the values of a field, which the samples of its likeness have.
type column struct {
	values []string
	// places of the samples' values, one sample after the other, and where those of each sample end.
	places, ends []uint32
}

// add adds so many findings that are like a sample to the counts of its values.
func (c *column) add(sample, n int, counts []int) {
	start := uint32(0)
	if sample > 0 {
		start = c.ends[sample-1]
	}
	for _, place := range c.places[start:c.ends[sample]] {
		counts[place] += n
	}
}

// fill makes the table, unless it has been made.
func (t *findingTable) fill(x *index.Index[*Item]) {
	if t.made {
		return
	}
	t.rows = make([]tableRow, 0, x.Len())
	numbers := tableNumbers{table: t}
	var ahead batch
	for item := range x.With(index.Everything, "") {
		if ahead.add(item) {
			numbers.addAll(ahead.fetched(false))
		}
	}
	numbers.addAll(ahead.fetched(false))
	t.made, t.columns = true, map[string]column{}
}

// tableNumbers gives out the numbers of a table.
type tableNumbers struct {
	table  *findingTable
	kinds  numbered[findingKind]
	places numbered[findingPlace]
	traits numbered[unique.Handle[traits]]

	classes, hours, paths numbered[string]
}

func (n *tableNumbers) addAll(items []*Item) {
	for _, item := range items {
		row := tableRow{item: item}
		kind := findingKind{item.Status, item.UserStatus, item.Severity, item.Stale, item.Suppressed}
		row.alike[byKind] = n.kinds.of(kind, item, &n.table.samples[byKind])
		place := findingPlace{item.RepoID, item.ProjectID, item.Project}
		row.alike[byPlace] = n.places.of(place, item, &n.table.samples[byPlace])
		row.alike[byTraits] = n.traits.of(item.traits, item, &n.table.samples[byTraits])
		row.alike[byClass] = n.classes.of(item.Class, item, &n.table.samples[byClass])
		row.alike[byHour] = n.hours.of(hourOf(item), item, &n.table.samples[byHour])
		row.alike[byPath] = n.paths.of(item.path, item, &n.table.samples[byPath])
		n.table.rows = append(n.table.rows, row)
	}
}

// hourOf is when a finding was created, to the hour.
func hourOf(i *Item) string { return i.CreatedAt[:min(len("2006-01-02T15"), len(i.CreatedAt))] }

// numbered gives each key a number, beginning with 0.
type numbered[K comparable] map[K]uint32

func (n *numbered[K]) of(key K, item *Item, samples *[]*Item) uint32 {
	number, known := (*n)[key]
	if !known {
		if *n == nil {
			*n = numbered[K]{}
		}
		number = asNumber(len(*samples))
		(*n)[key] = number
		*samples = append(*samples, item)
	}
	return number
}

// column returns the values of a field.
func (t *findingTable) column(f *countField) column {
	if known, ok := t.columns[f.name]; ok {
		return known
	}
	var c column
	places := map[string]uint32{}
	add := func(value string) {
		place, known := places[value]
		if !known {
			place = asNumber(len(c.values))
			places[value] = place
			c.values = append(c.values, value)
		}
		c.places = append(c.places, place)
	}
	for _, sample := range t.samples[f.by] {
		f.values(sample, add)
		c.ends = append(c.ends, asNumber(len(c.places)))
	}
	if !f.moves {
		t.columns[f.name] = c
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
		b.seen += len(i.CreatedAt) + len(i.Class) + len(i.Severity) + len(i.text)
		if i.Stale {
			b.seen++
		}
	}
	for _, i := range items {
		b.seen += int(i.CreatedAt[0])
		if text && i.text != "" {
			b.seen += int(i.text[0]) + int(i.text[len(i.text)-1])
		}
	}
	return items
}
