package recognition

import (
	"slices"
	"strings"
)

// markDoubts marks every pair that is not certain as doubtful. A decision must never silently pass to another
// problem, while an unnecessary mark only costs a user a look at the finding.
func (m *matcher) markDoubts() {
	var c *pairContext
	for i := range m.ofResult {
		p := &m.ofResult[i]
		if p.Rung == "" || p.Doubt != "" {
			continue
		}
		r, k := &m.Results[p.Result], &m.Known[p.Known]
		switch {
		case k.Closed && k.Presumed:
			p.Doubt = DoubtFile
		case k.Closed && onlyBegins(r, k):
			p.Doubt = DoubtFingerprint
		}
		if p.Rung == Unchanged && otherSecret(r, &k.Evidence) {
			p.Rung = Message // not everything agrees
		}
		if p.Rung == Unchanged || p.Doubt != "" {
			continue
		}
		if c == nil {
			c = m.pairContext()
		}
		p.Doubt = m.doubtAbout(c, p.Rung, r, k)
	}
	m.doubtTwins()
}

// doubtAbout returns the doubt about a pair; "" if the result can only be this finding.
func (m *matcher) doubtAbout(c *pairContext, by Rung, r *Evidence, k *Known) Doubt {
	switch {
	case otherVulnerability(r, &k.Evidence):
		return DoubtVulnerability
	case r.Path != k.Path:
		return m.doubtAboutMove(c, by, r, k)
	case c.certain(by, r, k):
		return ""
	}
	return c.weakness(by, r, k)
}

// doubtAboutMove is doubtAbout for a pair of two paths.
func (m *matcher) doubtAboutMove(c *pairContext, by Rung, r *Evidence, k *Known) Doubt {
	switch {
	case !m.Incomplete && c.certainMove(by, r, k):
		return ""
	case m.reported[k.Path]:
		return DoubtElsewhere
	case m.Incomplete:
		return DoubtIncomplete
	}
	return DoubtFile
}

// pairContext holds the context of a pair: counts over the other results, findings and pairs.
type pairContext struct {
	// results and known count the results and findings that agree in a part of the evidence.
	results, known map[Evidence]int
	// reportedOn and knownOn count those that only their columns distinguish on a line: open findings and all results, and
	// closed findings and the results that have no open finding.
	reportedOn, knownOn map[Known]int
	// review is that of the scan.
	review bool
	// shifts counts, per file, the pairs with equal messages that are the same number of lines apart.
	shifts map[fileShift]int
	// moves counts the open findings that moved from one path to another, renames the same by the changed part of the
	// paths. open counts the open findings per path.
	moves   map[[2]string]int
	renames map[rename]int
	open    map[string]int
}

type fileShift struct {
	path  string
	lines int32
}

func (m *matcher) pairContext() *pairContext {
	c := &pairContext{
		results: map[Evidence]int{}, known: map[Evidence]int{}, shifts: map[fileShift]int{},
		moves: map[[2]string]int{}, renames: map[rename]int{}, open: map[string]int{},
		reportedOn: map[Known]int{}, knownOn: map[Known]int{}, review: m.Review,
	}
	for i := range m.Results {
		r := &m.Results[i]
		c.results[likeEarlier(r, r.Message)]++
		if r.Suppressed && m.free(i) {
			continue // it may have none because it was suppressed from the beginning
		}
		count(c.results, r)
		countOnLine(c.reportedOn, r, false)
		if m.free(i) || m.Known[m.ofResult[i].Known].Closed {
			countOnLine(c.reportedOn, r, true)
		}
	}
	for i := range m.Known {
		k := &m.Known[i]
		if k.Foreign && !m.reported[k.Path] {
			continue // no result can be it
		}
		count(c.known, &k.Evidence)
		countOnLine(c.knownOn, &k.Evidence, k.Closed)
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
		r, k := &m.Results[p.Result], &m.Known[p.Known]
		switch {
		case r.Path == k.Path && r.Message == k.Message:
			c.shifts[fileShift{r.Path, r.Line - k.Line}]++
		case r.Path != k.Path && p.Doubt == "" && !k.Closed:
			c.moves[[2]string{k.Path, r.Path}]++
		}
	}
	for paths := range c.moves {
		c.renames[renamed(paths[0], paths[1])]++
	}
	return c
}

// count counts the parts of the evidence that are certain only if a single result or finding has them.
func count(n map[Evidence]int, e *Evidence) {
	for _, k := range []key{byHash, at(byPURL), at(byPackage), at(byAlias), at(byAliasAndVersion)} {
		if part, ok := k(e); ok {
			n[part]++
		}
	}
}

func byHash(e *Evidence) (Evidence, bool) {
	return Evidence{Fingerprint: e.Fingerprint}, e.Fingerprint != ""
}

// likeEarlier is the evidence that results have in common if an earlier version gave them names that differ only by an
// ordinal. A finding from that version has no known message, so all of one rule and file may be alike.
func likeEarlier(e *Evidence, message string) Evidence {
	return Evidence{Rule: e.Rule, Path: e.Path, Message: message}
}

// onLine is the evidence in common of those that only their columns distinguish on a line. The code is part of it if
// both have it.
func onLine(e *Evidence, code string, closed bool) Known {
	part := placed(e)
	part.Column, part.Fingerprint, part.Version, part.Aliases, part.Snippet = 0, "", "", "", code
	return Known{Evidence: part, Closed: closed}
}

func countOnLine(n map[Known]int, e *Evidence, closed bool) {
	n[onLine(e, "", closed)]++
	if e.Snippet != "" {
		n[onLine(e, e.Snippet, closed)]++
	}
}

// otherColumn reports whether the columns differ and the number on the line has changed: it may be another one.
func (c *pairContext) otherColumn(r *Evidence, k *Known) bool {
	code := ""
	if r.Snippet == k.Snippet {
		code = k.Snippet
	}
	return r.Column != k.Column &&
		c.reportedOn[onLine(r, code, k.Closed)] != c.knownOn[onLine(&k.Evidence, code, k.Closed)]
}

// certain reports whether the result can only be this finding, which has the same path.
func (c *pairContext) certain(by Rung, r *Evidence, k *Known) bool {
	switch {
	case by == Earlier:
		return c.certainName(r, k)
	case k.Legacy:
		return false
	case by == Package:
		return c.samePackage(r, &k.Evidence)
	case c.backElsewhere(r, k):
		return false
	case r.Rule != k.Rule || otherSubject(r, &k.Evidence):
		return false
	case !k.Cut && c.ownFingerprint(r, &k.Evidence):
		return true
	case c.otherColumn(r, k):
		return false
	case r.Path != "" && equal(r.Snippet, k.Snippet):
		return true
	case by == Resource:
		return r.Message == k.Message || r.Line == k.Line
	}
	if r.Message != k.Message || otherCode(r, &k.Evidence) {
		return false
	}
	if by == Line { // no distance has the most votes, and what is at the line may be another one like it
		return r.Line == k.Line && c.results[likeEarlier(r, r.Message)] < 2
	}
	return r.Line == k.Line || c.shifts[fileShift{r.Path, r.Line - k.Line}] > 1
}

// certainMove reports whether the result can only be this finding, which has another path.
func (c *pairContext) certainMove(by Rung, r *Evidence, k *Known) bool {
	if by == Earlier {
		return c.certainName(r, k)
	}
	return !k.Legacy && c.moved(r, k)
}

// certainName reports whether the line confirms a pair by name, or nothing else could have the name.
func (c *pairContext) certainName(r *Evidence, k *Known) bool {
	return r.Line == k.Line || c.results[likeEarlier(r, r.Message)] < 2 && c.known[likeEarlier(&k.Evidence, "")] < 2
}

// backElsewhere reports whether a closed finding with a decision is back at another line of its file, and not together
// with others: equal code may have been written anew, for another purpose. Not so in a review. A resource,
// or the vulnerability of a package, is still the same one.
func (c *pairContext) backElsewhere(r *Evidence, k *Known) bool {
	return !c.review && k.Closed && k.Decision != "" && r.Line != k.Line && !sameSubject(r, &k.Evidence) &&
		c.shifts[fileShift{r.Path, r.Line - k.Line}] < 2
}

// moved reports whether a move to another path is certain: by another file with the same rename, because all other
// findings of the file moved with it, or for an open finding by a unique fingerprint that is known as a whole, or by
// fingerprint and code. A closed one was in no file for a while, and its fingerprint may cover a single common line.
func (c *pairContext) moved(r *Evidence, k *Known) bool {
	if otherCode(r, &k.Evidence) || otherSubject(r, &k.Evidence) {
		return false
	}
	paths := [2]string{k.Path, r.Path}
	if c.renames[renamed(k.Path, r.Path)] > 1 || c.moves[paths] > 1 && c.moves[paths] == c.open[k.Path] {
		return true
	}
	return !k.Closed && (!k.Cut && c.ownFingerprint(r, &k.Evidence) ||
		r.Rule == k.Rule && equal(r.Fingerprint, k.Fingerprint) && equal(r.Snippet, k.Snippet))
}

// ownFingerprint reports whether both have the same fingerprint, and no other result or finding has it.
func (c *pairContext) ownFingerprint(r, k *Evidence) bool {
	part, ok := byHash(r)
	return ok && r.Rule == k.Rule && r.Fingerprint == k.Fingerprint && c.alone(part)
}

// samePackage reports whether both are certainly about the same package. Among several versions of a package in one
// place, the version decides, or that only the URL is new. Under another id it decides only if nothing else has it,
// because the id that joins them may join several vulnerabilities.
func (c *pairContext) samePackage(r, k *Evidence) bool {
	if differ(r.PURL, k.PURL) {
		return false
	}
	part, ok := at(byPURL)(r)
	switch {
	case r.Vulnerability != k.Vulnerability:
		part, _ = at(byAlias)(r)
		if equal(r.Version, k.Version) {
			part, _ = at(byAliasAndVersion)(r)
		}
		return c.alone(part)
	case !ok || k.PURL == "":
		part, _ = at(byPackage)(r)
	}
	was := placed(k)
	was.PURL = r.PURL
	return equal(r.Version, k.Version) || c.alone(part) || k.PURL != r.PURL && was == placed(r)
}

func (c *pairContext) alone(part Evidence) bool { return c.results[part] < 2 && c.known[part] < 2 }

// equal and differ are true only if both values are known.
func equal(a, b string) bool  { return a != "" && a == b }
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// sameSubject reports whether both name the same resource, or the same vulnerability of the same package.
func sameSubject(r, k *Evidence) bool {
	return equal(r.Resource, k.Resource) || equal(r.Vulnerability, k.Vulnerability) &&
		(equal(r.PURL, k.PURL) || equal(r.Package, k.Package) && !otherPackage(r, k))
}

// otherSubject reports whether both name a resource or a package, but different ones.
func otherSubject(r, k *Evidence) bool { return differ(r.Resource, k.Resource) || otherPackage(r, k) }

// otherPackage reports whether both name a package, but different ones. The package URL decides.
func otherPackage(r, k *Evidence) bool {
	return differ(r.PURL, k.PURL) || !equal(r.PURL, k.PURL) && differ(r.Package, k.Package)
}

// otherVulnerability reports whether both are vulnerabilities that do not name each other. It is enough that one names
// the id of the other, but not between two CVEs, because a CVE also names others that it completes or replaces. Any
// other id in common may join several vulnerabilities.
func otherVulnerability(r, k *Evidence) bool {
	if !differ(r.Vulnerability, k.Vulnerability) {
		return false
	}
	names, named := r.names(k.Vulnerability), k.names(r.Vulnerability)
	if isCVE(r.Vulnerability) && isCVE(k.Vulnerability) {
		return !names || !named
	}
	return !names && !named
}

func isCVE(id string) bool { return strings.HasPrefix(id, "CVE-") }

// names reports whether the vulnerability has the id.
func (e *Evidence) names(id string) bool { return slices.Contains(strings.Split(e.IDs, "\n"), id) }

// onlyBegins reports whether only the beginning of their fingerprints identifies the code of both.
func onlyBegins(r *Evidence, k *Known) bool {
	return k.Cut && r.Fingerprint == k.Fingerprint && !equal(r.Snippet, k.Snippet)
}

// otherCode reports whether the code differs, or the fingerprint if the code is unknown.
func otherCode(r, k *Evidence) bool {
	return differ(r.Code(), k.Code()) || differ(r.Fingerprint, k.Fingerprint) && !equal(r.Snippet, k.Snippet)
}

// otherSecret reports whether masked code shows that an unchanged result is another secret. For packages and resources
// code does not count, as on the rungs that they have.
func otherSecret(r, k *Evidence) bool {
	return r.Package == "" && r.Resource == "" && differ(r.Masked, k.Masked)
}

// weakness returns the doubt about a pair of one path that is not certain.
func (c *pairContext) weakness(by Rung, r *Evidence, k *Known) Doubt {
	switch {
	case by == Package:
		return DoubtPlace
	case onlyBegins(r, k):
		return DoubtFingerprint
	case r.Message == k.Message && !otherCode(r, &k.Evidence) && c.otherColumn(r, k):
		return DoubtCount
	case c.backElsewhere(r, k):
		return DoubtBack
	case r.Line == k.Line:
		return DoubtMessage
	case by == Earlier || by == Fingerprint:
		return DoubtCount
	}
	return DoubtLine
}
