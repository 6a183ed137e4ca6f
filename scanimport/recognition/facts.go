package recognition

// Facts are two texts about the facts of a result or a finding that are not evidence. Related places in its own file
// are in Lines with their lines, in Distances with how many lines they are from it. Two that agree in one of the texts
// state the same about their problems: lines may have been added between the places, or above all of them. Without
// such places both texts are the same. An empty text agrees with nothing.
type Facts struct {
	Lines, Distances string
}

// pairOf is a result and a finding. The first ones at two places, or of two looks, stand for all of these.
type pairOf struct{ result, known int }

// fit holds the lines and the distances that the results at one place and the findings at one place share, and how many
// more pairs share their lines than share their distances.
type fit struct {
	lines, distances map[string]bool
	more             int
}

// text returns that text of facts by which the result and the finding are compared: of the kind that more pairs at
// their places share. If as many share both, it is the one that is shared; none if both are.
func (m *matcher) text(result, known int, of Facts) string {
	if of.Lines == of.Distances || m.shift(result, known) == 0 {
		return of.Lines
	}
	results, findings := m.resultsAt[result], m.knownAt[known]
	f := m.fits[pairOf{results[0], findings[0]}]
	if f == nil {
		lines, byLines := m.shared(results, findings, func(f Facts) string { return f.Lines })
		distances, byDistances := m.shared(results, findings, func(f Facts) string { return f.Distances })
		f = &fit{lines, distances, byLines - byDistances}
		m.fits[pairOf{results[0], findings[0]}] = f
	}
	switch {
	case f.more > 0 || f.more == 0 && !f.distances[of.Distances]:
		return of.Lines
	case f.more < 0 || !f.lines[of.Lines]:
		return of.Distances
	}
	return ""
}

// shared returns the texts that both results and findings have, and how many pairs of them.
func (m *matcher) shared(results, known []int, text func(Facts) string) (texts map[string]bool, pairs int) {
	left, texts := map[string]int{}, map[string]bool{}
	for _, r := range results {
		left[text(m.ResultFacts(r))]++
	}
	for _, k := range known {
		if of := text(m.KnownFacts(k)); left[of] > 0 {
			left[of]--
			texts[of], pairs = true, pairs+1
		}
	}
	return texts, pairs
}

// home reports whether the result is paired with a finding that has the same facts: its own. Others are away.
func (m *matcher) home(result int) bool {
	k := m.ofResult[result].Known
	if k == none {
		return false
	}
	text := m.text(result, k, m.ResultFacts(result))
	return text != "" && text == m.text(result, k, m.KnownFacts(k))
}

// atHome reports the same of a finding.
func (m *matcher) atHome(known int) bool { return m.taken[known] != none && m.home(m.taken[known]) }
