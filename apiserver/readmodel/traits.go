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

// traits are the filterable properties of a finding that the documented shapes do not show. Findings of one
// rule, vulnerability and package share them in memory.
type traits struct {
	tool, category, rule string
	// vulnerabilities are the keys of the vulnerability's ids, joined by betweenKeys.
	vulnerabilities   string
	packageName, purl string
	// score in tenths, or noScore.
	score int16
}

const noScore = -1

// betweenKeys separates keys of vulnerabilities. It is not valid UTF-8, so no text contains it.
const betweenKeys = "\xff"

func traitsOf(spec *v1alpha1.FindingSpec) unique.Handle[traits] {
	t := traits{
		tool: spec.Tool, category: string(spec.Category), rule: spec.RuleID,
		vulnerabilities: strings.Join(findingquery.VulnerabilityKeys(spec.Vulnerability), betweenKeys),
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
	for known := range strings.SplitSeq(t.vulnerabilities, betweenKeys) {
		if known == key {
			return true
		}
	}
	return false
}

// keys returns the buckets of the finding's traits, except for its tool. Missing traits have no bucket.
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
	for key := range strings.SplitSeq(t.vulnerabilities, betweenKeys) {
		add(vulnerabilityField, key)
	}
	return keys
}

// grades of the severities, the lowest first. Any other severity ranks below them.
var grades = []v1alpha1.Level{v1alpha1.LevelLow, v1alpha1.LevelMedium, v1alpha1.LevelHigh}

// gradeBytes is the length of a grade.
const gradeBytes = 4

// gradeOf returns a text that sorts by severity and then by score. A missing score ranks lowest.
func gradeOf(severity v1alpha1.Level, score int16) string {
	return strconv.Itoa(slices.Index(grades, severity)+1) + scoreKey(int(score)-noScore)
}

// scoreKey returns a text that sorts as the scores do.
func scoreKey(tenths int) string { return fmt.Sprintf("%03d", tenths) }
