package importer

import (
	"regexp"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// credentialCWEs are weaknesses whose code shows a credential.
var credentialCWEs = []string{"CWE-259", "CWE-321", "CWE-798"}

// showsSecret says whether what a scanner quotes may be a credential, so that it is not
// kept. It may well be one in a report on code or packages too: some scanners look for
// several things at once, and a hard-coded password is a weakness of code.
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
	// shortestQuote is how long a line of a snippet is at least before it is looked for in
	// the message: "}" is in every message.
	shortestQuote = 4
	// mostQuotes bounds how many lines are looked for; of a message about more nothing is kept.
	mostQuotes = 200
)

// literal finds in a line of code what may be the credential, a string or a value that is not quoted,
// and the name that it is given.
var literal = regexp.MustCompile("(?:([A-Za-z_][\\w.-]{0,63})[\"']?\\s*(?::=|=>|[=:])\\s*)?" +
	"(?:[\"'`]([^\"'`]{4,})[\"'`]|[=:]\\s*([^\\s\"'`;,)]{6,}))")

var (
	// credentialName is what programs call credentials; also what people call them in prose.
	credentialName = regexp.MustCompile(`(?i)pass|pwd|secret|token|key|cred|auth|salt|private|login|conn`)
	// plainWords are words as prose has them: no digit, no sign but a dash, no capital inside.
	plainWords = regexp.MustCompile(`^[A-Za-z]?[a-z]+(?:[ -][a-z]+)*$`)
)

// withoutQuotes takes out of a message what it quotes of the snippet: a line, or a value. A word that
// prose has too, as "text" of `type = "text"`, is taken for a quotation only where the message puts it
// into quotation marks, unless the code calls it a credential.
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

// withoutValue takes a value out, which code calls by the name.
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
