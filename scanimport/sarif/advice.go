package sarif

import (
	"regexp"
	"strings"
)

// Advice returns the part of the rule's help that explains what to do; empty if the help only describes the problem, as
// the descriptions do.
func (r *Rule) Advice() string {
	help := withoutAdvert(r.Help)
	for _, text := range []string{withoutAdvert(r.helpMarkdown), help} {
		if section := adviceSection(text); section != "" {
			return section
		}
	}
	if headings.MatchString(help) {
		return "" // a help text that has headings, but none for advice
	}
	rest := strings.Trim(withoutLabels(help), " \t\r\n\"")
	for _, known := range []string{r.FullDescription, r.ShortDescription, r.Name} {
		if known = strings.TrimSpace(known); known != "" {
			rest = strings.TrimSpace(strings.TrimPrefix(rest, known))
		}
	}
	for _, known := range []string{r.FullDescription, r.ShortDescription} {
		if strings.Contains(strings.Join(strings.Fields(known), " "), strings.Join(strings.Fields(rest), " ")) {
			return ""
		}
	}
	return rest
}

var (
	headings = regexp.MustCompile(`(?m)^#{1,6} `)
	// heading matches "## Remediation", and scorecard's "**Remediation (click "Show more" below)**:".
	heading = regexp.MustCompile(`^(#{1,6}|\*\*) *([^#*]{1,80}?) *(?:\*\*:?|#*:?)\s*$`)
	// boldLabel matches a bold label followed by its value, which ends a section under a bold heading.
	boldLabel = regexp.MustCompile(`^\*\*[^*]{1,80}\*\*:`)
	// advises matches headings of advice.
	advises = regexp.MustCompile(`(?i)^(?:how (?:to|do i|can i) (?:fix|remediate|resolve|solve)\b.*|(?:remediations?|recommendations?|solutions?` +
		`|recommended (?:fix|action|actions|solution)|mitigations?|resolution|fix|advice)(?: \(.*\))?)[:?]?$`)
)

// adviceSection returns the text under the first heading of advice, up to the next heading of the same or a higher
// level.
func adviceSection(help string) string {
	var section strings.Builder
	level, inside := "", false
	for line := range strings.Lines(help) {
		trimmed := strings.TrimSpace(line)
		m := heading.FindStringSubmatch(trimmed)
		switch {
		case !inside && m != nil && advises.MatchString(strings.TrimSpace(m[2])):
			level, inside = m[1], true
			continue
		case inside && (m != nil && endsSection(level, m[1]) || level == "**" && boldLabel.MatchString(trimmed)):
			return strings.TrimSpace(section.String())
		}
		if inside {
			section.WriteString(line)
		}
	}
	return strings.TrimSpace(section.String())
}

func endsSection(level, next string) bool {
	if level == "**" || next == "**" {
		return level == next || next != "**"
	}
	return len(next) <= len(level)
}

// withoutAdvert drops the line with which Semgrep advertises its paid edition in every rule's help.
func withoutAdvert(help string) string {
	if !strings.Contains(help, "sg.run/pro") {
		return help
	}
	var rest strings.Builder
	for line := range strings.Lines(help) {
		if !strings.Contains(line, "sg.run/pro") {
			rest.WriteString(line)
		}
	}
	return rest.String()
}

// factLabels holds labels whose value is stored elsewhere or gives no advice.
var factLabels = map[string]bool{
	"severity": true, "confidence": true, "package": true, "installed version": true, "version": true, "fixed version": true,
	"fix version": true, "type": true, "location": true, "data namespace": true, "link": true, "check": true, "message": true,
	"resource": true, "vulnerability": true, "package manager": true, "vulnerable module": true, "module": true,
	"introduced through": true, "artifact": true, "match": true, "secret": true, "category": true, "cvss": true, "license": true,
}

// subject matches the first line of Trivy's and grype's help: "Vulnerability CVE-2019-1549".
var subject = regexp.MustCompile(`^(?:Vulnerability|Misconfiguration|Secret|License) \S+$`)

// withoutLabels drops the lines that state a fact with one of these labels.
func withoutLabels(help string) string {
	var rest strings.Builder
	for line := range strings.Lines(help) {
		label, _, found := strings.Cut(line, ":")
		label = strings.ToLower(strings.Trim(label, " \t*-_"))
		if found && factLabels[label] || subject.MatchString(strings.TrimSpace(line)) {
			continue
		}
		rest.WriteString(line)
	}
	return rest.String()
}
