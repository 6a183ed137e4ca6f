package recognition

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fileMoved pairs the results of a new file with the findings of a missing one, if all of them agree in rule, line,
// message and code, and none is about another package: first if none is about another resource either. A resource may
// be named after its file and renamed with it, so pairs with another one are in doubt. If several files agree with
// several others, the most frequent rename decides: a root, a folder, a prefix.
func fileMoved(m *matcher) {
	m.filesMoved(otherSubject)
	if !m.Review {
		elsewhere := m.reportedElsewhere()
		m.filesMoved(func(r, k *Evidence) bool {
			return otherPackage(r, k) || otherSubject(r, k) && elsewhere(k, r.Path)
		})
	}
}

// reportedElsewhere returns a function that reports whether results without a finding have the finding's fingerprint or
// resource, and none of them is in the file at path: a file about another resource is not the finding's then.
func (m *matcher) reportedElsewhere() func(k *Evidence, path string) bool {
	keys := []key{byFingerprint, byResource}
	paths := map[Evidence]map[string]bool{}
	for _, r := range m.freeOf(m.allResults) {
		for _, by := range keys {
			if part, ok := by(m.result(r)); ok {
				if paths[part] == nil {
					paths[part] = map[string]bool{}
				}
				paths[part][m.result(r).Path] = true
			}
		}
	}
	return func(k *Evidence, path string) bool {
		return slices.ContainsFunc(keys, func(by key) bool {
			part, ok := by(k)
			in := paths[part]
			return ok && len(in) > 0 && !in[path]
		})
	}
}

// filesMoved pairs files of which no result and its finding are apart.
func (m *matcher) filesMoved(apart func(r, k *Evidence) bool) {
	filesApart := func(from, to *file) bool { return m.anyPair(from, to, apart) }
	candidates := possibleMoves(m.goneFiles(), m.newFiles(), filesApart)
	renames := m.renamesMade()
	for _, c := range candidates {
		renames[c.by]++
	}
	for _, c := range candidates {
		c.votes = renames[c.by]
	}
	slices.SortStableFunc(candidates, func(a, b *move) int { return b.votes - a.votes })
	for _, c := range candidates {
		if !c.to.held && !c.from.paired && !c.to.paired && (c.alone || c.votes > 1 && !c.rivalled()) {
			c.from.paired, c.to.paired = true, true
			m.pairFiles(c)
		}
	}
}

// renamesMade counts the renames of the files that are paired already.
func (m *matcher) renamesMade() map[rename]int {
	type files struct{ from, to string }
	made, renames := map[files]bool{}, map[rename]int{}
	for r := range m.ofResult {
		p := &m.ofResult[r]
		if m.free(r) || p.Rung != File {
			continue
		}
		if pair := (files{m.Known[p.Known].Path, m.result(r).Path}); !made[pair] {
			made[pair] = true
			renames[renamed(pair.from, pair.to)]++
		}
	}
	return renames
}

// maxMoves bounds the moves that are considered per file, beyond maxPairs in total: memory and time grow with the
// number of files, not with its square.
const maxMoves = 16

// possibleMoves returns the possible moves of files, the smallest groups of similar files first. If there are too many
// pairs to compare all, only files at the same position in path order are compared: changing a root, a folder or a
// prefix keeps the order. apart reports whether two files with the same signature cannot be the same file.
func possibleMoves(gone, come map[string][]*file, apart func(from, to *file) bool) []*move {
	left := maxPairs
	signatures := slices.Sorted(maps.Keys(come))
	for signature, files := range gone {
		left += maxMoves * (len(files) + len(come[signature]))
	}
	each := func(signature string) int { return len(come[signature]) * len(gone[signature]) }
	slices.SortStableFunc(signatures, func(a, b string) int { return each(a) - each(b) })
	var out []*move
	add := func(from, to *file) {
		if apart(from, to) {
			return
		}
		c := &move{from: from, to: to, by: renamed(from.path, to.path)}
		from.moves, to.moves = append(from.moves, c), append(to.moves, c)
		out = append(out, c)
	}
	for _, signature := range signatures {
		tos, froms := come[signature], gone[signature]
		if left -= each(signature); left < 0 {
			for i := range min(len(tos), len(froms)) {
				add(froms[i], tos[i])
			}
			continue
		}
		first := len(out)
		for _, to := range tos {
			for _, from := range froms {
				add(from, to)
			}
		}
		for _, c := range out[first:] {
			c.alone = len(c.from.moves) == 1 && len(c.to.moves) == 1
		}
	}
	return out
}

// move is the possible move of a file to another path.
type move struct {
	from, to *file
	by       rename
	// votes counts the moves with the same rename; alone reports that neither file has another one.
	votes int
	alone bool
}

// rivalled reports whether another move of one of the two files is as likely.
func (c *move) rivalled() bool {
	for _, o := range slices.Concat(c.from.moves, c.to.moves) {
		if o != c && o.votes == c.votes && !o.from.paired && !o.to.paired {
			return true
		}
	}
	return false
}

// rename holds the part of a path that was removed, and what replaced it.
type rename struct{ from, to string }

// renamed strips the folders and the name in which the paths end alike, then those in which they begin alike. If a
// single component is left on each side, it also strips their common prefix and suffix.
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
	// held reports that an import added the file's findings before it was cut off: it competes with other files, but is
	// not itself the new path of one.
	held  bool
	moves []*move
}

// newFiles returns the paths with results and without an open finding, by signature. Paths that an import added before
// it was cut off count as new.
func (m *matcher) newFiles() map[string][]*file {
	files, old := map[string]*file{}, map[string]bool{"": true}
	for i := range m.Known {
		if k := &m.Known[i]; !k.Closed && (m.taken[i] == none || !k.Added) {
			old[k.Path] = true
		}
	}
	for i := range m.Results {
		path := m.Results[i].Path
		old[path] = old[path] || !m.free(i) && !m.held(i)
		addTo(files, &m.Results[i], i)
		files[path].held = files[path].held || m.held(i)
	}
	return bySignature(files, old, m.result)
}

// goneFiles returns the paths with open findings and without a result, by signature.
func (m *matcher) goneFiles() map[string][]*file {
	files, occupied := map[string]*file{}, maps.Clone(m.reported)
	occupied[""] = true
	for i := range m.Known {
		if !m.Known[i].Closed && !m.Known[i].Foreign {
			occupied[m.Known[i].Path] = occupied[m.Known[i].Path] || m.taken[i] != none
			addTo(files, &m.Known[i].Evidence, i)
		}
	}
	return bySignature(files, occupied, m.finding)
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

// anyPair reports whether any pair of two files with one signature is apart.
func (m *matcher) anyPair(from, to *file, apart func(r, k *Evidence) bool) bool {
	for i := range from.indexes {
		if apart(&m.Results[to.indexes[i]], &m.Known[from.indexes[i]].Evidence) {
			return true
		}
	}
	return false
}

func (m *matcher) pairFiles(c *move) {
	for i, result := range c.to.indexes {
		known, doubt := c.from.indexes[i], Doubt("")
		if otherSubject(&m.Results[result], &m.Known[known].Evidence) {
			doubt = DoubtFile
		}
		m.pair(result, known, doubt)
	}
}
