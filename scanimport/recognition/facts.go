package recognition

// Facts are two texts about the facts of a result or a finding that are not evidence. Related places in its own file
// are in Lines with their lines, in Distances with how many lines they are from it. Two that agree in one of the texts
// state the same about their problems: lines may have been added between the places, or above all of them. Without
// such places both texts are the same.
type Facts struct {
	Lines, Distances string
}

// distinct returns the texts.
func (f Facts) distinct() []string {
	if f.Lines == f.Distances {
		return []string{f.Lines}
	}
	return []string{f.Lines, f.Distances}
}

// add adds a result, or a finding, to a list of its facts.
func (f Facts) add(lists map[string][]int, index int) {
	for _, facts := range f.distinct() {
		lists[facts] = append(lists[facts], index)
	}
}

// next removes and returns the first of a list if it agrees. All of a list are at one place and have the same facts, so
// if the first does not agree, none does.
func next(lists map[string][]int, facts string, agrees func(index int) bool) int {
	list := lists[facts]
	if len(list) == 0 || !agrees(list[0]) {
		return none
	}
	lists[facts] = list[1:]
	return list[0]
}

// places are the facts of the results and the findings at each place.
type places struct {
	results, known map[spot]*spotFacts
	// more holds, for two places, how many more pairs agree by their lines than by their distances.
	more map[[2]spot]int
}

// spotFacts counts the facts at a place by their texts.
type spotFacts struct {
	lines, distances map[string]int
}

func factsAt(n int, of func(int) *Evidence, facts func(int) Facts) map[spot]*spotFacts {
	out := map[spot]*spotFacts{}
	for i := range n {
		at := spotOf(of(i))
		if out[at] == nil {
			out[at] = &spotFacts{map[string]int{}, map[string]int{}}
		}
		out[at].lines[facts(i).Lines]++
		out[at].distances[facts(i).Distances]++
	}
	return out
}

// agree reports whether a result and a finding agree in all facts. Of the two texts the one that makes more pairs at
// their places counts. If both make as many, a pair counts unless the other text pairs one of both otherwise.
func (m *matcher) agree(result, known int) bool {
	r, k := m.ResultFacts(result), m.KnownFacts(known)
	lines, distances := r.Lines == k.Lines, r.Distances == k.Distances
	if lines == distances {
		return lines
	}
	if m.places == nil {
		m.places = &places{
			factsAt(len(m.Results), m.result, m.ResultFacts), factsAt(len(m.Known), m.finding, m.KnownFacts), map[[2]spot]int{},
		}
	}
	is, was := spotOf(m.result(result)), spotOf(m.finding(known))
	results, there := m.places.results[is], m.places.known[was]
	more, asked := m.places.more[[2]spot{is, was}]
	if !asked {
		more = common(results.lines, there.lines) - common(results.distances, there.distances)
		m.places.more[[2]spot{is, was}] = more
	}
	switch {
	case more != 0:
		return lines == (more > 0)
	case lines:
		return results.distances[k.Distances] == 0 && there.distances[r.Distances] == 0
	default:
		return results.lines[k.Lines] == 0 && there.lines[r.Lines] == 0
	}
}

// common returns how many pairs agree in their texts.
func common(a, b map[string]int) int {
	if len(a) > len(b) {
		a, b = b, a
	}
	n := 0
	for text := range a {
		n += min(a[text], b[text])
	}
	return n
}
