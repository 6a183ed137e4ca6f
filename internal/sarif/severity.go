package sarif

import (
	"regexp"
	"strconv"
	"strings"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// severity takes the first of the security severities, which are a score from 0 to 10 or
// a word, that says anything, else the level. Anything may stand there: "undefined",
// "null" and 0 say nothing.
func severity(level string, securitySeverities ...string) appsecv1alpha1.Level {
	for _, s := range securitySeverities {
		if severity, ok := securitySeverity(s); ok {
			return severity
		}
	}
	switch level {
	case "error":
		return appsecv1alpha1.LevelHigh
	case "warning":
		return appsecv1alpha1.LevelMedium
	default:
		return appsecv1alpha1.LevelLow
	}
}

func securitySeverity(s string) (appsecv1alpha1.Level, bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	if score, err := strconv.ParseFloat(s, 64); err == nil {
		switch {
		case score >= 7: // from 9.0 on critical, which this vocabulary counts as high
			return appsecv1alpha1.LevelHigh, true
		case score >= 4:
			return appsecv1alpha1.LevelMedium, true
		case score > 0:
			return appsecv1alpha1.LevelLow, true
		}
		return "", false
	}
	switch s {
	case "critical", "high", "important":
		return appsecv1alpha1.LevelHigh, true
	case "medium", "moderate":
		return appsecv1alpha1.LevelMedium, true
	case "low", "minor", "negligible":
		return appsecv1alpha1.LevelLow, true
	}
	return "", false
}

// score returns the first of the values that is a score above 0 and at most 10, with one digit after the
// point, or "". Anything may stand there: see severity.
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
	// severityTag is a tag that is a severity and nothing else, as gosec and Trivy give.
	severityTag = regexp.MustCompile(`^(?i:critical|high|medium|moderate|low|negligible|informational|info|unknown)$`)
	// severityInTitle is how Snyk begins a rule's title; severityInSentence how grype begins a message.
	severityInTitle    = regexp.MustCompile(`^(?i:(critical|high|medium|low)) severity\b`)
	severityInSentence = regexp.MustCompile(`^An? (?i:(critical|high|medium|low|negligible|unknown)) vulnerability in\b`)
)

// longestWord bounds the tool's own word for a severity, in bytes.
const longestWord = 64

// toolSeverity returns the tool's own word for the severity of a result: a property, what the message
// or the rule's help say, a tag; else the level.
func toolSeverity(wire *wireResult, rule *Rule, message, level string) string {
	words := []string{
		string(wire.Properties.Severity), string(wire.Properties.IssueSeverity), notNumber(string(wire.Properties.SecuritySeverity)),
		labelsOf(message)["severity"], submatch(severityInSentence, message), submatch(severityInTitle, rule.ShortDescription),
		rule.severityWord, labelsOf(rule.Help)["severity"],
	}
	for _, tag := range rule.Tags {
		if severityTag.MatchString(tag) {
			words = append(words, tag)
		}
	}
	for _, word := range append(words, notNumber(rule.securitySeverity), rule.problemSeverity, level) {
		if word = strings.TrimSpace(word); word != "" && len(word) <= longestWord {
			return word
		}
	}
	return ""
}

// notNumber returns a security severity that is a word that says something.
func notNumber(s string) string {
	if _, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
		return ""
	}
	if _, known := securitySeverity(s); known {
		return s
	}
	return ""
}

func submatch(pattern *regexp.Regexp, s string) string {
	if m := pattern.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}
