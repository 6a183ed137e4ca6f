package importer

import (
	"regexp"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// credentialCWEs are weaknesses whose code contains a credential.
var credentialCWEs = []string{"CWE-259", "CWE-321", "CWE-798"}

// showsSecret reports whether text quoted by the scanner may contain a credential, so that it must not be stored. This
// can happen in a report on code or packages too: some scanners look for several things at once, and a hard-coded
// password is a weakness of code.
func showsSecret(r *sarif.Result, category v1alpha1.FindingCategory) bool {
	if category == v1alpha1.CategorySecret || strings.EqualFold(r.Rule.Name, "secret") {
		return true
	}
	for _, tag := range r.Rule.Tags {
		if strings.EqualFold(tag, "secret") || strings.EqualFold(tag, "secrets") {
			return true
		}
	}
	return slices.ContainsFunc(r.CWEs, func(cwe string) bool { return slices.Contains(credentialCWEs, cwe) })
}

const (
	notKept = "[not kept]"
	// shortestQuote is the least length of a snippet line that is searched for in the message: "}" is in every message.
	shortestQuote = 4
	// mostQuotes bounds how many lines are searched for; with more lines nothing of the message is stored.
	mostQuotes = 200
)

// literal matches in a line of code a possible credential, a string or an unquoted value, and the name that it is
// assigned to.
var literal = regexp.MustCompile("(?:([A-Za-z_][\\w.-]{0,63})[\"']?\\s*(?::=|=>|[=:])\\s*)?" +
	"(?:[\"'`]([^\"'`]{4,})[\"'`]|[=:]\\s*([^\\s\"'`;,)]{6,}))")

var (
	// credentialName matches names of credentials in programs and in prose.
	credentialName = regexp.MustCompile(`(?i)pass|pwd|secret|token|key|cred|auth|salt|private|login|conn`)
	// plainWords matches words of prose: no digit, no punctuation but a dash, no capital inside.
	plainWords = regexp.MustCompile(`^[A-Za-z]?[a-z]+(?:[ -][a-z]+)*$`)
)

// withoutQuotes removes from a message what it quotes of the snippet: a line, or a value. A word that also occurs in
// prose, such as "text" of `type = "text"`, counts as a quotation only if the message puts it into quotation marks, or
// the code's name for it is that of a credential.
func withoutQuotes(message, snippet string) string {
	quotes := 0
	for quoted := range strings.Lines(snippet) {
		if quoted = strings.TrimSpace(quoted); len(quoted) < shortestQuote {
			continue
		}
		if quotes++; quotes > mostQuotes {
			return ""
		}
		message = withoutValue(message, quoted, "")
		for _, match := range literal.FindAllStringSubmatch(quoted, mostQuotes) {
			message = withoutValue(message, match[2]+match[3], match[1])
		}
	}
	return message
}

// withoutValue removes a value from a message; name is its name in the code.
func withoutValue(message, value, name string) string {
	if value == "" {
		return message
	}
	prose := plainWords.MatchString(value)
	named := credentialName.MatchString(name)
	switch {
	case !prose:
		return strings.ReplaceAll(message, value, notKept)
	case named && !credentialName.MatchString(value):
		return regexp.MustCompile(`\b`+regexp.QuoteMeta(value)+`\b`).ReplaceAllString(message, notKept)
	}
	for _, mark := range []string{`"`, "'", "`"} {
		message = strings.ReplaceAll(message, mark+value+mark, mark+notKept+mark)
	}
	return message
}
