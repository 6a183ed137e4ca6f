package recognition

// Facts holds two texts about the facts of a result or a finding that are not evidence. They differ in related places
// in its own file: Lines has their lines, Distances how many lines they are away. Two that agree in either text have
// the same facts: lines may have been added between the places, or above all of them. Without such places both texts
// are equal. An empty text agrees with nothing.
type Facts struct {
	Lines, Distances string
}

func (f Facts) texts() []string { return []string{f.Lines, f.Distances} }

// counts holds how many at one place have the same Lines, or the same Distances; the key has only one of them.
type counts map[Facts]int

// countsAt returns the counts at a place, and caches them in done.
func countsAt(here []int, factsOf func(int) Facts, done map[int]counts) counts {
	if done[here[0]] == nil {
		done[here[0]] = counts{}
		for _, i := range here {
			done[here[0]][Facts{Lines: factsOf(i).Lines}]++
			done[here[0]][Facts{Distances: factsOf(i).Distances}]++
		}
	}
	return done[here[0]]
}

// text returns the text by which to compare the result and the finding: Lines or Distances, whichever more pairs at
// their places have in common. On a tie, it is the text that occurs at both places; none if both do.
func (m *matcher) text(result, known int, of Facts) string {
	if of.Lines == of.Distances || m.shift(result, known) == 0 {
		return of.Lines
	}
	at := [2]int{m.resultsAt[result][0], m.knownAt[known][0]}
	results := countsAt(m.resultsAt[result], m.ResultFacts, m.resultCounts)
	findings := countsAt(m.knownAt[known], m.KnownFacts, m.knownCounts)
	more, ok := m.moreLines[at]
	if !ok {
		fewer, others := results, findings
		if len(findings) < len(results) { // one place may be compared with many
			fewer, others = findings, results
		}
		for of, n := range fewer {
			if of.Lines != "" {
				more += min(n, others[of])
			} else {
				more -= min(n, others[of])
			}
		}
		m.moreLines[at] = more
	}
	shared := func(of Facts) bool { return results[of] > 0 && findings[of] > 0 }
	switch {
	case more > 0 || more == 0 && !shared(Facts{Distances: of.Distances}):
		return of.Lines
	case more < 0 || !shared(Facts{Lines: of.Lines}):
		return of.Distances
	}
	return ""
}

// agree reports whether the result and the finding have the same facts.
func (m *matcher) agree(result, known int) bool {
	text := m.text(result, known, m.ResultFacts(result))
	return text != "" && text == m.text(result, known, m.KnownFacts(known))
}

// home reports whether the result is paired with a finding that has the same facts. Otherwise it is away.
func (m *matcher) home(result int) bool {
	k := m.ofResult[result].Known
	return k != none && m.ResultFacts != nil && m.agree(result, k)
}

// atHome is home for a finding.
func (m *matcher) atHome(known int) bool { return m.taken[known] != none && m.home(m.taken[known]) }
