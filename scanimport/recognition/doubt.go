package recognition

// settleDoubts doubts every pair that is not certain: a decision must never be about another problem
// unseen, and a mark that was not needed costs a look.
func (m *matcher) settleDoubts() {
	var c *company
	for i := range m.ofResult {
		p := &m.ofResult[i]
		if p.Rung == "" || p.Rung == Unchanged || p.Doubt != "" {
			continue
		}
		if c == nil {
			c = m.company()
		}
		r, k := &m.results[p.Result], &m.known[p.Known]
		if !c.certain(p.Rung, r, k) {
			p.Doubt = m.weakness(p.Rung, r, k)
		}
	}
}

// company is what the other results, findings and pairs say about a pair.
type company struct {
	// results and known count those that agree in a part of the evidence.
	results, known map[Evidence]int
	// shifts counts the pairs of a file, with one message each, that are the same number of lines apart.
	shifts map[shifted]int
	// moves counts the open findings that went from one path to another, renames the files by what
	// of their paths changed, open the open findings of a path.
	moves   map[[2]string]int
	renames map[rename]int
	open    map[string]int
}

type shifted struct {
	path  string
	lines int32
}

func (m *matcher) company() *company {
	c := &company{
		results: map[Evidence]int{}, known: map[Evidence]int{}, shifts: map[shifted]int{},
		moves: map[[2]string]int{}, renames: map[rename]int{}, open: map[string]int{},
	}
	for i := range m.results {
		r := &m.results[i]
		count(c.results, r)
		c.results[likeEarlier(r, r.Message)]++
	}
	for i := range m.known {
		k := &m.known[i]
		count(c.known, &k.Evidence)
		if k.Legacy {
			c.known[likeEarlier(&k.Evidence, "")]++
		}
		if !k.Closed {
			c.open[k.Path]++
		}
	}
	for _, p := range m.ofResult {
		if p.Rung == "" {
			continue
		}
		r, k := &m.results[p.Result], &m.known[p.Known]
		switch {
		case r.Path == k.Path && r.Message == k.Message:
			c.shifts[shifted{r.Path, r.Line - k.Line}]++
		case r.Path != k.Path && p.Doubt == "" && !k.Closed:
			c.moves[[2]string{k.Path, r.Path}]++
		}
	}
	for paths := range c.moves {
		c.renames[renamed(paths[0], paths[1])]++
	}
	return c
}

// count adds evidence that is certain only of one that has it alone.
func count(n map[Evidence]int, e *Evidence) {
	for _, k := range []key{byHash, at(byPURL), at(byPackage), at(byAlias)} {
		if part, ok := k(e); ok {
			n[part]++
		}
	}
}

func byHash(e *Evidence) (Evidence, bool) {
	return Evidence{Fingerprint: e.Fingerprint}, e.Fingerprint != ""
}

// likeEarlier is what results share whose names of the earlier version only an ordinal tells apart.
// What a finding of that version said is not known: of one rule and file any may be alike.
func likeEarlier(e *Evidence, message string) Evidence {
	return Evidence{Rule: e.Rule, Path: e.Path, Message: message}
}

// certain says whether the result can be nothing but the finding.
func (c *company) certain(by Rung, r *Evidence, k *Known) bool {
	switch {
	case by == Earlier:
		return r.Line == k.Line || c.results[likeEarlier(r, r.Message)] < 2 && c.known[likeEarlier(&k.Evidence, "")] < 2
	case k.Legacy:
		return false
	case r.Path != k.Path:
		return c.moved(r, &k.Evidence)
	case by == Package:
		return c.samePackage(r, &k.Evidence)
	case r.Rule != k.Rule || differ(r.Resource, k.Resource):
		return false
	case r.Path != "" && equal(r.Snippet, k.Snippet), c.ownFingerprint(r, &k.Evidence):
		return true
	case by == Resource:
		return r.Message == k.Message || r.Line == k.Line
	}
	return r.Message == k.Message && !otherCode(r, &k.Evidence) &&
		(r.Line == k.Line || c.shifts[shifted{r.Path, r.Line - k.Line}] > 1)
}

// moved: by a fingerprint of its own, by fingerprint and code, or in the company of another
// file's move or of all else that was in its file.
func (c *company) moved(r, k *Evidence) bool {
	if otherCode(r, k) {
		return false
	}
	paths := [2]string{k.Path, r.Path}
	return c.ownFingerprint(r, k) || r.Rule == k.Rule && equal(r.Fingerprint, k.Fingerprint) &&
		equal(r.Snippet, k.Snippet) ||
		c.renames[renamed(k.Path, r.Path)] > 1 || c.moves[paths] > 1 && c.moves[paths] == c.open[k.Path]
}

// ownFingerprint: both have one fingerprint, and nothing else in the scan has it.
func (c *company) ownFingerprint(r, k *Evidence) bool {
	part, ok := byHash(r)
	return ok && r.Rule == k.Rule && r.Fingerprint == k.Fingerprint && c.alone(part)
}

// samePackage: of several versions of a package in one place, the version tells which one.
func (c *company) samePackage(r, k *Evidence) bool {
	if differ(r.PURL, k.PURL) {
		return false
	}
	part, ok := at(byPURL)(r)
	switch {
	case r.Vulnerability != k.Vulnerability:
		part, _ = at(byAlias)(r)
	case !ok || k.PURL == "":
		part, _ = at(byPackage)(r)
	}
	return equal(r.Version, k.Version) || c.alone(part)
}

func (c *company) alone(part Evidence) bool { return c.results[part] < 2 && c.known[part] < 2 }

// equal and differ hold where both are known.
func equal(a, b string) bool  { return a != "" && a == b }
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// otherCode: the code is another, or the fingerprint where the code is not known.
func otherCode(r, k *Evidence) bool {
	return differ(r.Snippet, k.Snippet) || differ(r.Fingerprint, k.Fingerprint) && !equal(r.Snippet, k.Snippet)
}

// weakness is the doubt about a pair that is not certain.
func (m *matcher) weakness(by Rung, r *Evidence, k *Known) Doubt {
	switch {
	case r.Path != k.Path && m.reported[k.Path]:
		return DoubtElsewhere
	case r.Path != k.Path:
		return DoubtFile
	case by == Package:
		return DoubtPlace
	case r.Line == k.Line:
		return DoubtMessage
	case by == Earlier || by == Fingerprint:
		return DoubtCount
	}
	return DoubtLine
}
