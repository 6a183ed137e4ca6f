package readmodel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// traits are what a finding is asked for by that it does not show in the documented shapes. Findings of one rule,
// vulnerability and package have them in common, and they are kept once.
type traits struct {
	tool, category, rule string
	// vulnerabilities are the keys of the vulnerability's ids, a line each.
	vulnerabilities   string
	packageName, purl string
	// score in tenths, noScore where there is none.
	score int16
}

const noScore = -1

func traitsOf(spec *v1alpha1.FindingSpec) unique.Handle[traits] {
	t := traits{
		tool: spec.Tool, category: string(spec.Category), rule: spec.RuleID,
		vulnerabilities: strings.Join(findingquery.VulnerabilityKeys(spec.Vulnerability), "\n"),
		score:           noScore,
	}
	if spec.Package != nil {
		t.packageName, t.purl = spec.Package.Name, spec.Package.PURL
	}
	if tenths, ok := findingquery.Tenths(spec.Details.Score); ok {
		t.score = int16(tenths) //nolint:gosec // at most 100
	}
	return unique.Make(t)
}

func (t *traits) hasVulnerability(key string) bool {
	for known := range strings.SplitSeq(t.vulnerabilities, "\n") {
		if known == key {
			return true
		}
	}
	return false
}

// keys are the buckets of what the finding has, its tool aside; what it does not have is in none.
func (t *traits) keys() []index.Key {
	keys := make([]index.Key, 0, 8)
	add := func(f index.Field, value string) {
		if value != "" {
			keys = append(keys, index.Key{Field: f, Value: value})
		}
	}
	add(categoryField, t.category)
	add(ruleField, t.rule)
	for _, key := range findingquery.PackageKeys(t.packageName, t.purl) {
		add(packageField, key)
	}
	if t.score != noScore {
		add(scoreField, scoreKey(int(t.score)))
	}
	for key := range strings.SplitSeq(t.vulnerabilities, "\n") {
		add(vulnerabilityField, key)
	}
	return keys
}

// grades of the severities, the lowest first. Any other severity is below them.
var grades = []v1alpha1.Level{v1alpha1.LevelLow, v1alpha1.LevelMedium, v1alpha1.LevelHigh}

// gradeBytes is the length of a grade.
const gradeBytes = 4

// gradeOf has the order of how bad findings are: by severity, and by score where that is the same. Without a score
// is below all.
func gradeOf(severity v1alpha1.Level, score int16) string {
	return strconv.Itoa(slices.Index(grades, severity)+1) + scoreKey(int(score)-noScore)
}

// scoreKey has the order of the scores.
func scoreKey(tenths int) string { return fmt.Sprintf("%03d", tenths) }
