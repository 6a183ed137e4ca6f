package importer

import (
	"regexp"
	"strings"

	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// remediation explains what to do and where to read more: the rule's advice, and the fixes that the tool offers, or
// else the fixed version that it names.
func remediation(r *sarif.Result, message string, rule *ruleTexts, secret bool) string {
	parts := []string{rule.link}
	if !strings.Contains(message, rule.advice) {
		parts = append(parts, rule.advice)
	}
	if !secret {
		for _, fix := range r.Fixes {
			parts = append(parts, paragraph(fix.Description))
		}
	}
	if len(distinct(parts...)) == 0 && r.Package != nil && r.Package.FixedVersion != "" {
		parts = append(parts, "Upgrade "+line(r.Package.Name)+" to "+line(r.Package.FixedVersion)+".")
	}
	uri := line(r.Rule.HelpURI)
	if uri != "" && !projectPage.MatchString(uri) && !strings.Contains(strings.Join(parts, "\n"), uri) {
		parts = append(parts, "See "+uri)
	}
	return strings.Join(distinct(parts...), "\n\n")
}

var (
	// webAddress matches a help text that is only a link.
	webAddress = regexp.MustCompile(`^https?://\S+$`)
	// projectPage matches the home page of a tool, which does not describe the rule.
	projectPage = regexp.MustCompile(`^https?://(?:www\.)?(?:github|gitlab)\.com/[^/#?]+/[^/#?]+/?$`)
)
