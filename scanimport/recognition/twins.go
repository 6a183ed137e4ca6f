package recognition

import "slices"

// groupTwins groups n results or findings. For each it returns those at its place, and its twins: those of them, itself
// included, that agree in all that confirms a pair and in being closed or foreign. Their decisions and facts may
// differ. several holds the groups of two or more twins.
func groupTwins(n int, of func(i int) Known) (samePlace, twins, several [][]int) {
	spots, groups := map[Evidence][]int{}, map[Known][]int{}
	samePlace, twins = make([][]int, n), make([][]int, n)
	for i := range n {
		e := of(i).Evidence
		spot := Evidence{Path: e.Path, Line: e.Line, Column: e.Column}
		spots[spot] = append(spots[spot], i)
	}
	for _, here := range spots {
		for _, i := range here {
			samePlace[i], twins[i] = here, here
			if len(here) > 1 { // keys are large, and most are alone at their place
				key := Known{Evidence: of(i).Evidence, Closed: of(i).Closed, Foreign: of(i).Foreign}
				key.Evidence = placed(&key.Evidence)
				groups[key] = append(groups[key], i)
			}
		}
	}
	for _, list := range groups {
		for _, i := range list {
			twins[i] = list
		}
		if len(list) > 1 {
			several = append(several, list)
		}
	}
	return samePlace, twins, several
}

// swapToOwn swaps pairs of twins, so that among several with equal evidence each result gets the finding with its
// own facts.
func (m *matcher) swapToOwn() {
	if m.ResultFacts == nil {
		return
	}
	away := index{}
	for r := range m.ofResult {
		if k := m.ofResult[r].Known; k != none && len(m.twinKnown[k]) > 1 && !m.home(r) {
			own := away.next(m.twinKnown[k], m.text(r, k, m.ResultFacts(r)), m.KnownFacts, m.atHome)
			if own != none && m.agree(r, own) {
				m.join(m.taken[own], k)
				m.join(r, own)
			}
		}
	}
	clear(away)
	for _, p := range slices.Clone(m.ofResult) { // the rungs give open findings to the first of equal results
		if k := p.Known; k != none && len(m.twinResults[m.taken[k]]) > 1 && !m.atHome(k) {
			r := m.taken[k]
			own := away.next(m.twinResults[r], m.text(r, k, m.KnownFacts(k)), m.ResultFacts, m.home)
			if own != none && m.agree(own, k) {
				m.ofResult[r], m.ofResult[own] = m.ofResult[own], m.ofResult[r]
				m.join(r, m.ofResult[r].Known)
				m.join(own, k)
			}
		}
	}
}

// index holds the members of lists that are away, by both texts, for each list by its first member.
type index map[int]map[string][]int

// next returns the first member of a list that has the text and is still away, or none.
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

// join pairs a result and a finding; either may be none, which leaves the other without a pair.
func (m *matcher) join(result, known int) {
	if result != none {
		m.ofResult[result].Result, m.ofResult[result].Known = result, known
	}
	if known != none {
		m.taken[known] = result
	}
}

// doubtTwins marks the pairs whose result may as well belong to another finding with another decision or none: a
// finding without a result that only its decision distinguishes, or one of several for which what distinguished them
// has changed. Legacy findings are not marked for a change, because their names distinguish them.
func (m *matcher) doubtTwins() {
	for _, known := range m.twinKnownGroups {
		m.doubtAs(known, m.problem, m.untaken(known), m.problem, m.knownDecision, DoubtCount)
		paired := without(known, func(k int) bool { return m.taken[k] == none || m.Known[k].Legacy })
		if vary(paired, m.resultOf) || vary(paired, m.atHome) {
			m.doubtAs(paired, m.problem, paired, m.problem, m.knownDecision, DoubtPlace)
		}
		away := without(known, func(k int) bool { return m.Known[k].Legacy || m.atHome(k) })
		if m.ResultFacts != nil && vary(away, m.KnownFacts) && vary(away, m.knownDecision) {
			for _, k := range away {
				m.doubt(m.taken[k], DoubtPlace)
			}
		}
	}
	if m.ResultFacts == nil || !slices.ContainsFunc(m.allKnown, func(k int) bool { return m.knownDecision(k) != "" }) {
		return
	}
	for _, results := range m.twinResultGroups {
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

// resultOf returns the result of a paired finding, without the suppression and masked code that is still the same.
func (m *matcher) resultOf(known int) Evidence {
	r := *m.result(m.taken[known])
	r.Suppressed = false
	if r.Masked == m.finding(known).Masked {
		r.Masked = ""
	}
	return r
}

// doubtAs marks a pair if another finding with a different decision has the facts of the pair's finding or result.
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
			if all[text] > same[[2]string{text, m.knownDecision(k)}] {
				m.doubt(m.taken[k], d)
			}
		}
	}
}

// problem returns the facts of a finding together with its job, because findings of several jobs may be one problem.
func (m *matcher) problem(known int) Facts { return m.ofJob(known, m.KnownFacts(known)) }

func (m *matcher) ofJob(known int, f Facts) Facts {
	return Facts{f.Lines + m.Job(known), f.Distances + m.Job(known)}
}

// vary reports whether the members of the list differ.
func vary[T comparable](list []int, of func(i int) T) bool {
	return slices.ContainsFunc(list, func(i int) bool { return of(i) != of(list[0]) })
}

func (m *matcher) knownDecision(known int) string { return m.Known[known].Decision }

// decision returns the decision about the finding of a result.
func (m *matcher) decision(result int) string {
	if m.free(result) {
		return ""
	}
	return m.knownDecision(m.ofResult[result].Known)
}

// doubtAway marks the pairs of decided findings that are away, if a similar finding with another decision has the facts
// of the result, or a similar result with another decision those of the finding. Pairs that did not move count only at
// the same place. Pairs by name are not marked, because an earlier version did not store all facts.
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
		from := placed(was) // where it would be if it had not moved
		if stays(r) {
			from.Line = is.Line
		}
		keys := map[Evidence]bool{unplaced(is): true, unplaced(was): true, placed(is): true, from: true}
		similar := 0 // including the finding and its result
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
		m.doubtAs(decided, factsNow, known[key], m.problem, m.knownDecision, DoubtPlace)
		m.doubtAs(decided, m.KnownFacts, results[key], m.ResultFacts, m.decision, DoubtPlace)
	}
}

// doubt marks the pair of the result, if it has one without a doubt.
func (m *matcher) doubt(result int, d Doubt) {
	if result != none && m.ofResult[result].Doubt == "" {
		m.ofResult[result].Doubt = d
	}
}
