// Package recognition decides which known finding each result of a scan is, so that triage stays with its problem when
// the scanner rewords a message, a version is raised, a file is renamed or code moves.
//
// It is a ladder: each rung pairs the results and findings that agree in one kind of evidence, the strongest first, and
// leaves the others to the next rung. Pairs are one to one, and ambiguous evidence pairs nothing. The package does no
// I/O. Its result does not depend on the order of results with different evidence. Results with equal evidence are
// taken in order, unless others have the facts of a finding: see Facts.
package recognition

import "cmp"

// Evidence is what a finding is recognised by. An empty string is unknown, and agrees with nothing.
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
	// Aliases is one canonical id for the vulnerability and all its other ids. It is equal for a result and a finding that
	// have any id in common, except for ids of advisories.
	Aliases string
	// IDs are the ids that stand for this vulnerability alone, one per line. They pair nothing, and only resolve a doubt.
	IDs string
	// Resource is the logical location; for infrastructure, the resource.
	Resource string
	// Snippet identifies the code at the location, Message the scanner's message.
	Snippet, Message string
	// Masked is set instead of Snippet if the tool masks a secret in the code. Other secrets may have the same masked
	// code. So equal code confirms nothing, and only decides among several at one place; different code raises a doubt.
	Masked string
	// Suppressed in the source. It confirms nothing, and only decides where all else fits equally well: a result that was
	// suppressed when it was first reported has no finding.
	Suppressed bool
}

// Code returns what identifies the code at the location, masked or not.
func (e *Evidence) Code() string { return cmp.Or(e.Snippet, e.Masked) }

// Known is a finding that an earlier scan reported.
type Known struct {
	Evidence
	// Closed findings are recognised only by strong evidence, and after open ones.
	Closed bool
	// Unfinished is the position, from 1 and the oldest first, of the scan that last wrote the open finding, among the
	// scans that did not succeed and that no later success of their job has repeated; 0 if it is not one of these.
	Unfinished int
	// CutOff means that the import of that scan was cut off, and that no later one of its job was carried out, not even
	// of an incomplete scan: when it is repeated, its result at the same place is this finding.
	CutOff bool
	// Added means that such an import created the finding because it recognised none. When it is repeated, the finding's
	// result still counts when evidence is checked for ambiguity, because it took part in the first decision.
	Added bool
	// Foreign findings belong to an analysis that the scan does not contain, or to a project that was not scanned: a
	// result in another file is none of them.
	Foreign bool
	// Legacy findings come from a version that stored no evidence, so little is known about them.
	Legacy bool
	// Cut means that only the beginning of the fingerprint is known.
	Cut bool
	// Presumed findings come from a version that gave several files one path: Path is the file in the scan to which they
	// most likely belong.
	Presumed bool
	// Decision is equal for findings with the same decision; "" if there is none. It pairs nothing, but counts for doubts
	// between similar findings.
	Decision string
}

// hasCode reports whether the evidence identifies the code itself, so that other code of the same rule can be
// distinguished.
func (e *Evidence) hasCode() bool { return e.Fingerprint != "" || e.Snippet != "" }

// place is a line and a column of the file.
type place struct{ line, column int32 }

func placeOf(e *Evidence) place { return place{e.Line, e.Column} }

// compare orders by place and then by everything else, so that the order in the file does not matter. A fingerprint may
// contain the path, so it comes after what a rename does not change.
func (e *Evidence) compare(o *Evidence) int {
	return cmp.Or(cmp.Compare(e.Line, o.Line), cmp.Compare(e.Column, o.Column),
		cmp.Compare(e.Version, o.Version), cmp.Compare(e.Message, o.Message), cmp.Compare(e.Snippet, o.Snippet),
		cmp.Compare(e.Rule, o.Rule), cmp.Compare(e.Resource, o.Resource), cmp.Compare(e.PURL, o.PURL),
		cmp.Compare(e.Package, o.Package), cmp.Compare(e.Fingerprint, o.Fingerprint), cmp.Compare(e.Path, o.Path),
		cmp.Compare(e.Vulnerability, o.Vulnerability), cmp.Compare(e.Aliases, o.Aliases),
		cmp.Compare(e.IDs, o.IDs), cmp.Compare(e.Masked, o.Masked),
		falseFirst(e.Suppressed, o.Suppressed))
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// key returns the part of the evidence that a rung compares. ok is false if that is unknown.
type key func(e *Evidence) (part Evidence, ok bool)

func alike(e *Evidence) (Evidence, bool) { return unplaced(e), true }

// unplaced returns everything that pairs but the line and the column.
func unplaced(e *Evidence) Evidence {
	part := placed(e)
	part.Line, part.Column = 0, 0
	return part
}

// placed returns everything that confirms a pair: all but the ids, masked code and the suppression.
func placed(e *Evidence) Evidence {
	part := *e
	part.IDs, part.Masked, part.Suppressed = "", "", false
	return part
}

func byFingerprint(e *Evidence) (Evidence, bool) {
	return Evidence{Rule: e.Rule, Fingerprint: e.Fingerprint}, e.Fingerprint != ""
}

// byPURL ignores the rule: a scanner may rename the rule while the vulnerability stays.
func byPURL(e *Evidence) (Evidence, bool) {
	return Evidence{Vulnerability: e.Vulnerability, PURL: e.PURL}, e.Vulnerability != "" && e.PURL != ""
}

// byPackage is for packages without a URL on one side.
func byPackage(e *Evidence) (Evidence, bool) {
	return Evidence{Vulnerability: e.Vulnerability, Package: e.Package}, e.Vulnerability != "" && e.Package != ""
}

// byAlias is for a vulnerability that is now reported under another of its ids.
func byAlias(e *Evidence) (Evidence, bool) {
	return Evidence{Aliases: e.Aliases, PURL: e.PURL, Package: e.Package}, e.Aliases != "" &&
		(e.PURL != "" || e.Package != "")
}

// byAliasAndVersion distinguishes the versions of a package.
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

// ruleAt returns the rule and the file.
func ruleAt(e *Evidence) Evidence { return Evidence{Rule: e.Rule, Path: e.Path} }

// byRule keeps packages apart, because another package in the same file is another problem.
func byRule(e *Evidence) (Evidence, bool) { return Evidence{Rule: e.Rule, Package: e.Package}, true }

// byNothing makes everything agree.
func byNothing(*Evidence) (Evidence, bool) { return Evidence{}, true }

// at adds the path to a key, which then compares within a file.
func at(k key) key {
	return func(e *Evidence) (Evidence, bool) {
		part, ok := k(e)
		part.Path = e.Path
		return part, ok
	}
}

// inPlace adds the line and the column to a key.
func inPlace(k key) key {
	return func(e *Evidence) (Evidence, bool) {
		part, ok := k(e)
		part.Line, part.Column = e.Line, e.Column
		return part, ok
	}
}

// tied adds to a key what best distinguishes those that agree in it.
func tied(k key) key {
	return func(e *Evidence) (Evidence, bool) {
		part, ok := k(e)
		part.Version, part.Fingerprint, part.Snippet, part.Message = e.Version, e.Fingerprint, e.Snippet, e.Message
		return part, ok
	}
}
