package recognition

import "slices"

// alikes returns, for each of n results or findings, those at its place and those of them that look like it, itself
// included, and the lists of several that look alike.
func alikes(n int, of func(i int) Known) (samePlace, sameLook, several [][]int) {
	spots, looks := map[Evidence][]int{}, map[Known][]int{}
	samePlace, sameLook = make([][]int, n), make([][]int, n)
	for i := range n {
		e := of(i).Evidence
		spot := Evidence{Path: e.Path, Line: e.Line, Column: e.Column}
		spots[spot] = append(spots[spot], i)
	}
	for _, here := range spots {
		for _, i := range here {
			samePlace[i], sameLook[i] = here, here
			if len(here) > 1 { // a look is large, and most are alone at their places
				look := Known{Evidence: of(i).Evidence, Closed: of(i).Closed, Foreign: of(i).Foreign}
				look.IDs = "" // they join nothing
				looks[look] = append(looks[look], i)
			}
		}
	}
	for _, list := range looks {
		for _, i := range list {
			sameLook[i] = list
		}
		if len(list) > 1 {
			several = append(several, list)
		}
	}
	return samePlace, sameLook, several
}

// keepOwn exchanges findings that look alike among their results, and results that look alike among their findings, so
// that of several with equal evidence each keeps its own.
func (m *matcher) keepOwn() {
	if m.ResultFacts == nil {
		return
	}
	away := index{}
	for r := range m.ofResult {
		if k := m.ofResult[r].Known; k != none && len(m.alikeKnown[k]) > 1 && !m.home(r) {
			own := away.next(m.alikeKnown[k], m.text(r, k, m.ResultFacts(r)), m.KnownFacts, m.atHome)
			if own != none && m.agree(r, own) {
				m.join(m.taken[own], k)
				m.join(r, own)
			}
		}
	}
	clear(away)
	for _, p := range slices.Clone(m.ofResult) { // by results: the rungs give the first of equal ones the open findings
		if k := p.Known; k != none && len(m.alikeResults[m.taken[k]]) > 1 && !m.atHome(k) {
			r := m.taken[k]
			own := away.next(m.alikeResults[r], m.text(r, k, m.KnownFacts(k)), m.ResultFacts, m.home)
			if own != none && m.agree(own, k) {
				m.ofResult[r], m.ofResult[own] = m.ofResult[own], m.ofResult[r]
				m.join(r, m.ofResult[r].Known)
				m.join(own, k)
			}
		}
	}
}

// index holds those of a list that are not at home, by both texts, for each list by its first member.
type index map[int]map[string][]int

// next returns the first of a list that has a text and is not at home by now, or none.
func (x index) next(list []int, text string, factsOf func(int) Facts, home func(int) bool) int {
	away := x[list[0]]
	if away == nil {
		away = map[string][]int{}
		x[list[0]] = away
		for _, i := range without(list, home) {
			for _, of := range factsOf(i).texts() {
				away[of] = append(away[of], i)
			}
		}
	}
	for len(away[text]) > 0 {
		if i := away[text][0]; !home(i) {
			return i
		}
		away[text] = away[text][1:]
	}
	return none
}

// join makes a pair of a result and a finding, or leaves one of them without the other.
func (m *matcher) join(result, known int) {
	if result != none {
		m.ofResult[result].Result, m.ofResult[result].Known = result, known
	}
	if known != none {
		m.taken[known] = result
	}
}

// doubtTwins marks the pairs whose result could equally belong to another finding, which was decided differently or is
// new: only its decision distinguishes it from a finding without a result, or what distinguished several findings has
// changed for at least one. Those of Legacy findings have changed: their names tell them apart.
func (m *matcher) doubtTwins() {
	for _, known := range m.twins {
		m.doubtAs(known, m.problem, m.untaken(known), m.problem, m.decided, DoubtCount)
		paired := without(known, func(k int) bool { return m.taken[k] == none || m.Known[k].Legacy })
		if vary(paired, func(k int) Evidence { return *m.result(m.taken[k]) }) || vary(paired, m.atHome) {
			m.doubtAs(paired, m.problem, paired, m.problem, m.decided, DoubtPlace)
		}
		away := without(known, func(k int) bool { return m.Known[k].Legacy || m.atHome(k) })
		if m.ResultFacts != nil && vary(away, m.KnownFacts) && vary(away, m.decided) {
			for _, k := range away {
				m.doubt(m.taken[k], DoubtPlace)
			}
		}
	}
	if m.ResultFacts == nil || !slices.ContainsFunc(m.allKnown, func(k int) bool { return m.decided(k) != "" }) {
		return
	}
	for _, results := range m.copies {
		added := len(m.freeOf(results)) > 0
		away := without(results, func(r int) bool {
			return m.home(r) || !added && m.ofResult[r].Rung == Earlier
		})
		if vary(away, m.ResultFacts) && vary(away, m.decision) {
			for _, r := range away {
				m.doubt(r, DoubtPlace)
			}
		}
	}
	m.doubtAway()
}

// doubtAs marks a pair if the facts of the finding or of its result equal those of another finding with a different
// decision.
func (m *matcher) doubtAs(known []int, factsOf func(known int) Facts,
	others []int, othersFacts func(int) Facts, decision func(int) string, d Doubt) {
	all, same := map[string]int{}, map[[2]string]int{}
	for _, i := range others {
		for _, text := range othersFacts(i).texts() {
			all[text]++
			same[[2]string{text, decision(i)}]++
		}
	}
	for _, k := range known {
		for _, text := range factsOf(k).texts() {
			if all[text] > same[[2]string{text, m.decided(k)}] {
				m.doubt(m.taken[k], d)
			}
		}
	}
}

// problem returns the facts of a finding and its job: those of several jobs may be one problem.
func (m *matcher) problem(known int) Facts { return m.ofJob(known, m.KnownFacts(known)) }

func (m *matcher) ofJob(known int, f Facts) Facts {
	return Facts{f.Lines + m.Job(known), f.Distances + m.Job(known)}
}

// vary reports whether those in the list differ in something.
func vary[T comparable](list []int, of func(i int) T) bool {
	return slices.ContainsFunc(list, func(i int) bool { return of(i) != of(list[0]) })
}

func (m *matcher) decided(known int) string { return m.Known[known].Decision }

// decision returns the decision about the finding of a result.
func (m *matcher) decision(result int) string {
	if m.free(result) {
		return ""
	}
	return m.decided(m.ofResult[result].Known)
}

// doubtAway marks the pairs of decided findings that are not at home, if a similar finding has the facts of the result,
// or a similar result those of the finding, and another decision. Pairs that stay count only at the same place. Those
// by name are not marked: an earlier version did not store all facts.
func (m *matcher) doubtAway() {
	known, results, away := map[Evidence][]int{}, map[Evidence][]int{}, map[Evidence][]int{}
	moves := m.moves()
	stays := func(r int) bool {
		p := m.ofResult[r]
		return p.Rung == Unchanged || p.Rung == Earlier ||
			!m.free(r) && moves[unplaced(m.result(r))] != tooFar && moves[unplaced(m.finding(p.Known))] != tooFar
	}
	keyOf := func(e *Evidence, r int) Evidence {
		if r != none && stays(r) {
			return placed(m.result(r))
		}
		return unplaced(e)
	}
	for k, r := range m.taken {
		key := keyOf(m.finding(k), r)
		known[key] = append(known[key], k)
	}
	for r := range m.Results {
		key := keyOf(m.result(r), r)
		results[key] = append(results[key], r)
	}
	for r, p := range m.ofResult {
		if m.decision(r) == "" || p.Rung == Earlier {
			continue
		}
		is, was := m.result(r), m.finding(p.Known)
		from := placed(was) // where it would be among those that stay
		if stays(r) {
			from.Line = is.Line
		}
		keys := map[Evidence]bool{unplaced(is): true, unplaced(was): true, placed(is): true, from: true}
		similar := 0 // with the finding and its result
		for key := range keys {
			similar += len(known[key]) + len(results[key])
		}
		if similar == 2 || m.home(r) {
			continue
		}
		for key := range keys {
			away[key] = append(away[key], p.Known)
		}
	}
	factsNow := func(k int) Facts { return m.ofJob(k, m.ResultFacts(m.taken[k])) }
	for key, decided := range away {
		m.doubtAs(decided, factsNow, known[key], m.problem, m.decided, DoubtPlace)
		m.doubtAs(decided, m.KnownFacts, results[key], m.ResultFacts, m.decision, DoubtPlace)
	}
}

// doubt marks the pair of the result, if it has one that is not marked yet.
func (m *matcher) doubt(result int, d Doubt) {
	if result != none && m.ofResult[result].Doubt == "" {
		m.ofResult[result].Doubt = d
	}
}
