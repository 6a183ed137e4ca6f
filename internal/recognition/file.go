package recognition

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fileMoved pairs the results of a file that is new with the findings of one that is gone, where
// rule, line, message and code of all of them agree. Where several files agree with several
// others, what most of the files were renamed by decides: a root, a folder, a prefix.
func fileMoved(m *matcher) {
	gone, come := m.goneFiles(), m.newFiles()
	var candidates []*move
	renames := map[rename]int{}
	for _, signature := range slices.Sorted(maps.Keys(come)) {
		tos, froms := come[signature], gone[signature]
		if len(tos)*len(froms) > mostPairs {
			continue
		}
		for _, to := range tos {
			for _, from := range froms {
				c := &move{from: from, to: to, by: renamed(from.path, to.path), alone: len(tos) == 1 && len(froms) == 1}
				renames[c.by]++
				candidates = append(candidates, c)
				from.moves, to.moves = append(from.moves, c), append(to.moves, c)
			}
		}
	}
	for _, c := range candidates {
		c.votes = renames[c.by]
	}
	slices.SortStableFunc(candidates, func(a, b *move) int { return b.votes - a.votes })
	for _, c := range candidates {
		if !c.from.paired && !c.to.paired && (c.alone || c.votes > 1 && !c.rivalled()) {
			c.from.paired, c.to.paired = true, true
			m.pairFiles(c)
		}
	}
}

// move is a file that may have become another one.
type move struct {
	from, to *file
	by       rename
	// votes is how many moves are by the same rename; alone says that no other has this signature.
	votes int
	alone bool
}

// rivalled says whether another move of one of the two files is as good.
func (c *move) rivalled() bool {
	for _, o := range slices.Concat(c.from.moves, c.to.moves) {
		if o != c && o.votes == c.votes && !o.from.paired && !o.to.paired {
			return true
		}
	}
	return false
}

// rename is what of a path was taken out and what was put in its place.
type rename struct{ from, to string }

// renamed takes off the folders and the name that the paths end in alike, then those that they
// begin with; and of a single one that is left, what it has in common with its new form.
func renamed(from, to string) rename {
	old, now := strings.Split(from, "/"), strings.Split(to, "/")
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	from, to = strings.Join(old, "/"), strings.Join(now, "/")
	if len(old) != 1 || len(now) != 1 {
		return rename{from, to}
	}
	for from != "" && to != "" && from[len(from)-1] == to[len(to)-1] {
		from, to = from[:len(from)-1], to[:len(to)-1]
	}
	for from != "" && to != "" && from[0] == to[0] {
		from, to = from[1:], to[1:]
	}
	return rename{from, to}
}

// file is a path with its results, or its findings, sorted.
type file struct {
	path    string
	indexes []int
	paired  bool
	moves   []*move
}

// newFiles are the paths with results and without an open finding, by signature.
func (m *matcher) newFiles() map[string][]*file {
	files, old := map[string]*file{}, map[string]bool{"": true}
	for i := range m.known {
		if !m.known[i].Closed {
			old[m.known[i].Path] = true
		}
	}
	for i := range m.results {
		old[m.results[i].Path] = old[m.results[i].Path] || !m.free(i)
		addTo(files, &m.results[i], i)
	}
	return bySignature(files, old, func(i int) *Evidence { return &m.results[i] })
}

// goneFiles are the paths with open findings and without a result, by signature.
func (m *matcher) goneFiles() map[string][]*file {
	files, there := map[string]*file{}, maps.Clone(m.reported)
	there[""] = true
	for i := range m.known {
		if !m.known[i].Closed {
			there[m.known[i].Path] = there[m.known[i].Path] || m.taken[i] != none
			addTo(files, &m.known[i].Evidence, i)
		}
	}
	return bySignature(files, there, func(i int) *Evidence { return &m.known[i].Evidence })
}

func addTo(files map[string]*file, e *Evidence, index int) {
	f := files[e.Path]
	if f == nil {
		f = &file{path: e.Path}
		files[e.Path] = f
	}
	f.indexes = append(f.indexes, index)
}

func bySignature(files map[string]*file, without map[string]bool, of func(int) *Evidence) map[string][]*file {
	out := map[string][]*file{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if without[path] {
			continue
		}
		f := files[path]
		slices.SortStableFunc(f.indexes, func(a, b int) int { return of(a).compare(of(b)) })
		var b strings.Builder
		for _, i := range f.indexes {
			e := of(i)
			fmt.Fprintf(&b, "%q %d %q %q %q\n", e.Rule, e.Line, e.Message, e.Snippet, e.Version)
		}
		out[b.String()] = append(out[b.String()], f)
	}
	return out
}

func (m *matcher) pairFiles(c *move) {
	for i := range c.from.indexes {
		m.pair(c.to.indexes[i], c.from.indexes[i], "")
	}
}
