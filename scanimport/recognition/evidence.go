// Package recognition decides which of the findings that are known each result of a scan is,
// so that what people decided stays with it when the scanner rewords a message, a version is
// raised, a file is renamed or code moves.
//
// It is a ladder: every rung pairs the results and findings that agree in one kind of
// evidence, the strongest first, and what it cannot pair goes on to the next. A pair is one to
// one, and where evidence is ambiguous nothing is paired by it. The package does no I/O, and
// its answer does not depend on the order of the results.
package recognition

import "cmp"

// Evidence is what a finding can be recognised by. An empty string is evidence that is not
// known; it agrees with nothing.
type Evidence struct {
	// Rule is the scanner's name of the rule.
	Rule string
	// Path of the file; empty where there is none.
	Path string
	// Line and Column, 0 where not known.
	Line, Column int32
	// Fingerprint that the scanner computed from the code.
	Fingerprint string
	// Vulnerability, and the name of the Package that has it, with its Version; PURL is the
	// package's URL without the version.
	Vulnerability, Package, Version, PURL string
	// Aliases is what the vulnerability and all its other ids stand for, the same of a result and a finding that
	// have one id in common.
	Aliases string
	// Resource is the logical location: of infrastructure the resource.
	Resource string
	// Snippet stands for the code at the place, Message for what the scanner says.
	Snippet, Message string
}

// Known is a finding that an earlier scan reported.
type Known struct {
	Evidence
	// Closed findings are recognised by strong evidence alone, and after open ones.
	Closed bool
	// Unfinished says that a scan wrote the finding last that did not get to its end: done again, what it reports
	// at the same place is this finding.
	Unfinished bool
	// Added says that such a scan made the finding because nothing was recognised. Done again, the finding's result
	// still counts where evidence would be ambiguous: it was there when the scan decided.
	Added bool
	// Legacy findings were stored by a version that stored no evidence: what is known of them is little.
	Legacy bool
}

// hasCode says whether the evidence tells something about the code itself, so that another
// piece of code of the same rule is told from it.
func (e *Evidence) hasCode() bool { return e.Fingerprint != "" || e.Snippet != "" }

// compare orders by place, and then by whatever differs, so that no order depends on the file.
func (e *Evidence) compare(o *Evidence) int {
	return cmp.Or(cmp.Compare(e.Line, o.Line), cmp.Compare(e.Column, o.Column),
		cmp.Compare(e.Version, o.Version), cmp.Compare(e.Message, o.Message), cmp.Compare(e.Snippet, o.Snippet),
		cmp.Compare(e.Fingerprint, o.Fingerprint), cmp.Compare(e.Resource, o.Resource),
		cmp.Compare(e.Rule, o.Rule), cmp.Compare(e.Path, o.Path))
}

// key is the part of the evidence that a rung asks for. ok is false where it is not known.
type key func(e *Evidence) (part Evidence, ok bool)

// alike is everything but the line and the column.
func alike(e *Evidence) (Evidence, bool) {
	part := *e
	part.Line, part.Column = 0, 0
	return part, true
}

func byFingerprint(e *Evidence) (Evidence, bool) {
	return Evidence{Rule: e.Rule, Fingerprint: e.Fingerprint}, e.Fingerprint != ""
}

// byPURL leaves the rule out: a scanner may rename it while the vulnerability stays.
func byPURL(e *Evidence) (Evidence, bool) {
	return Evidence{Vulnerability: e.Vulnerability, PURL: e.PURL}, e.Vulnerability != "" && e.PURL != ""
}

// byPackage is for packages whose URL is not known on both sides.
func byPackage(e *Evidence) (Evidence, bool) {
	return Evidence{Vulnerability: e.Vulnerability, Package: e.Package}, e.Vulnerability != "" && e.Package != ""
}

// byAlias is for a vulnerability that goes by another of its ids.
func byAlias(e *Evidence) (Evidence, bool) {
	return Evidence{Aliases: e.Aliases, PURL: e.PURL, Package: e.Package}, e.Aliases != "" &&
		(e.PURL != "" || e.Package != "")
}

func byResource(e *Evidence) (Evidence, bool) {
	return Evidence{Rule: e.Rule, Package: e.Package, Resource: e.Resource}, e.Resource != ""
}

func bySnippet(e *Evidence) (Evidence, bool) {
	return Evidence{Rule: e.Rule, Snippet: e.Snippet}, e.Snippet != ""
}

// byMessage is for evidence without code: where the code is known and another, the same words
// are said about something else.
func byMessage(e *Evidence) (Evidence, bool) {
	return Evidence{Rule: e.Rule, Package: e.Package, Message: e.Message}, e.Message != "" && !e.hasCode()
}

// byRule keeps packages apart: another package in the same file is another problem.
func byRule(e *Evidence) (Evidence, bool) { return Evidence{Rule: e.Rule, Package: e.Package}, true }

// at adds the path: the same evidence in the same file.
func at(k key) key {
	return func(e *Evidence) (Evidence, bool) {
		part, ok := k(e)
		part.Path = e.Path
		return part, ok
	}
}
