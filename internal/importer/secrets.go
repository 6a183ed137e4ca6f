package importer

import (
	"regexp"
	"slices"
	"strings"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/sarif"
)

// credentialCWEs are weaknesses whose code shows a credential.
var credentialCWEs = []string{"CWE-259", "CWE-321", "CWE-798"}

// showsSecret says whether what a scanner quotes may be a credential, so that it is not
// kept. It may well be one in a report on code or packages too: some scanners look for
// several things at once, and a hard-coded password is a weakness of code.
func showsSecret(r *sarif.Result, category appsecv1alpha1.FindingCategory) bool {
	if category == appsecv1alpha1.CategorySecret || strings.EqualFold(r.Rule.Name, "secret") {
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

// literal finds in a line of code what may be the credential: a string, or a value that is
// not quoted.
var literal = regexp.MustCompile("[\"'`]([^\"'`]{4,})[\"'`]|[=:]\\s*([^\\s\"'`;,)]{6,})")

// withoutQuotes takes out of a message what it quotes of the snippet: a line, or a value.
func withoutQuotes(message, snippet string) string {
	quotes := 0
	for quoted := range strings.Lines(snippet) {
		if quoted = strings.TrimSpace(quoted); len(quoted) < shortestQuote {
			continue
		}
		if quotes++; quotes > mostQuotes {
			return ""
		}
		message = strings.ReplaceAll(message, quoted, notKept)
		for _, match := range literal.FindAllStringSubmatch(quoted, mostQuotes) {
			if value := match[1] + match[2]; value != "" {
				message = strings.ReplaceAll(message, value, notKept)
			}
		}
	}
	return message
}
