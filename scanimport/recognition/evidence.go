// Package recognition decides which known finding each result of a scan is, so that triage stays with its problem when
// the scanner rewords a message, a version is raised, a file is renamed or code moves.
//
// It is a ladder: every rung pairs the results and findings that agree in one kind of evidence, the strongest first.
// What a rung cannot pair goes on to the next. Pairs are one to one, and ambiguous evidence pairs nothing. The package
// does no I/O. Its result does not depend on the order of the results that differ in evidence. Of results with equal
// evidence, the first ones come first, unless others have the facts of a finding: see Facts.
package recognition

import "cmp"

// Evidence is what a finding can be recognised by. An empty string is unknown evidence; it agrees with nothing.
type Evidence struct {
	// Rule is the scanner's name of the rule.
	Rule string
	// Path of the file; empty if there is none.
	Path string
	// Line and Column; 0 if unknown.
	Line, Column int32
	// Fingerprint that the scanner computed from the code.
	Fingerprint string
	// Vulnerability, and the name of the affected Package with its Version; PURL is the package's URL without the
	// version.
	Vulnerability, Package, Version, PURL string
	// Aliases is one canonical id for the vulnerability and all its other ids: equal for a result and a finding that
	// share any id but that of an advisory.
	Aliases string
	// IDs are the ids that name this vulnerability alone, one per line. They join nothing, and only settle a doubt.
	IDs string
	// Resource is the logical location: for infrastructure, the resource.
	Resource string
	// Snippet identifies the code at the location, Message the scanner's message.
	Snippet, Message string
}

// Known is a finding that an earlier scan reported.
type Known struct {
	Evidence
	// Closed findings are recognised only by strong evidence, and after open ones.
	Closed bool
	// Unfinished is the position, from 1 and the oldest first, of the scan that wrote the open finding last among those
	// that did not complete; 0: that scan is not one of them.
	Unfinished int
	// CutOff reports that the import of such a scan was cut off, and that no later one has done its part: when it is
	// repeated, its result at the same place is this finding.
	CutOff bool
	// Added reports that such an import created the finding because nothing was recognised. When it is repeated, the
	// finding's result still counts when evidence is checked for ambiguity, because it took part in the first decision.
	Added bool
	// Foreign findings belong to an analysis that the scan does not contain, or to a project that was not scanned: a
	// result in another file is not one of them.
	Foreign bool
	// Legacy findings were stored by a version that stored no evidence, so little is known about them.
	Legacy bool
	// Cut: only the beginning of the fingerprint is known.
	Cut bool
	// Presumed findings were stored by a version that gave several files one path: Path is the file of the scan to which
	// they most likely belong.
	Presumed bool
	// Decision is a text that is equal for findings with the same decision; "" if there is none. It pairs nothing: it
	// matters for the doubts about findings that are alike.
	Decision string
}

// hasCode reports whether the evidence identifies the code itself, so that other code of the same rule can be told
// apart.
func (e *Evidence) hasCode() bool { return e.Fingerprint != "" || e.Snippet != "" }

// place is a line and a column of the file.
type place struct{ line, column int32 }

func placeOf(e *Evidence) place { return place{e.Line, e.Column} }

// compare orders by place and then by everything else, so that the order does not depend on the file. A fingerprint may
// contain the path, and so comes after what a rename leaves.
func (e *Evidence) compare(o *Evidence) int {
	return cmp.Or(cmp.Compare(e.Line, o.Line), cmp.Compare(e.Column, o.Column),
		cmp.Compare(e.Version, o.Version), cmp.Compare(e.Message, o.Message), cmp.Compare(e.Snippet, o.Snippet),
		cmp.Compare(e.Rule, o.Rule), cmp.Compare(e.Resource, o.Resource), cmp.Compare(e.PURL, o.PURL),
		cmp.Compare(e.Package, o.Package), cmp.Compare(e.Fingerprint, o.Fingerprint), cmp.Compare(e.Path, o.Path),
		cmp.Compare(e.Vulnerability, o.Vulnerability), cmp.Compare(e.Aliases, o.Aliases),
		cmp.Compare(e.IDs, o.IDs))
}

// key returns the part of the evidence that a rung compares. ok is false if it is unknown.
type key func(e *Evidence) (part Evidence, ok bool)

func alike(e *Evidence) (Evidence, bool) { return unplaced(e), true }

// unplaced returns everything but the line, the column and the ids.
func unplaced(e *Evidence) Evidence {
	part := *e
	part.Line, part.Column, part.IDs = 0, 0, ""
	return part
}

// placed returns everything but the ids.
func placed(e *Evidence) Evidence {
	part := *e
	part.IDs = ""
	return part
}

func byFingerprint(e *Evidence) (Evidence, bool) {
	return Evidence{Rule: e.Rule, Fingerprint: e.Fingerprint}, e.Fingerprint != ""
}

// byPURL ignores the rule: a scanner may rename the rule while the vulnerability stays.
func byPURL(e *Evidence) (Evidence, bool) {
	return Evidence{Vulnerability: e.Vulnerability, PURL: e.PURL}, e.Vulnerability != "" && e.PURL != ""
}

// byPackage is for packages whose URL is unknown on one side.
func byPackage(e *Evidence) (Evidence, bool) {
	return Evidence{Vulnerability: e.Vulnerability, Package: e.Package}, e.Vulnerability != "" && e.Package != ""
}

// byAlias is for a vulnerability that is reported under another of its ids.
func byAlias(e *Evidence) (Evidence, bool) {
	return Evidence{Aliases: e.Aliases, PURL: e.PURL, Package: e.Package}, e.Aliases != "" &&
		(e.PURL != "" || e.Package != "")
}

// byAliasAndVersion tells the versions of a package apart.
func byAliasAndVersion(e *Evidence) (Evidence, bool) {
	part, ok := byAlias(e)
	part.Version = e.Version
	return part, ok && e.Version != ""
}

func byResource(e *Evidence) (Evidence, bool) {
	return Evidence{Rule: e.Rule, Package: e.Package, Resource: e.Resource}, e.Resource != ""
}

func bySnippet(e *Evidence) (Evidence, bool) {
	return Evidence{Rule: e.Rule, Snippet: e.Snippet}, e.Snippet != ""
}

// byMessage is only for evidence without code: with different code, the same message is about something else.
func byMessage(e *Evidence) (Evidence, bool) {
	return Evidence{Rule: e.Rule, Package: e.Package, Message: e.Message}, e.Message != "" && !e.hasCode()
}

// byRule keeps packages apart: another package in the same file is another problem.
func byRule(e *Evidence) (Evidence, bool) { return Evidence{Rule: e.Rule, Package: e.Package}, true }

// at adds the path to a key: the same evidence in the same file.
func at(k key) key {
	return func(e *Evidence) (Evidence, bool) {
		part, ok := k(e)
		part.Path = e.Path
		return part, ok
	}
}
