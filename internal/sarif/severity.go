package sarif

import (
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
