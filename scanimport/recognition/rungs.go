package recognition

import (
	"maps"
	"slices"
)

// unchanged pairs results and findings that agree in everything. Among those that only their lines distinguish, lines
// may agree by chance, so they count only if the smaller side is paired completely.
func unchanged(m *matcher) {
	for _, g := range m.groups(alike) {
		if m.unfinished {
			m.sort(nil, g.open)
			m.asWritten(g)
		}
		pairs := m.samePlaces(g.results, g.open)
		if len(pairs) < min(len(g.results), len(g.open)) || m.movedThere(g, pairs) {
			continue
		}
		m.pairAll(pairs)
		m.pairAll(m.samePlaces(m.freeOf(g.results), g.closed))
	}
}

// movedThere reports whether some pairs differ in the suppression, and another distance in lines makes as many pairs
// that agree in it more often: then lines have moved, and suppressed results without a finding are where findings were.
// For a single pair there must be several suppressed results: else the finding's own one is suppressed now.
func (m *matcher) movedThere(g *group, pairs []Match) bool {
	here := votes{}
	for _, p := range pairs {
		here = m.vote(here, p.Result, p.Known, 1)
	}
	if here.suppression == here.pairs || len(g.results)*len(g.open) > maxPairs {
		return false
	}
	if suppressed, _ := split(g.results, m.suppressedResult); here.pairs == 1 && len(suppressed) < 2 {
		return false
	}
	for shift, v := range m.shifts(g.results, g.open) {
		if shift != 0 && v.pairs >= here.pairs && v.suppression > here.suppression {
			return true
		}
	}
	return false
}

// asWritten pairs results with the identical findings of an import that was cut off, if each of these findings has a
// result in its place. Otherwise the import is not being repeated here, and lines may agree by chance.
func (m *matcher) asWritten(g *group) {
	written := map[int][]int{}
	for _, k := range g.open {
		if by := m.Known[k].Unfinished; m.Known[k].CutOff {
			written[by] = append(written[by], k)
		}
	}
	for _, by := range slices.Backward(slices.Sorted(maps.Keys(written))) {
		pairs := m.samePlaces(m.freeOf(g.results), written[by])
		if len(pairs) < len(written[by]) {
			continue
		}
		m.pairAll(pairs)
	}
	g.results, g.open = m.freeOf(g.results), m.untaken(g.open)
}

// spot is a place, with the masked code there.
type spot struct {
	place
	masked string
}

// atPlace and withMasked return what samePlaces compares.
var (
	atPlace    = func(e *Evidence) spot { return spot{place: placeOf(e)} }
	withMasked = func(e *Evidence) spot { return spot{placeOf(e), e.Masked} }
)

// samePlaces returns the pairs of results and findings at the same line and column, and of several there first those
// with the same masked code. Different masked code is another secret: it takes an undecided finding first, so that it
// does not get another secret's decision while the undecided finding is closed.
func (m *matcher) samePlaces(results, known []int) []Match {
	same, results, known := m.sameSpots(results, known, withMasked)
	unmasked, masked := split(results, func(r int) bool { return m.result(r).Masked == "" })
	unknown, _, known := m.sameSpots(unmasked, known, atPlace)
	first, last := split(known, func(k int) bool { return m.finding(k).Masked == "" || m.knownDecision(k) == "" })
	other, _, _ := m.sameSpots(masked, slices.Concat(first, last), atPlace)
	return slices.Concat(same, unknown, other)
}

// sameSpots pairs results and findings at the same spot, in order, and returns what is left.
func (m *matcher) sameSpots(results, known []int,
	spotOf func(e *Evidence) spot) (pairs []Match, freeResults, freeKnown []int) {
	if len(results) == 0 || len(known) == 0 {
		return nil, results, known
	}
	there, paired := make(map[spot][]int, len(known)), map[int]bool{}
	for _, k := range known {
		at := spotOf(m.finding(k))
		there[at] = append(there[at], k)
	}
	freeResults = without(results, func(r int) bool {
		at := spotOf(m.result(r))
		ks := there[at]
		if len(ks) == 0 {
			return false
		}
		pairs = append(pairs, Match{Result: r, Known: ks[0]})
		there[at], paired[ks[0]] = ks[1:], true
		return true
	})
	return pairs, freeResults, without(known, func(k int) bool { return paired[k] })
}

// earlier takes over the pairs by name, for findings without stored evidence.
func earlier(m *matcher) { m.pairAll(m.Named) }

// here pairs results and findings of the same file that agree in strong evidence: the open findings first. Among open
// and closed ones their number proves nothing: a result in the place of a closed one may be that one, and one that the
// open ones leave over is new or back.
func here(keys ...key) func(*matcher) {
	return func(m *matcher) {
		for _, k := range keys {
			inPlaceOfClosed := m.others(inPlace(at(k)), func(f *Known) bool { return f.Closed })
			likeOpen := m.others(at(k), func(f *Known) bool { return !f.Closed })
			for _, g := range m.groups(at(k)) {
				m.pairTied(g.results, g.open, inPlaceOfClosed)
				m.pairTied(g.results, g.closed, likeOpen)
			}
		}
	}
}

// elsewhere pairs results and findings of different files that agree in strong evidence, if it is unique among all
// results and unique among all open findings, or else among the closed ones. Suppressed results and the others are
// counted apart: those like the finding come first.
func elsewhere(keys ...key) func(*matcher) {
	return func(m *matcher) {
		for _, k := range keys {
			reported, open, closed := map[bool]tally{false: {}, true: {}}, tally{}, tally{}
			for i := range m.Results {
				reported[m.Results[i].Suppressed].add(k, &m.Results[i], i)
			}
			for i := range m.Known {
				if m.Known[i].Foreign {
					continue
				}
				if m.Known[i].Closed {
					closed.add(k, &m.Known[i].Evidence, i)
				} else {
					open.add(k, &m.Known[i].Evidence, i)
				}
			}
			known := closed
			maps.Copy(known, open)
			for part, f := range known {
				suppressed := m.finding(f.index).Suppressed
				r, like := reported[suppressed][part]
				other, unlike := reported[!suppressed][part]
				if !like {
					r = other
				}
				if f.once && r.once && !(m.Review && otherSubject(m.result(r.index), m.finding(f.index))) {
					m.pair(r.index, f.index, m.movedDoubt(f.index, like && unlike))
				}
			}
		}
	}
}

// movedDoubt returns the doubt about a move: a file that still has results has not moved, only its code may have.
// rival means that another result may be the finding, suppressed now or no longer.
func (m *matcher) movedDoubt(known int, rival bool) Doubt {
	switch {
	case m.reported[m.Known[known].Path]:
		return DoubtElsewhere
	case rival:
		return DoubtFile
	}
	return ""
}

// tally records for each key whether it occurs once, and where.
type tally map[Evidence]single

type single struct {
	index int
	once  bool
}

func (t tally) add(k key, e *Evidence, index int) {
	part, ok := k(e)
	if !ok {
		return
	}
	_, seen := t[part]
	t[part] = single{index, !seen}
}

// linesShifted pairs, by file, results and findings that agree in everything but the line and code that only one side
// has, if at least two pairs have the same distance: they confirm each other.
func linesShifted(m *matcher) {
	byFile := func(e *Evidence) (Evidence, bool) { return Evidence{Path: e.Path}, e.Path != "" }
	compared := m.compared()
	for _, g := range m.groups(byFile) {
		if len(g.results)*len(g.open) > maxPairs {
			continue
		}
		apart, atMost := m.alikeApart(g.results, g.open, compared), map[int]votes{}
		for shift, pairs := range apart {
			atMost[shift] = votes{pairs: len(pairs)}
		}
		pairs := func(shift int) []aligned { return m.oneToOne(apart[shift]) }
		left := func(shift int) (v votes) {
			for _, p := range pairs(shift) {
				v = m.vote(v, p.result, p.known, 1)
			}
			return v
		}
		bestFirst(atMost, left, pairs, func(best []aligned) (more bool) {
			if len(best) < 2 {
				return false
			}
			for _, p := range best {
				m.pair(p.result, p.known, lineDoubt(p))
			}
			return true
		})
	}
}

// alikeApart returns the results and findings that agree in everything compared but the line, by distance, if at least
// two have it.
func (m *matcher) alikeApart(results, known []int, compared func(*Evidence) Evidence) map[int][]aligned {
	m.sort(results, known)
	alikes := map[Evidence][]int{}
	for _, k := range known {
		part := compared(m.finding(k))
		alikes[unplaced(&part)] = append(alikes[unplaced(&part)], k)
	}
	apart := map[int][]aligned{}
	for _, r := range results {
		part := compared(m.result(r))
		for _, k := range alikes[unplaced(&part)] {
			shift := m.shift(r, k)
			apart[shift] = append(apart[shift], aligned{result: r, known: k, shift: shift})
		}
	}
	maps.DeleteFunc(apart, func(_ int, pairs []aligned) bool { return len(pairs) < 2 })
	return apart
}

// oneToOne returns, in order, the pairs that can still be made together.
func (m *matcher) oneToOne(pairs []aligned) []aligned {
	var out []aligned
	results, known := map[int]bool{}, map[int]bool{}
	for _, p := range pairs {
		if m.free(p.result) && m.taken[p.known] == none && !results[p.result] && !known[p.known] {
			results[p.result], known[p.known] = true, true
			out = append(out, p)
		}
	}
	return out
}

// sameMessage pairs results and findings with the same message in the same file if there is no code to distinguish
// them, not even on one side.
func sameMessage(m *matcher) {
	closed, open := split(m.allKnown, func(k int) bool { return m.Known[k].Closed })
	compared := m.compared()
	byMessage := func(e *Evidence) (Evidence, bool) {
		part := compared(e)
		return byMessage(&part)
	}
	for _, known := range [][]int{open, closed} {
		for _, g := range m.divide(at(byMessage), m.allResults, known) {
			m.align(g.results, slices.Concat(g.open, g.closed), lineDoubt)
		}
	}
}

// compared returns a function that removes what only one side has from evidence: the code, or the fingerprint, if in
// the file no result of the rule has it, or no finding. A scanner that begins to report code, or stops, tells nothing
// apart with it. It goes through the whole scan, so each rung calls it once.
func (m *matcher) compared() func(*Evidence) Evidence {
	type codes struct{ snippet, fingerprint bool }
	codesOf := func(list []int, of func(int) *Evidence) map[Evidence]codes {
		out := map[Evidence]codes{}
		for _, i := range list {
			e := of(i)
			c := out[ruleAt(e)]
			out[ruleAt(e)] = codes{c.snippet || e.Snippet != "", c.fingerprint || e.Fingerprint != ""}
		}
		return out
	}
	ofResults, ofKnown := codesOf(m.allResults, m.result), codesOf(m.allKnown, m.finding)
	return func(e *Evidence) Evidence {
		part, r, k := *e, ofResults[ruleAt(e)], ofKnown[ruleAt(e)]
		if !r.snippet || !k.snippet {
			part.Snippet = ""
		}
		if !r.fingerprint || !k.fingerprint {
			part.Fingerprint = ""
		}
		return part
	}
}

// lineDoubt returns the doubt about a pair without code: a single line that moved, or one that another distance fits as
// well, may be another problem of the same kind.
func lineDoubt(p aligned) Doubt {
	if p.shift == 0 && p.votes > 0 || p.votes > 1 {
		return ""
	}
	return DoubtLine
}

// window is the maximum distance in lines between a result with changed code and its finding.
const window = 20

// nearestLine pairs, by rule and file, results and findings that are each other's unique nearest. Pairs with the same
// message come first.
func nearestLine(m *matcher) {
	sayTheSame := func(e *Evidence) (Evidence, bool) {
		return Evidence{Rule: e.Rule, Path: e.Path, Package: e.Package, Message: e.Message}, true
	}
	for _, tie := range []key{sayTheSame, at(byRule)} {
		rivals := m.rivals(tie)
		for _, g := range m.groups(tie) {
			part, _ := tie(&m.Results[g.results[0]])
			m.nearest(g.results, g.open, rivals[part])
		}
	}
}

// maxPasses bounds how often nearest repeats after closer pairs were made.
const maxPasses = 8

func (m *matcher) nearest(results, known, rivals []int) {
	for range maxPasses {
		m.sort(results, known)
		if len(results) == 0 || len(known) == 0 || len(results)*len(known) > maxPairs {
			return
		}
		if len(rivals) == 0 && m.uniform(results, known) {
			m.inOrder(results, known, 1, m.pairByLine)
			return
		}
		before := m.left
		for _, r := range results {
			k, ok := only(known, func(k int) int { return m.distance(r, k) })
			if !ok || m.taken[k] != none {
				continue
			}
			nearer := func(r int) int { return m.distance(r, k) }
			if back, ok := only(slices.Concat(results, rivals), nearer); ok && back == r {
				m.pairByLine(aligned{r, k, m.shift(r, k), 1})
			}
		}
		if m.left == before {
			return
		}
		results, known = m.freeOf(results), m.untaken(known)
	}
}

// uniform reports whether all moved together, and not too far.
func (m *matcher) uniform(results, known []int) bool {
	return m.movedTogether(results, known) && apart(results, m.result) && abs(m.shift(results[0], known[0])) <= window
}

// apart reports whether no two of the sorted results, or findings, have the same line and column, so that their order
// is meaningful.
func apart(sorted []int, of func(index int) *Evidence) bool {
	for i := 1; i < len(sorted); i++ {
		if placeOf(of(sorted[i-1])) == placeOf(of(sorted[i])) {
			return false
		}
	}
	return true
}

// pairByLine leaves the doubt to markDoubts: the line alone is never certain.
func (m *matcher) pairByLine(p aligned) { m.pair(p.result, p.known, "") }

// tooFar is a distance beyond the window.
const tooFar = 1 << 40

// distance returns the distance in lines, or in columns if the lines are equal.
func (m *matcher) distance(result, known int) int {
	r, k := &m.Results[result], &m.Known[known]
	lines := abs(int(r.Line) - int(k.Line))
	if lines > window {
		return tooFar
	}
	return lines<<20 + min(abs(int(r.Column)-int(k.Column)), 1<<20-1)
}

// only returns the index with the smallest distance, if it is unique and not too far.
func only(indexes []int, distance func(int) int) (int, bool) {
	best, at, ties := tooFar, none, 0
	for _, i := range indexes {
		switch d := distance(i); {
		case d < best:
			best, at, ties = d, i, 1
		case d == best:
			ties++
		}
	}
	return at, at != none && ties == 1
}
