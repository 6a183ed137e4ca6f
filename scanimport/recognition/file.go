package recognition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fileMoved pairs the results of a new file with the findings of a missing one, if all of them agree in rule, line,
// message and code, and none is about another package: first if none is about another resource either. Suppressed
// results may be left over, because one that was suppressed when it was first reported has no finding. A resource may
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
	gone, come := m.goneFiles(), m.newFiles()
	m.leaveOutSuppressed(come, gone)
	candidates := possibleMoves(gone, come, func(c *move) bool { return m.anyPair(c, apart) })
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
func possibleMoves(gone, come map[string][]*file, apart func(*move) bool) []*move {
	left := maxPairs
	signatures := slices.Sorted(maps.Keys(come))
	for signature, files := range gone {
		left += maxMoves * (len(files) + len(come[signature]))
	}
	each := func(signature string) int { return len(come[signature]) * len(gone[signature]) }
	slices.SortStableFunc(signatures, func(a, b string) int { return each(a) - each(b) })
	var out []*move
	add := func(from, to *file, alone bool) {
		c := &move{from: from, to: to, by: renamed(from.path, to.path), alone: alone}
		if apart(c) {
			return
		}
		from.moves, to.moves = append(from.moves, c), append(to.moves, c)
		out = append(out, c)
	}
	for _, signature := range signatures {
		tos, froms := come[signature], gone[signature]
		if left -= each(signature); left < 0 {
			for i := range min(len(tos), len(froms)) {
				add(froms[i], tos[i], false)
			}
			continue
		}
		for _, to := range tos {
			for _, from := range froms {
				add(from, to, true)
			}
		}
	}
	for _, c := range out {
		c.alone = c.alone && len(c.from.moves) == 1 && len(c.to.moves) == 1
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

// results returns those of the new file that agree with the findings of the old one, in the same order.
func (c *move) results() []int {
	if part, ok := c.to.parts[c.from.signature]; ok {
		return part
	}
	return c.to.indexes
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
	// signature is equal for files that agree in what fileMoved compares. parts holds further ones of a new file, each
	// with the results that have it: all but some suppressed ones.
	signature string
	parts     map[string][]int
	paired    bool
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
		f.signature = signatureOf(f.indexes, of)
		out[f.signature] = append(out[f.signature], f)
	}
	return out
}

func signatureOf(indexes []int, of func(int) *Evidence) string {
	var b strings.Builder
	for _, i := range indexes {
		e := of(i)
		fmt.Fprintf(&b, "%q %d %q %q %q\n", e.Rule, e.Line, e.Message, e.Snippet, e.Version)
	}
	return b.String()
}

// leaveOutSuppressed adds new files to the signatures that they have without suppressed results that had no finding:
// all unsuppressed results agree with the unsuppressed findings of a missing file, and its suppressed findings, also in
// the column, with suppressed results.
func (m *matcher) leaveOutSuppressed(come, gone map[string][]*file) {
	if !slices.ContainsFunc(m.Results, func(r Evidence) bool { return r.Suppressed }) {
		return
	}
	missing := byUnsuppressed(gone, m.finding)
	for signature, files := range byUnsuppressed(come, m.result) {
		if len(files)*len(missing[signature]) > maxPairs {
			continue
		}
		for _, to := range files {
			for _, from := range missing[signature] {
				part := m.explained(to, from)
				if len(part) == 0 || len(part) == len(to.indexes) || to.parts[from.signature] != nil {
					continue
				}
				if to.parts == nil {
					to.parts = map[string][]int{}
				}
				to.parts[from.signature] = part
				come[from.signature] = append(come[from.signature], to)
			}
		}
	}
	for _, files := range come {
		slices.SortFunc(files, func(a, b *file) int { return cmp.Compare(a.path, b.path) })
	}
}

// byUnsuppressed returns the files by the signature that they have without anything suppressed.
func byUnsuppressed(files map[string][]*file, of func(int) *Evidence) map[string][]*file {
	out := map[string][]*file{}
	for _, list := range files {
		for _, f := range list {
			signature := signatureOf(without(f.indexes, func(i int) bool { return of(i).Suppressed }), of)
			out[signature] = append(out[signature], f)
		}
	}
	return out
}

// explained returns the results of a new file without the suppressed ones that no suppressed finding of a missing file
// explains; nil if one of these findings explains none.
func (m *matcher) explained(to, from *file) []int {
	partOf := func(e *Evidence) Evidence {
		return Evidence{
			Rule: e.Rule, Line: e.Line, Column: e.Column, Message: e.Message, Snippet: e.Snippet, Version: e.Version,
		}
	}
	known := map[Evidence]int{}
	for _, k := range from.indexes {
		if e := m.finding(k); e.Suppressed {
			known[partOf(e)]++
		}
	}
	part := without(to.indexes, func(r int) bool {
		e := m.result(r)
		if e.Suppressed {
			known[partOf(e)]--
		}
		return e.Suppressed && known[partOf(e)] < 0
	})
	if len(part) != len(from.indexes) {
		return nil
	}
	return part
}

// anyPair reports whether any pair of the move is apart.
func (m *matcher) anyPair(c *move, apart func(r, k *Evidence) bool) bool {
	for i, result := range c.results() {
		if apart(m.result(result), m.finding(c.from.indexes[i])) {
			return true
		}
	}
	return false
}

func (m *matcher) pairFiles(c *move) {
	for i, result := range c.results() {
		known, doubt := c.from.indexes[i], Doubt("")
		if otherSubject(&m.Results[result], &m.Known[known].Evidence) {
			doubt = DoubtFile
		}
		m.pair(result, known, doubt)
	}
}
