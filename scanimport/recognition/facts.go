package recognition

// Facts are two texts about the facts of a result or a finding that are not evidence. Related places in its own file
// are in Lines with their lines, in Distances with how many lines they are from it. Two that agree in one of the texts
// state the same about their problems: lines may have been added between the places, or above all of them. Without
// such places both texts are the same. An empty text agrees with nothing.
type Facts struct {
	Lines, Distances string
}

func (f Facts) texts() []string { return []string{f.Lines, f.Distances} }

// places are those of a result and a finding; the first result and the first finding at them stand for all.
type places struct{ result, known int }

// counts holds how many results, or findings, at one place have each text: of the lines, else of the distances.
type counts map[kind]int

type kind struct {
	lines bool
	text  string
}

// countsAt returns the counts of those at a place. They are counted once, in done.
func countsAt(here []int, factsOf func(int) Facts, done map[int]counts) counts {
	if done[here[0]] == nil {
		done[here[0]] = counts{}
		for _, i := range here {
			done[here[0]][kind{true, factsOf(i).Lines}]++
			done[here[0]][kind{false, factsOf(i).Distances}]++
		}
	}
	return done[here[0]]
}

// moreLines returns how many more pairs share their lines than share their distances. It walks the smaller side: one
// place may be compared with many.
func moreLines(a, b counts) (more int) {
	if len(a) > len(b) {
		a, b = b, a
	}
	for of, n := range a {
		if of.lines {
			more += min(n, b[of])
		} else {
			more -= min(n, b[of])
		}
	}
	return more
}

// text returns that text of facts by which the result and the finding are compared: of the kind that more pairs at
// their places share. If as many share both, it is the one that is shared; none if both are.
func (m *matcher) text(result, known int, of Facts) string {
	if of.Lines == of.Distances || m.shift(result, known) == 0 {
		return of.Lines
	}
	at := places{m.resultsAt[result][0], m.knownAt[known][0]}
	results := countsAt(m.resultsAt[result], m.ResultFacts, m.resultCounts)
	findings := countsAt(m.knownAt[known], m.KnownFacts, m.knownCounts)
	more, there := m.moreLines[at]
	if !there {
		more = moreLines(results, findings)
		m.moreLines[at] = more
	}
	shared := func(k kind) bool { return results[k] > 0 && findings[k] > 0 }
	switch {
	case more > 0 || more == 0 && !shared(kind{false, of.Distances}):
		return of.Lines
	case more < 0 || !shared(kind{true, of.Lines}):
		return of.Distances
	}
	return ""
}

// agree reports whether the result and the finding have the same facts.
func (m *matcher) agree(result, known int) bool {
	text := m.text(result, known, m.ResultFacts(result))
	return text != "" && text == m.text(result, known, m.KnownFacts(known))
}

// home reports whether the result is paired with a finding that has the same facts: its own. Others are away.
func (m *matcher) home(result int) bool {
	k := m.ofResult[result].Known
	return k != none && m.agree(result, k)
}

// atHome reports the same of a finding.
func (m *matcher) atHome(known int) bool { return m.taken[known] != none && m.home(m.taken[known]) }
