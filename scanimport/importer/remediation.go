package importer

import (
	"regexp"
	"strings"

	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// remediation says what to do, and where more is said of it: what the rule advises, the fixes that
// the tool offers, else the version that the tool calls fixed.
func remediation(r *sarif.Result, message string, secret bool) string {
	parts := []string{}
	advice := paragraph(r.Rule.Advice())
	if webAddress.MatchString(advice) {
		advice = ""
		parts = append(parts, "See "+line(r.Rule.Advice()))
	}
	if !strings.Contains(message, advice) {
		parts = append(parts, advice)
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
	// webAddress is a help that only says where it is.
	webAddress = regexp.MustCompile(`^https?://\S+$`)
	// projectPage is the tool's own page, which says nothing about the rule.
	projectPage = regexp.MustCompile(`^https?://(?:www\.)?(?:github|gitlab)\.com/[^/#?]+/[^/#?]+/?$`)
)
