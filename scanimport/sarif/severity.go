package sarif

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// ratings describe a tool that does not rate by SARIF's levels.
type ratings struct {
	// sameForAll is the level that the tool writes for every result, which makes it meaningless.
	sameForAll string
	// unrated is the severity of a result that the tool does not rate; empty: medium.
	unrated v1alpha1.Level
}

// toolRatings holds the tools with misleading levels, by lower-case prefix of their names. A score or a word of the
// tool takes precedence.
var toolRatings = []struct {
	tool string
	ratings
}{
	// Without its platform Checkov does not rate, and always writes error, like Polyspace.
	{"checkov", ratings{sameForAll: "error"}},
	{"polyspace", ratings{sameForAll: "error"}},
	// Secret scanners do not rate: any secret may grant access until somebody has checked it.
	{"gitleaks", ratings{unrated: v1alpha1.LevelHigh}},
	{"trufflehog", ratings{unrated: v1alpha1.LevelHigh}},
	{"detect-secrets", ratings{unrated: v1alpha1.LevelHigh}},
	{"noseyparker", ratings{unrated: v1alpha1.LevelHigh}},
	{"nosey parker", ratings{unrated: v1alpha1.LevelHigh}},
	{"kingfisher", ratings{unrated: v1alpha1.LevelHigh}},
}

func ratingsOf(tool string) ratings {
	tool = strings.ToLower(strings.TrimSpace(tool))
	for _, known := range toolRatings {
		if strings.HasPrefix(tool, known.tool) {
			return known.ratings
		}
	}
	return ratings{}
}

// rated holds everything that a file contains about the severity of a result.
type rated struct {
	// securitySeverities of the result and its rule: a score from 0 to 10, or a word.
	securitySeverities []string
	// word is the tool's own word; score is that of securitySeverities, or else a CVSS base score.
	word, score string
	// given is the level in the file, empty if there is none; level is the one that SARIF derives.
	given, level string
}

// severity uses the first meaningful value: the security severities, the tool's own word, the CVSS score, the level.
// The fields may hold anything: "undefined", "null" and 0 are ignored.
func (t ratings) severity(r rated) v1alpha1.Level {
	for _, s := range append(slices.Clone(r.securitySeverities), r.word, r.score) {
		if severity, ok := securitySeverity(s); ok {
			return severity
		}
	}
	unrated := cmp.Or(t.unrated, v1alpha1.LevelMedium)
	switch {
	case r.given != "" && r.given == t.sameForAll, r.given == "" && r.level == "warning":
		return unrated
	case r.level == "error":
		return v1alpha1.LevelHigh
	case r.level == "warning":
		return v1alpha1.LevelMedium
	default:
		return v1alpha1.LevelLow
	}
}

// Rates reports whether a security severity, as a score or a word, stands for that severity.
func Rates(given string, severity v1alpha1.Level) bool {
	read, ok := securitySeverity(given)
	return ok && read == severity
}

func securitySeverity(s string) (v1alpha1.Level, bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	if score, err := strconv.ParseFloat(s, 64); err == nil {
		switch {
		case score >= 7: // from 9.0 on it is critical, which counts as high here
			return v1alpha1.LevelHigh, true
		case score >= 4:
			return v1alpha1.LevelMedium, true
		case score > 0:
			return v1alpha1.LevelLow, true
		}
		return "", false
	}
	switch s {
	case "critical", "high", "important", "blocker", "severe":
		return v1alpha1.LevelHigh, true
	case "medium", "moderate", "major":
		return v1alpha1.LevelMedium, true
	case "low", "minor", "negligible", "info", "informational":
		return v1alpha1.LevelLow, true
	}
	return "", false
}

// score returns the first of the values that is a score above 0 and at most 10, with one decimal, or "". The values may
// be anything: see severity.
func score(values ...string) string {
	for _, s := range values {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err == nil && f > 0 && f <= 10 {
			return strconv.FormatFloat(max(f, 0.1), 'f', 1, 64)
		}
	}
	return ""
}

var (
	// severityTag matches a tag that is only a severity, as gosec and Trivy write.
	severityTag = regexp.MustCompile(`^(?i:critical|high|medium|moderate|low|negligible|informational|info|unknown)$`)
	// severityInTitle matches how Snyk begins a rule's title; severityInSentence how grype begins a message.
	severityInTitle    = regexp.MustCompile(`^(?i:(critical|high|medium|low)) severity\b`)
	severityInSentence = regexp.MustCompile(`^An? (?i:(critical|high|medium|low|negligible|unknown)) vulnerability in\b`)
)

// maxWord bounds the tool's own word for a severity, in bytes.
const maxWord = 64

// toolSeverity returns the tool's own word for the severity of a result, from a property, the message, the rule's help
// or a tag; empty if there is none. A number is not a word: Salesforce Code Analyzer counts from 1 (critical) to 5
// (info).
func toolSeverity(wire *wireResult, rule *Rule, message string) string {
	words := []string{
		string(wire.Properties.Severity), string(wire.Properties.IssueSeverity),
		knownWord(string(wire.Properties.SecuritySeverity)),
		factsOf(message)["severity"],
		submatch(severityInSentence, message), submatch(severityInTitle, rule.ShortDescription),
		rule.severityWord, rule.labelled()["severity"],
	}
	for _, tag := range rule.Tags {
		if len(tag) <= maxWord && severityTag.MatchString(tag) {
			words = append(words, tag)
		}
	}
	for _, word := range append(words, knownWord(rule.securitySeverity), rule.problemSeverity) {
		if word = strings.TrimSpace(word); word != "" && len(word) <= maxWord && !isNumber(word) {
			return word
		}
	}
	return ""
}

// knownWord returns a security severity if it is a known word, not a number.
func knownWord(s string) string {
	if _, known := securitySeverity(s); known && !isNumber(s) {
		return s
	}
	return ""
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return err == nil
}

func submatch(pattern *regexp.Regexp, s string) string {
	if m := pattern.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}
