package recognition

import (
	"cmp"
	"maps"
	"slices"
)

// look is the evidence by which findings, or results, are told apart: all but the ids, which join nothing.
type look struct {
	Evidence
	foreign bool
}

func (m *matcher) lookOfResult(result int) look {
	e := m.Results[result]
	e.IDs = ""
	return look{Evidence: e}
}

func (m *matcher) lookOfKnown(known int) look {
	k := &m.Known[known]
	e := k.Evidence
	e.IDs = ""
	return look{e, k.Foreign}
}

// spot is a place in a file.
type spot struct {
	path string
	place
}

func spotOf(e *Evidence) spot { return spot{e.Path, placeOf(e)} }

// alikes lists, of n results or findings, those that look like another one.
func alikes(n int, of func(i int) *Evidence, lookOf func(i int) look) [][]int {
	spots, lists := make(map[spot]int, n), map[look][]int{}
	for i := range n {
		spots[spotOf(of(i))]++
	}
	for i := range n {
		if spots[spotOf(of(i))] > 1 { // a look is large, and most are alone at their places
			lists[lookOf(i)] = append(lists[lookOf(i)], i)
		}
	}
	maps.DeleteFunc(lists, func(_ look, list []int) bool { return len(list) < 2 })
	return slices.SortedFunc(maps.Values(lists), func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
}

// atHome reports whether the finding is paired with a result that has the same facts: its own. Others are away.
func (m *matcher) atHome(known int) bool {
	r := m.taken[known]
	return r != none && m.agree(r, known)
}

// keepOwn exchanges findings that look alike among their results, and results that look alike among their findings, so
// that of several with equal evidence each keeps its own.
func (m *matcher) keepOwn() {
	if m.ResultFacts == nil {
		return
	}
	for _, known := range m.twins {
		m.keepFindings(known)
	}
	for _, results := range m.copies {
		m.keepResults(results)
	}
}

// keepFindings gives results their own findings.
func (m *matcher) keepFindings(known []int) {
	var results []int
	away := [2]map[string][]int{{}, {}} // by whether they are closed, and facts
	for _, k := range known {
		if m.atHome(k) {
			continue
		}
		m.KnownFacts(k).add(away[closedIndex(&m.Known[k])], k)
		if m.taken[k] != none {
			results = append(results, m.taken[k])
		}
	}
	for _, r := range results {
		state := closedIndex(&m.Known[m.ofResult[r].Known])
		for _, facts := range m.ResultFacts(r).distinct() {
			for !m.atHome(m.ofResult[r].Known) {
				own := next(away[state], facts, func(k int) bool { return m.agree(r, k) })
				if own == none {
					break
				}
				if !m.atHome(own) {
					m.exchange(m.ofResult[r].Known, own)
				}
			}
		}
	}
}

func closedIndex(k *Known) int {
	if k.Closed {
		return 1
	}
	return 0
}

// exchange exchanges two findings; the second may have no result.
func (m *matcher) exchange(a, b int) {
	m.taken[a], m.taken[b] = m.taken[b], m.taken[a]
	for _, k := range []int{a, b} {
		if r := m.taken[k]; r != none {
			m.ofResult[r].Known = k
		}
	}
}

// keepResults gives findings their own results.
func (m *matcher) keepResults(results []int) {
	home := func(r int) bool { return !m.free(r) && m.atHome(m.ofResult[r].Known) }
	away := map[string][]int{} // by facts
	for _, r := range results {
		if !home(r) {
			m.ResultFacts(r).add(away, r)
		}
	}
	for _, r := range results {
		for !m.free(r) && !home(r) {
			k, own := m.ofResult[r].Known, none
			for _, facts := range m.KnownFacts(k).distinct() {
				if own == none {
					own = next(away, facts, func(r int) bool { return m.agree(r, k) })
				}
			}
			if own == none {
				break
			}
			if !home(own) {
				m.exchangeResults(r, own)
			}
		}
	}
}

// exchangeResults exchanges two results; the second may have no finding.
func (m *matcher) exchangeResults(a, b int) {
	m.ofResult[a], m.ofResult[b] = m.ofResult[b], m.ofResult[a]
	for _, r := range []int{a, b} {
		if p := &m.ofResult[r]; !m.free(r) {
			p.Result, m.taken[p.Known] = r, r
		}
	}
}

// doubtTwins marks the pairs whose finding nothing but a decision tells apart from one that has no result, and those of
// which the facts that told several apart have changed: the result may be either.
func (m *matcher) doubtTwins() {
	for _, known := range m.twins {
		m.doubtLeft(known)
		if m.ResultFacts != nil {
			open, closed := m.byState(known)
			m.doubtChanged(open)
			m.doubtChanged(closed)
		}
	}
	if m.ResultFacts != nil {
		for _, results := range m.copies {
			m.doubtAdded(results)
		}
	}
	m.doubtReturned()
}

func (m *matcher) byState(known []int) (open, closed []int) {
	for _, k := range known {
		if m.Known[k].Closed {
			closed = append(closed, k)
		} else {
			open = append(open, k)
		}
	}
	return open, closed
}

// several stands for different decisions.
const several = "several"

// problem is the same for findings of one job that agree in all facts.
type problem struct {
	facts, job string
	closed     bool
}

// facts returns the texts about a finding and its job; empty ones if nobody compares them.
func (m *matcher) facts(known int) (Facts, string) {
	if m.KnownFacts == nil {
		return Facts{}, ""
	}
	return m.KnownFacts(known), m.Job(known)
}

// decisionsLeft returns the decisions about those of the findings that have no result.
func (m *matcher) decisionsLeft(known []int) map[problem]string {
	decisions := map[problem]string{}
	for _, k := range m.untaken(known) {
		facts, job := m.facts(k)
		for _, text := range facts.distinct() {
			twin, decision := problem{text, job, m.Known[k].Closed}, m.Known[k].Decision
			if other, there := decisions[twin]; there && other != decision {
				decision = several
			}
			decisions[twin] = decision
		}
	}
	return decisions
}

// doubtLeft marks the pairs of findings that have a twin without a result and with another decision. A closed one is a
// twin of an open one if the result agrees with it, and not with the open one, in all facts.
func (m *matcher) doubtLeft(known []int) {
	decisions := m.decisionsLeft(known)
	for _, k := range known {
		facts, job := m.facts(k)
		decision, there := decisions[problem{facts.Lines, job, m.Known[k].Closed}]
		if there && decision != m.Known[k].Decision {
			m.doubt(k, DoubtCount)
		}
		m.doubtIfOther(k, decisions, true)
	}
}

// doubtIfOther marks the pair of a finding that does not agree in all facts, if the result agrees with an open, or a
// closed, finding without a result that has another decision.
func (m *matcher) doubtIfOther(known int, decisions map[problem]string, closed bool) {
	r := m.taken[known]
	if r == none || len(decisions) == 0 || m.ResultFacts == nil || m.atHome(known) {
		return
	}
	for _, text := range m.ResultFacts(r).distinct() {
		decision, there := decisions[problem{text, m.Job(known), closed}]
		if there && decision != m.Known[known].Decision {
			m.doubt(known, DoubtPlace)
		}
	}
}

// doubtReturned does the same for decided findings whose twin stayed at another line when the code moved.
func (m *matcher) doubtReturned() {
	if m.ResultFacts == nil {
		return
	}
	left := map[Evidence][]int{}
	for _, k := range m.untaken(m.allKnown) {
		part, _ := alike(m.finding(k))
		left[part] = append(left[part], k)
	}
	decisions := map[Evidence]map[problem]string{}
	for r, p := range m.ofResult {
		if len(left) == 0 || m.free(r) || p.Doubt != "" || m.Known[p.Known].Decision == "" {
			continue
		}
		part, _ := alike(m.result(r))
		if len(left[part]) > 0 && decisions[part] == nil && !m.atHome(p.Known) {
			decisions[part] = m.decisionsLeft(left[part])
		}
		m.doubtIfOther(p.Known, decisions[part], false)
		m.doubtIfOther(p.Known, decisions[part], true)
	}
}

// doubtChanged marks the pairs that do not agree in all facts, if another finding without its own result has other
// facts and another decision.
func (m *matcher) doubtChanged(known []int) {
	away := slices.DeleteFunc(known, func(k int) bool { return m.Known[k].Legacy || m.atHome(k) })
	facts, decisions, both := map[string]int{}, map[string]int{}, map[[2]string]int{}
	for _, k := range away {
		is, decision := m.KnownFacts(k).Lines, m.Known[k].Decision
		facts[is]++
		decisions[decision]++
		both[[2]string{is, decision}]++
	}
	for _, k := range away {
		is, decision := m.KnownFacts(k).Lines, m.Known[k].Decision
		if len(away)-facts[is]-decisions[decision]+both[[2]string{is, decision}] > 0 {
			m.doubt(k, DoubtPlace)
		}
	}
}

// doubtAdded marks the pairs of decided findings that do not agree in all facts, if a result without a finding has
// other facts than theirs.
func (m *matcher) doubtAdded(results []int) {
	left := map[string]bool{}
	for _, r := range m.freeOf(results) {
		left[m.ResultFacts(r).Lines] = true
	}
	for _, r := range results {
		if len(left) == 0 || m.free(r) {
			continue
		}
		k := m.ofResult[r].Known
		if other := len(left) > 1 || !left[m.ResultFacts(r).Lines]; other && m.Known[k].Decision != "" && !m.atHome(k) {
			m.doubt(k, DoubtPlace)
		}
	}
}

// doubt marks the pair of the finding, if there is one that is not marked yet.
func (m *matcher) doubt(known int, d Doubt) {
	if r := m.taken[known]; r != none && m.ofResult[r].Doubt == "" {
		m.ofResult[r].Doubt = d
	}
}
