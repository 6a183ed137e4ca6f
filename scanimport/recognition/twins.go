package recognition

import "slices"

// alikes returns, for each of n results or findings, those at its place and those of them that look like it, itself
// included, and the lists of several that look alike.
func alikes(n int, of func(i int) Known) (at, alike, several [][]int) {
	type spot struct {
		path string
		place
	}
	spots, looks := map[spot][]int{}, map[Known][]int{}
	at, alike = make([][]int, n), make([][]int, n)
	for i := range n {
		e := of(i).Evidence
		s := spot{e.Path, placeOf(&e)}
		spots[s] = append(spots[s], i)
	}
	for _, here := range spots {
		for _, i := range here {
			at[i], alike[i] = here, here
			if len(here) > 1 { // a look is large, and most are alone at their places
				look := Known{Evidence: of(i).Evidence, Closed: of(i).Closed, Foreign: of(i).Foreign}
				look.IDs = "" // they join nothing
				looks[look] = append(looks[look], i)
			}
		}
	}
	for _, list := range looks {
		for _, i := range list {
			alike[i] = list
		}
		if len(list) > 1 {
			several = append(several, list)
		}
	}
	return at, alike, several
}

// keepOwn exchanges findings that look alike among their results, and results that look alike among their findings, so
// that of several with equal evidence each keeps its own.
func (m *matcher) keepOwn() {
	if m.ResultFacts == nil {
		return
	}
	away := index{}
	for r := range m.ofResult {
		k := m.ofResult[r].Known
		if k == none || len(m.alikeKnown[k]) < 2 || m.home(r) {
			continue
		}
		own := away.next(m.alikeKnown[k], m.text(r, k, m.ResultFacts(r)), m.KnownFacts, m.atHome)
		if own != none && m.agree(r, own) {
			m.join(m.taken[own], k)
			m.join(r, own)
		}
	}
	clear(away)
	for _, p := range slices.Clone(m.ofResult) { // by results: the first ones have open findings
		k := p.Known
		if k == none || len(m.alikeResults[m.taken[k]]) < 2 || m.atHome(k) {
			continue
		}
		r := m.taken[k]
		own := away.next(m.alikeResults[r], m.text(r, k, m.KnownFacts(k)), m.ResultFacts, m.home)
		if own != none && m.agree(own, k) {
			m.ofResult[r], m.ofResult[own] = m.ofResult[own], m.ofResult[r]
			m.join(r, m.ofResult[r].Known)
			m.join(own, k)
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
		for _, i := range slices.DeleteFunc(slices.Clone(list), home) {
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

// doubtTwins marks the pairs whose result may as well be that of another finding, which was decided differently or is
// new: nothing but a decision tells it apart from one without a result, or what told several apart has changed, if only
// of some.
func (m *matcher) doubtTwins() {
	for _, known := range m.twins {
		m.doubtAs(known, m.untaken(known), m.KnownFacts, DoubtCount)
	}
	if m.ResultFacts == nil {
		return
	}
	for _, known := range m.twins {
		home := slices.DeleteFunc(slices.Clone(known), func(k int) bool { return !m.atHome(k) })
		away := slices.DeleteFunc(slices.Clone(known), func(k int) bool { return m.Known[k].Legacy || m.atHome(k) })
		m.doubtAs(home, away, m.KnownFacts, DoubtPlace)
		m.doubtAs(away, home, m.KnownFacts, DoubtPlace)
		m.doubtAs(away, home, m.factsNow, DoubtPlace)
		if vary(away, m.KnownFacts) && vary(away, func(k int) string { return m.Known[k].Decision }) {
			for _, k := range away {
				m.doubt(m.taken[k], DoubtPlace)
			}
		}
	}
	for _, results := range m.copies {
		away := slices.DeleteFunc(slices.Clone(results), m.home)
		if vary(away, m.ResultFacts) && vary(away, m.decision) {
			for _, r := range away {
				m.doubt(r, DoubtPlace)
			}
		}
	}
	m.doubtReturned()
}

// doubtAs marks the pairs of findings if their facts, or those of their results, are those of one of the others that
// belongs to the same job and was decided differently.
func (m *matcher) doubtAs(known, others []int, factsOf func(known int) Facts, d Doubt) {
	all, same := map[[2]string]int{}, map[[3]string]int{}
	for _, k := range others {
		for _, text := range m.KnownFacts(k).texts() {
			all[[2]string{text, m.Job(k)}]++
			same[[3]string{text, m.Job(k), m.Known[k].Decision}]++
		}
	}
	for _, k := range known {
		for _, text := range factsOf(k).texts() {
			if all[[2]string{text, m.Job(k)}] > same[[3]string{text, m.Job(k), m.Known[k].Decision}] {
				m.doubt(m.taken[k], d)
			}
		}
	}
}

// factsNow returns the facts of the finding's result.
func (m *matcher) factsNow(known int) Facts {
	if m.taken[known] == none {
		return Facts{}
	}
	return m.ResultFacts(m.taken[known])
}

// vary reports whether those in the list differ in something.
func vary[T comparable](list []int, of func(i int) T) bool {
	return slices.ContainsFunc(list, func(i int) bool { return of(i) != of(list[0]) })
}

// decision returns the decision about the finding of a result.
func (m *matcher) decision(result int) string {
	if m.free(result) {
		return ""
	}
	return m.Known[m.ofResult[result].Known].Decision
}

// doubtReturned marks the pairs of decided findings that are not at home if a finding without a result, closed or at
// another line maybe, has the facts of the result and another decision.
func (m *matcher) doubtReturned() {
	left, away := map[Evidence][]int{}, map[Evidence][]int{}
	for _, k := range m.untaken(m.allKnown) {
		part, _ := alike(m.finding(k))
		left[part] = append(left[part], k)
	}
	for r, p := range m.ofResult {
		if m.decision(r) == "" {
			continue
		}
		for _, e := range []*Evidence{m.result(r), m.finding(p.Known)} {
			if part, _ := alike(e); len(left[part]) > 0 && !m.home(r) {
				away[part] = append(away[part], p.Known)
			}
		}
	}
	for part, known := range away {
		m.doubtAs(known, left[part], m.factsNow, DoubtPlace)
	}
}

// doubt marks the pair of the result, if it has one that is not marked yet.
func (m *matcher) doubt(result int, d Doubt) {
	if result != none && m.ofResult[result].Doubt == "" {
		m.ofResult[result].Doubt = d
	}
}
