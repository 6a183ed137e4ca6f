package recognition

// Rung names the evidence by which a result was recognised.
type Rung string

// The rungs, strongest first.
const (
	// Unchanged: everything agrees, including the line.
	Unchanged Rung = "unchanged"
	// Earlier: the finding's name, for findings of versions that stored no evidence.
	Earlier Rung = "name"
	// Fingerprint that the scanner computed, in the same file.
	Fingerprint Rung = "fingerprint"
	// Package with the vulnerability, in the same file.
	Package Rung = "package"
	// Resource of the rule, in the same file.
	Resource Rung = "resource"
	// Snippet of the rule, in the same file.
	Snippet Rung = "code"
	// File: all results of a file agree with all findings of another file.
	File Rung = "file moved"
	// Moved: the same fingerprint, package, resource or code, once in another file.
	Moved Rung = "moved"
	// Shift: several results of a file are the same number of lines away from similar findings.
	Shift Rung = "lines shifted"
	// Message of the rule, in the same file, if no code distinguishes the results.
	Message Rung = "message"
	// Line of the rule, the nearest one in the same file.
	Line Rung = "nearest line"
)

// Doubt explains why it is uncertain that the result is the finding; empty if it is certain.
type Doubt string

// The doubts.
const (
	// DoubtCount: this one moved, and there are more or fewer similar results than before, two distances fit as many, or a
	// closed finding is among them; or another finding has no result, and differs only in its decision.
	DoubtCount Doubt = "several results alike, and not as many as before"
	// DoubtLine: the line differs, and neither code nor another pair confirms it.
	DoubtLine Doubt = "line moved, and no code to compare"
	// DoubtPlace: several are at one place, or alike in one file, and what distinguished them has changed.
	DoubtPlace Doubt = "several results at one place, and what told them apart has changed"
	// DoubtBack: a closed finding with a decision is at another line, and no other pair confirms it: equal code may have
	// been written anew. Never in a review.
	DoubtBack Doubt = "was closed, and is back at another line"
	// DoubtMessage: the place is the same, but the message, the code, the resource or the package differs.
	DoubtMessage Doubt = "message or code changed, and only the place is the same"
	// DoubtFingerprint: the finding was stored before whole fingerprints were known, there is no code to compare, and it
	// was closed, or message and lines do not make the pair certain.
	DoubtFingerprint Doubt = "long fingerprints begin alike, and no code to compare"
	// DoubtVulnerability: neither vulnerability names the id of the other, or at most one does and both are CVEs.
	DoubtVulnerability Doubt = "reported under another id"
	// DoubtElsewhere: a similar result is in another file while the old file still has results.
	DoubtElsewhere Doubt = "found in another file, and the old one is still there"
	// DoubtIncomplete: another file, and it is unknown whether the old one is gone, or whether the new one was there
	// before.
	DoubtIncomplete Doubt = "found in another file, and a scan was incomplete"
	// DoubtFile: another file, and neither a fingerprint nor a second move confirms it, or the resource or the package
	// differs.
	DoubtFile Doubt = "found in another file, and nothing confirms the move"
)

// Match pairs a result with its finding, by their indexes.
type Match struct {
	Result, Known int
	Rung          Rung
	Doubt         Doubt
}

type rung struct {
	name Rung
	find func(m *matcher)
}

// ladder is the order of the rungs, strongest first.
var ladder = []rung{
	{Unchanged, unchanged},
	{Earlier, earlier},
	{Fingerprint, here(byFingerprint)},
	{Package, here(byPURL, byPackage, byAlias)},
	{Resource, here(byResource)},
	{Snippet, here(bySnippet)},
	{File, fileMoved},
	{Moved, elsewhere(byFingerprint, byPURL, byPackage, byAlias, byResource, bySnippet)},
	{Shift, linesShifted},
	{Message, sameMessage},
	{Line, nearestLine},
}

// Scan holds what a scan reported and what is known.
type Scan struct {
	Results []Evidence
	Known   []Known
	// Named holds pairs by name, for findings without stored evidence.
	Named []Match
	// Incomplete means that not everything was covered, by this scan or by one since the last complete one: a file without
	// a result may still exist, so its problems have perhaps not moved, and one without a finding may have existed before.
	Incomplete bool
	// Review means that the results are those of a pull request. Then a result in another file about another resource or
	// package is another problem; in an import it may be the finding, in doubt. And a closed finding is back rather than
	// written anew: the branch does not have the fix yet, or only one commit did not report it.
	Review bool
	// ResultFacts and KnownFacts return the facts of a result and of a finding that are not evidence, so that among
	// several with equal evidence each keeps its own. ResultFacts may be nil if nothing distinguishes the results, and
	// KnownFacts if all findings agree.
	ResultFacts, KnownFacts func(index int) Facts
	// Job identifies the job that reported a finding. Two findings of one job that agree in all facts are different
	// problems, and only their decisions distinguish them. It is required with KnownFacts.
	Job func(known int) string
}

// Recognise returns the pairs in the order of the results, at most one for each result and each finding.
func Recognise(s Scan) []Match { return recognise(ladder, s) }

func recognise(ladder []rung, s Scan) []Match {
	m := newMatcher(s)
	for _, r := range ladder {
		if m.left == 0 {
			break
		}
		m.rung = r.name
		r.find(m)
		m.swapToOwn()
	}
	m.markDoubts()
	var out []Match
	for i := range m.ofResult {
		if m.ofResult[i].Rung != "" {
			out = append(out, m.ofResult[i])
		}
	}
	return out
}

// matcher is the state of one run of the ladder.
type matcher struct {
	Scan
	rung Rung
	// resultsAt and knownAt hold, by result and by finding, all at the same place; twinResults and twinKnown its twins
	// there. twinResultGroups and twinKnownGroups list the groups of two or more twins.
	resultsAt, knownAt, twinResults, twinKnown, twinResultGroups, twinKnownGroups [][]int
	// ofResult holds the pair of each result. Without one, its rung is empty and its finding none.
	ofResult []Match
	// taken holds, by finding, the result that it is paired with, or none.
	taken []int
	// These are caches. resultCounts and knownCounts count the facts at a place, by the first index there. moreLines
	// compares the results and the findings at two places, by the first index of each.
	resultCounts, knownCounts map[int]counts
	moreLines                 map[[2]int]int
	// allResults and allKnown are the indexes of all results and findings.
	allResults, allKnown []int
	// left is the number of results without a pair.
	left int
	// reported holds the paths that have a result.
	reported map[string]bool
	// unfinished means that a scan that did not complete wrote some of the findings.
	unfinished bool
}

const none = -1

func newMatcher(s Scan) *matcher {
	m := &matcher{
		Scan:     s,
		ofResult: make([]Match, len(s.Results)), taken: make([]int, len(s.Known)), left: len(s.Results),
		reported:     make(map[string]bool),
		resultCounts: map[int]counts{}, knownCounts: map[int]counts{}, moreLines: map[[2]int]int{},
	}
	if s.KnownFacts == nil {
		m.KnownFacts, m.Job = func(int) Facts { return Facts{} }, func(int) string { return "" }
	}
	for i := range m.taken {
		m.allKnown = append(m.allKnown, i)
		m.taken[i] = none
		m.unfinished = m.unfinished || s.Known[i].Unfinished > 0
	}
	for i := range s.Results {
		m.allResults = append(m.allResults, i)
		m.ofResult[i].Known = none
		m.reported[s.Results[i].Path] = true
	}
	asKnown := func(result int) Known { return Known{Evidence: s.Results[result]} }
	m.resultsAt, m.twinResults, m.twinResultGroups = groupTwins(len(s.Results), asKnown)
	m.knownAt, m.twinKnown, m.twinKnownGroups = groupTwins(len(s.Known), func(i int) Known { return s.Known[i] })
	return m
}

func (m *matcher) result(i int) *Evidence  { return &m.Results[i] }
func (m *matcher) finding(i int) *Evidence { return &m.Known[i].Evidence }

func (m *matcher) free(result int) bool { return m.ofResult[result].Rung == "" }

// held reports whether the result is paired with a finding that an import added before it was cut off.
func (m *matcher) held(result int) bool {
	return !m.free(result) && m.Known[m.ofResult[result].Known].Added
}

func (m *matcher) pair(result, known int, doubt Doubt) {
	if !m.free(result) || m.taken[known] != none {
		return
	}
	m.ofResult[result] = Match{Result: result, Known: known, Rung: m.rung, Doubt: doubt}
	m.taken[known] = result
	m.left--
}

func (m *matcher) pairAll(pairs []Match) {
	for _, p := range pairs {
		m.pair(p.Result, p.Known, "")
	}
}
