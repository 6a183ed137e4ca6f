package policies

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/appsec-dev/findings-operator/apiserver/console/findings"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
)

// leftOut is a filter of the list of findings, or a decision made there, that cannot be expressed in a policy.
type leftOut struct{ Label, Value, Why string }

const (
	whyDecided  = "A policy decides only about findings that are not closed and that no person has decided about."
	whyPolicies = "An expression cannot read what other policies decide, so that no policy depends on another."
	whyUnread   = "An expression reads the scanner's facts, the project and the repository, but not this."
	whyNoValue  = "This value cannot be compared."

	whyWithdrawn = "A policy mutes or confirms, and cannot withdraw people's decisions: check which of the two is meant."
)

// terms translate filters of the list of findings into a term, in the order of the expression. ok is false for a
// value that cannot be compared.
var terms = []struct {
	filter string
	term   func(value string) (term string, ok bool)
}{
	{"severity", is("finding.severity")},
	{"category", is("finding.category")},
	{"tool", is("finding.tool")},
	{"rule", is("finding.ruleID")},
	{"class", is("finding.class")},
	{"file", inFile},
	{"vulnerability", hasVulnerability},
	{"package", ofPackage},
	{"min_score", scoredAtLeast},
	{"repo_id", is("repository.name")},
	{"project_id", is("project.name")},
	{"owner", is("project.owner")},
	{"created_since", found(">=")},
	{"created_until", found("<")},
	{"text", hasWords},
}

// unread are filters that no expression can use, and why; any other without a term has whyUnread. implied is the value
// that every policy asks for; empty if there is none.
var unread = []struct{ filter, implied, why string }{
	{"status", "open", whyDecided}, {"user_status", "open", whyDecided}, {"stale", "", whyDecided},
	{"policy", "", whyPolicies},
}

// ruleOf translates the filters of a list of findings into the expression of a policy. It also returns the filters that
// cannot be translated, so that they are not silently ignored.
func ruleOf(filters url.Values) (match string, left []leftOut) {
	var all []string
	others := maps.Clone(filters)
	for _, t := range terms {
		value := filters.Get(t.filter)
		others.Del(t.filter)
		if value == "" {
			continue
		}
		if term, ok := t.term(value); ok {
			all = append(all, term)
		} else {
			label, _ := findings.Asked(t.filter, value)
			left = append(left, leftOut{label, value, whyNoValue})
		}
	}
	for _, u := range unread {
		value := filters.Get(u.filter)
		others.Del(u.filter)
		if value != "" && value != u.implied {
			label, word := findings.Asked(u.filter, value)
			left = append(left, leftOut{label, word, u.why})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if value := others.Get(name); value != "" && findings.IsFilter(name) {
			label, word := findings.Asked(name, value)
			left = append(left, leftOut{label, word, whyUnread})
		}
	}
	return strings.Join(all, " &&\n"), left
}

// is compares a member with a string.
func is(member string) func(string) (string, bool) {
	return func(value string) (string, bool) { return member + " == " + quoted(value), true }
}

// inFile selects a file, or a folder if the value ends in a slash.
func inFile(value string) (string, bool) {
	if strings.HasSuffix(value, "/") {
		return "finding.path.startsWith(" + quoted(value) + ")", true
	}
	return "finding.path == " + quoted(value), true
}

// hasVulnerability selects a vulnerability's id, as the main id or an alias, ignoring case.
func hasVulnerability(value string) (string, bool) {
	id := quoted(strings.ToUpper(value))
	return "(finding.vulnerability.id.upperAscii() == " + id +
		" || finding.vulnerability.aliases.exists(alias, alias.upperAscii() == " + id + "))", true
}

// ofPackage selects a package by its name, ignoring case, or by its package URL; one without a version matches every
// version. Tools write the @ of a scope as it is or encoded, and an expression cannot replace one by the other.
func ofPackage(value string) (string, bool) {
	if !strings.HasPrefix(value, "pkg:") {
		return "finding.package.name.lowerAscii() == " + quoted(strings.ToLower(value)), true
	}
	ends := "['@', '?', '#']"
	if strings.HasSuffix(value, "/") {
		ends = "['?', '#']" // after a slash @ begins a scope, and not a version
	}
	plain := strings.ReplaceAll(value, "/%40", "/@")
	var all []string
	for _, purl := range slices.Compact([]string{plain, strings.ReplaceAll(plain, "/@", "/%40")}) {
		all = append(all, "finding.package.purl == "+quoted(purl)+
			" || "+ends+".exists(end, finding.package.purl.startsWith("+quoted(purl)+" + end))")
	}
	return "(" + strings.Join(all, " || ") + ")", true
}

func scoredAtLeast(value string) (string, bool) {
	score, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return "", false
	}
	number := strconv.FormatFloat(score, 'f', -1, 64)
	if !strings.Contains(number, ".") {
		number += ".0" // otherwise it would be an integer
	}
	return "has(finding.score) && finding.score >= " + number, true
}

// found compares the time when a finding was found.
func found(operator string) func(string) (string, bool) {
	return func(value string) (string, bool) {
		at, err := time.Parse(time.RFC3339, strings.ToUpper(value))
		if err != nil {
			return "", false
		}
		return fmt.Sprintf("finding.detectedAt %s timestamp('%s')", operator, at.UTC().Format(time.RFC3339Nano)), true
	}
}

// hasWords selects words in title or path. Expressions can only change the case of ASCII letters, and cannot compose
// characters as the list does.
func hasWords(value string) (string, bool) {
	var all []string
	for word := range strings.FieldsSeq(value) {
		w := quoted(strings.Map(lowerASCII, word))
		all = append(all, "(finding.title.lowerAscii().contains("+w+") || finding.path.lowerAscii().contains("+w+"))")
	}
	return strings.Join(all, " &&\n"), len(all) > 0
}

func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return unicode.ToLower(r)
	}
	return r
}

// quoted returns a text as a string literal of an expression. Its invisible characters become escapes, which mean the
// same there.
func quoted(text string) string {
	var out strings.Builder
	out.WriteByte('\'')
	for _, r := range text {
		switch {
		case r == '\\' || r == '\'':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('\'')
	return ui.Visible(out.String())
}
