package recognition

import (
	"cmp"
	"slices"
	"sync"
)

// group holds the indexes of the results, open findings and closed findings that agree in a key.
type group struct{ results, open, closed []int }

// groups groups everything that is not paired yet by a key.
func (m *matcher) groups(k key) []*group { return m.divide(k, m.allResults, m.allKnown) }

// divide groups those of the results and findings that are not paired yet by a key. Groups with only one side are left
// out.
func (m *matcher) divide(k key, results, known []int) []*group {
	byKey := make(map[Evidence]*group, min(m.left, len(results)))
	var out []*group
	for _, i := range results {
		if !m.free(i) {
			continue
		}
		part, ok := k(&m.Results[i])
		if !ok {
			continue
		}
		g := byKey[part]
		if g == nil {
			g = &group{}
			byKey[part], out = g, append(out, g)
		}
		g.results = append(g.results, i)
	}
	if len(out) == 0 {
		return nil
	}
	for _, i := range known {
		if m.taken[i] != none {
			continue
		}
		if part, ok := k(&m.Known[i].Evidence); !ok {
			continue
		} else if g := byKey[part]; g == nil {
			continue
		} else if m.Known[i].Closed {
			g.closed = append(g.closed, i)
		} else {
			g.open = append(g.open, i)
		}
	}
	return slices.DeleteFunc(out, func(g *group) bool { return len(g.open)+len(g.closed) == 0 })
}

// rivals returns, by key, the results that are paired with findings added by an import that was cut off.
func (m *matcher) rivals(k key) map[Evidence][]int {
	out := map[Evidence][]int{}
	for i := range m.Results {
		if part, ok := k(&m.Results[i]); ok && m.held(i) {
			out[part] = append(out[part], i)
		}
	}
	return out
}

// sort orders both sides by place, so that the order in the file does not matter. Among findings with equal evidence,
// the one that an unfinished scan wrote last comes first: that scan closed nothing, so an outdated finding may be at
// the same place.
func (m *matcher) sort(results, known []int) {
	slices.SortStableFunc(results, func(a, b int) int { return m.Results[a].compare(&m.Results[b]) })
	slices.SortStableFunc(known, func(a, b int) int {
		return cmp.Or(m.Known[a].compare(&m.Known[b].Evidence), m.Known[b].Unfinished-m.Known[a].Unfinished)
	})
}

// without returns the members of a list that are not left out.
func without(list []int, leftOut func(int) bool) []int {
	return slices.DeleteFunc(slices.Clone(list), leftOut)
}

// split divides a list into the members that meet the condition, and the others.
func split(list []int, meets func(int) bool) (those, others []int) {
	return without(list, func(i int) bool { return !meets(i) }), without(list, meets)
}

func (m *matcher) freeOf(results []int) []int {
	return without(results, func(i int) bool { return !m.free(i) })
}

func (m *matcher) untaken(known []int) []int {
	return without(known, func(i int) bool { return m.taken[i] != none })
}

// ties holds the criteria, best first, that distinguish results with the same evidence for a rung. The first is what
// tied adds to a key; see others.
var ties = []key{
	tied(byNothing),
	func(e *Evidence) (Evidence, bool) { return Evidence{Version: e.Version, Message: e.Message}, true },
	func(e *Evidence) (Evidence, bool) { return Evidence{Snippet: e.Snippet}, true },
	byNothing,
}

// pairTied pairs the two sides of a group with the same strong evidence: by further evidence in which they agree, and
// finally by their lines. other reports whether the result of a pair may be another finding, so that their number does
// not count.
func (m *matcher) pairTied(results, known []int, other func(result, known int) bool) {
	align := func(results, known []int) {
		changed := sync.OnceValue(func() bool { // once, because a group may be large
			inOrder := len(results)+len(known) == 2 || apart(results, m.result) && apart(known, m.finding)
			return !inOrder && m.mixed(results, known)
		})
		asMany := m.asMany(results, known)
		m.align(results, known, func(p aligned) Doubt {
			return m.tiedDoubt(p, asMany(p) && !other(p.result, p.known), changed)
		})
	}
	results, known = m.freeOf(results), m.untaken(known)
	if len(results) == 1 && len(known) == 1 {
		align(results, known) // the usual case, for which each tie gives this pair
		return
	}
	for _, tie := range ties {
		for _, g := range m.divide(tie, results, known) {
			align(g.results, slices.Concat(g.open, g.closed))
		}
	}
}

// others returns a function that reports for a pair whether one of some findings, paired or not, agrees with the result
// in the key. If the two also agree in what tied adds, the finding must agree in that, too.
func (m *matcher) others(k key, some func(*Known) bool) func(result, known int) bool {
	having := func(k key) func(*Evidence) bool {
		parts := sync.OnceValue(func() map[Evidence]bool { // most scans do not ask
			out := map[Evidence]bool{}
			for i := range m.Known {
				if part, ok := k(m.finding(i)); ok && some(&m.Known[i]) {
					out[part] = true
				}
			}
			return out
		})
		return func(e *Evidence) bool {
			part, _ := k(e)
			return parts()[part]
		}
	}
	agrees, agreesTied := having(k), having(tied(k))
	return func(result, known int) bool {
		if m.mixed([]int{result}, []int{known}) {
			return agrees(m.result(result))
		}
		return agreesTied(m.result(result))
	}
}

// asMany returns a function that reports for a pair whether there are as many results as findings. Suppressed results
// do not count if there are more of them than suppressed findings, because those suppressed from the beginning have no
// finding. But then other pairs must confirm the pair, since a finding may have become a suppressed result just now;
// and it must not be of a suppressed finding, nor of one with a suppressed result at its place.
func (m *matcher) asMany(results, known []int) func(aligned) bool {
	if len(results) == len(known) {
		return func(aligned) bool { return true }
	}
	suppressed, others := split(results, m.suppressedResult)
	if len(results) < len(known) || len(others) != len(without(known, m.suppressedFinding)) {
		return func(aligned) bool { return false }
	}
	at := map[place]bool{}
	for _, r := range suppressed {
		at[placeOf(m.result(r))] = true
	}
	return func(p aligned) bool {
		return p.votes > 1 && !m.suppressedFinding(p.known) && !at[placeOf(m.finding(p.known))]
	}
}

func (m *matcher) suppressedResult(i int) bool  { return m.Results[i].Suppressed }
func (m *matcher) suppressedFinding(i int) bool { return m.Known[i].Suppressed }

// tiedDoubt returns the doubt about a pair that pairTied made. With asMany, results and findings are equal in number,
// which proves nothing if two distances fit equally well. changed reports whether several are at one place and have
// changed, so that their order proves nothing. A place that is not in a file is not enough by itself.
func (m *matcher) tiedDoubt(p aligned, asMany bool, changed func() bool) Doubt {
	r, k := &m.Results[p.result], &m.Known[p.known]
	switch {
	case changed():
		return DoubtPlace
	case m.rung == Resource && r.Path == "" && r.Message != k.Message && !r.hasCode():
		return DoubtMessage
	case asMany && p.votes > 0 || placeOf(r) == placeOf(&k.Evidence) || p.shift != 0 && p.votes > 1:
		return ""
	default:
		return DoubtCount
	}
}

// mixed reports whether the members differ in the best tie.
func (m *matcher) mixed(results, known []int) bool {
	first, _ := ties[0](&m.Results[results[0]])
	differs := func(e *Evidence) bool {
		part, _ := ties[0](e)
		return part != first
	}
	return slices.ContainsFunc(results, func(i int) bool { return differs(&m.Results[i]) }) ||
		slices.ContainsFunc(known, func(i int) bool { return differs(&m.Known[i].Evidence) })
}

// aligned is a pair made by lines, with how many lines it is apart, and how many pairs of the group have the same
// distance: 0 if another distance fits as well.
type aligned struct {
	result, known, shift, votes int
}

// maxPairs bounds the pairs of lines to compare in one group.
const maxPairs = 250_000

// align pairs results and findings that only their lines distinguish: first those that moved by the same number of
// lines, or not at all, then in order if both sides have the same size, then the nearest. The smaller side is paired
// completely.
func (m *matcher) align(results, known []int, doubt func(aligned) Doubt) {
	pair := func(p aligned) { m.pair(p.result, p.known, doubt(p)) }
	m.sort(results, known)
	if len(results) == 1 && len(known) == 1 {
		m.inOrder(results, known, 1, pair)
		return
	}
	if len(results)*len(known) > maxPairs {
		m.alignMany(results, known, pair)
		return
	}
	tally := m.shifts(results, known)
	left := func(shift int) votes { return tally[shift] }
	pairs := func(shift int) []aligned { return m.shifted(results, known, shift) }
	bestFirst(tally, left, pairs, func(best []aligned) (more bool) {
		first := best[0]
		confirmed := first.votes > 1 || first.votes == 1 && first.shift == 0
		if !confirmed && m.asManyInOrder(results, known, first.votes, pair) {
			m.align(m.freeOf(results), m.untaken(known), doubt) // suppressed ones may be left
			return false
		}
		for _, p := range best {
			pair(p)
		}
		results, known = m.withdraw(tally, results, known)
		return true
	})
}

// alignMany is align for too many results and findings to count all distances: they are paired in order if all moved by
// the same number of lines, else first those at their places. The others are paired in order, with no votes unless they
// moved together.
func (m *matcher) alignMany(results, known []int, pair func(aligned)) {
	if !m.movedTogether(results, known) {
		for _, p := range m.samePlaces(results, known) {
			pair(aligned{result: p.Result, known: p.Known, votes: 1})
		}
		results, known = m.freeOf(results), m.untaken(known)
	}
	votes := 0
	if m.movedTogether(results, known) {
		votes = len(results)
	}
	m.inOrder(results, known, votes, pair)
}

// movedTogether reports whether there are as many results as findings, two or more, and all have the same distance in
// lines and are in the same columns. Both sides are sorted.
func (m *matcher) movedTogether(results, known []int) bool {
	if len(results) != len(known) || len(results) < 2 {
		return false
	}
	for i := range results {
		if m.shift(results[i], known[i]) != m.shift(results[0], known[0]) ||
			m.result(results[i]).Column != m.finding(known[i]).Column {
			return false
		}
	}
	return true
}

// asManyInOrder pairs both sides in order if they have the same size: first those that are not suppressed, because
// there may be suppressed results without a finding. It reports whether it has paired any.
func (m *matcher) asManyInOrder(results, known []int, votes int, pair func(aligned)) bool {
	others, othersKnown := without(results, m.suppressedResult), without(known, m.suppressedFinding)
	if len(others) > 0 && len(others) == len(othersKnown) {
		results, known = others, othersKnown
	}
	if len(results) != len(known) {
		return false
	}
	m.inOrder(results, known, votes, pair)
	return true
}

func (m *matcher) shift(result, known int) int {
	return int(m.Results[result].Line) - int(m.Known[known].Line)
}

// moves returns by how many lines those that are alike moved. It is tooFar if they did not all move equally, or if
// that is uncertain: a result where another finding was, without the facts of its own finding, may be that other one,
// unmoved.
func (m *matcher) moves() map[Evidence]int {
	moves, were := map[Evidence]int{}, map[Evidence]bool{}
	for k := range m.Known {
		were[placed(m.finding(k))] = true
	}
	add := func(e *Evidence, by int) {
		part := unplaced(e)
		if others, seen := moves[part]; seen && others != by {
			by = tooFar
		}
		moves[part] = by
	}
	for k, r := range m.taken {
		if r == none {
			if !m.Known[k].Closed {
				add(m.finding(k), tooFar)
			}
			continue
		}
		by := m.shift(r, k)
		if m.result(r).Column != m.finding(k).Column || by != 0 && were[placed(m.result(r))] && !m.home(r) {
			by = tooFar
		}
		add(m.result(r), by)
		add(m.finding(k), by)
	}
	for _, r := range m.freeOf(m.allResults) {
		add(m.result(r), tooFar)
	}
	return moves
}

// votes counts the pairs with one distance in lines, those of them that are suppressed on both sides or on neither, and
// those that also have the same column.
type votes struct{ pairs, suppression, columns int }

// candidate is a distance with its votes.
type candidate struct {
	shift int
	votes
}

// vote adds a pair n times.
func (m *matcher) vote(v votes, result, known, n int) votes {
	v.pairs += n
	if m.Results[result].Suppressed == m.Known[known].Suppressed {
		v.suppression += n
	}
	if m.Results[result].Column == m.Known[known].Column {
		v.columns += n
	}
	return v
}

// shifts counts the pairs by their distance in lines.
func (m *matcher) shifts(results, known []int) map[int]votes {
	tally := map[int]votes{}
	for _, r := range results {
		for _, k := range known {
			shift := m.shift(r, k)
			tally[shift] = m.vote(tally[shift], r, k, 1)
		}
	}
	return tally
}

// withdraw subtracts the pairs that were made from the tally, and returns what is left to pair. Counting again after
// each shift would take too long.
func (m *matcher) withdraw(tally map[int]votes, results, known []int) (freeResults, freeKnown []int) {
	freeResults, freeKnown = m.freeOf(results), m.untaken(known)
	subtract := func(r, k int) {
		shift := m.shift(r, k)
		tally[shift] = m.vote(tally[shift], r, k, -1)
	}
	for _, r := range results {
		if !m.free(r) {
			for _, k := range known {
				subtract(r, k)
			}
		}
	}
	for _, k := range known {
		if m.taken[k] != none {
			for _, r := range freeResults {
				subtract(r, k)
			}
		}
	}
	return freeResults, freeKnown
}

// bestFirst calls do with the pairs of each shift, until do returns false. The shift with the most votes comes first,
// among equals the one that agrees more often in the suppression, then in the columns, then the smallest. left returns
// the current votes of a shift, since do may take some away; atMost holds their upper bounds. pairs returns the pairs
// that can still be made. If another shift is equal in all votes for one of these results or findings, or would leave
// as many where they were and only suppress some, nothing confirms them: they get no votes, unless all are where they
// were.
func bestFirst(atMost map[int]votes, left func(shift int) votes, pairs func(shift int) []aligned,
	do func(best []aligned) (more bool)) {
	levels, most := map[int][]int{}, 0
	for shift, v := range atMost {
		levels[v.pairs] = append(levels[v.pairs], shift)
		most = max(most, v.pairs)
	}
	for n := most; n > 0; n-- {
		level, made := make([]candidate, len(levels[n])), map[int][]aligned{}
		for i, shift := range levels[n] {
			level[i] = candidate{shift, left(shift)}
		}
		pairsOf := func(shift int) []aligned { // they stay the same as long as the shift has n votes
			if made[shift] == nil {
				made[shift] = pairs(shift)
			}
			return made[shift]
		}
		slices.SortFunc(level, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.suppression, a.suppression), cmp.Compare(b.columns, a.columns),
				cmp.Compare(abs(a.shift), abs(b.shift)), cmp.Compare(a.shift, b.shift))
		})
		for i, c := range level {
			if now := left(c.shift).pairs; now < n {
				levels[now] = append(levels[now], c.shift)
				continue
			}
			best := pairsOf(c.shift)
			rivals := func(other candidate) bool {
				return other.suppression == c.suppression && other.columns == c.columns &&
					left(other.shift).pairs == n && overlap(best, pairsOf(other.shift))
			}
			tied := n > 1 && (c.shift != 0 || c.columns < n) && slices.ContainsFunc(level[i+1:], rivals)
			if c.shift != 0 && atMost[0].pairs >= len(best) && !tied { // left is not asked in vain
				here := left(0) // they may be where they were, and some are suppressed now
				tied = here.pairs >= len(best) && here.suppression < here.pairs && overlap(best, pairsOf(0))
			}
			for j := range best {
				best[j].votes = len(best)
				if tied {
					best[j].votes = 0
				}
			}
			if !do(best) {
				return
			}
		}
	}
}

// overlap reports whether two lists of pairs have a result or a finding in common.
func overlap(a, b []aligned) bool {
	results, known := map[int]bool{}, map[int]bool{}
	for _, p := range a {
		results[p.result], known[p.known] = true, true
	}
	return slices.ContainsFunc(b, func(p aligned) bool { return results[p.result] || known[p.known] })
}

// shifted returns the pairs of results and findings with that distance in lines, by equal columns, else in order. One
// result and two findings on a line make one.
func (m *matcher) shifted(results, known []int, shift int) []aligned {
	byLine := map[int][]int{}
	for _, k := range known {
		line := int(m.Known[k].Line) + shift
		byLine[line] = append(byLine[line], k)
	}
	var pairs []aligned
	for _, r := range results {
		line := int(m.Results[r].Line)
		if ks := byLine[line]; len(ks) > 0 {
			sameColumn := func(k int) bool { return m.Known[k].Column == m.Results[r].Column }
			at := max(0, slices.IndexFunc(ks, sameColumn))
			pairs = append(pairs, aligned{result: r, known: ks[at], shift: shift})
			byLine[line] = slices.Delete(slices.Clone(ks), at, at+1)
		}
	}
	return pairs
}

func (m *matcher) inOrder(results, known []int, votes int, pair func(aligned)) {
	for i := range min(len(results), len(known)) {
		pair(aligned{results[i], known[i], m.shift(results[i], known[i]), votes})
	}
}

func abs(n int) int { return max(n, -n) }
