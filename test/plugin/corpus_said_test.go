package plugin_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// saidBy holds what a file reports, counted by hand: the severities as high, medium, low, and how many
// results name a vulnerability and a package.
type saidBy struct {
	high, medium, low         int
	vulnerabilities, packages int
	// words are the tool's own words for the severities.
	words []string
}

var said = map[string]saidBy{
	"checkov-1":                      {medium: 4, words: []string{"error"}},
	"codeql-1":                       {high: 11, medium: 4, low: 57, words: []string{"error", "recommendation", "warning"}},
	"cppcheck-1":                     {high: 4, medium: 3, words: []string{"warning"}},
	"dockle-1":                       {high: 1, low: 3, words: []string{"error", "note"}},
	"eslint-1":                       {medium: 5, words: []string{"warning"}},
	"flawfinder-1":                   {high: 2, medium: 1, low: 50, words: []string{"error", "note", "warning"}},
	"grype-1":                        {high: 10, medium: 20, low: 9, vulnerabilities: 39, packages: 39, words: []string{"critical", "high", "low", "medium"}},
	"hdf-heimdall-1":                 {high: 43, medium: 32, low: 91, words: []string{"", "error"}},
	"kics-1":                         {high: 2, words: []string{"error"}},
	"lgtm-2":                         {low: 3, words: []string{"recommendation", "warning"}},
	"osv-scanner-2":                  {high: 56, medium: 37, low: 4, vulnerabilities: 97, packages: 97, words: []string{"warning"}},
	"run-eslint-NodeGoat":            {medium: 9, words: []string{"warning"}},
	"run-gitleaks-redacted-NodeGoat": {high: 3, words: []string{""}},
	"run-gosec-go-test-bench":        {medium: 15, low: 2, words: []string{"LOW", "MEDIUM"}},
	"scorecard-2":                    {high: 1, medium: 1, words: []string{"High", "Medium"}},
	"semgrep-1":                      {medium: 1768, words: []string{"warning"}},
	"semgrep-4":                      {medium: 30, words: []string{"warning"}},
	"snyk-container-1":               {high: 1, low: 3, vulnerabilities: 4, packages: 4, words: []string{"High", "Low"}},
	"snyk-oss-1":                     {high: 6, medium: 6, low: 2, vulnerabilities: 10, packages: 14, words: []string{"High", "Low", "Medium"}},
	"snyk-trivy-multirun-1":          {high: 2, medium: 1, low: 1, vulnerabilities: 2, packages: 2, words: []string{"HIGH", "High", "LOW", "Medium"}},
	"trivy-1":                        {medium: 4, vulnerabilities: 4, packages: 4, words: []string{"MEDIUM"}},
}

func TestFindingsSayWhatTheToolSaid(t *testing.T) {
	for _, file := range needs.SARIF(t, "") {
		name := named(file)
		t.Run(name, func(t *testing.T) {
			want, known := said[name]
			if !known {
				t.Fatal("nobody has counted what this file says")
			}
			batches, err := collect(harness.File(t, file), importer.Choices{Commit: commitA})
			harness.Must(t, err)
			got, words := saidBy{}, map[string]bool{}
			for _, batch := range batches {
				for i := range batch.Results {
					r := &batch.Results[i]
					words[r.ToolSeverity] = true
					count(&got, r.Severity, r.Vulnerability != nil, r.Package != nil)
				}
			}
			got.words = slices.Sorted(maps.Keys(words))
			harness.Same(t, "what was read, compared with what was counted by hand", want, got, cmp.AllowUnexported(saidBy{}))
		})
	}
}

func count(s *saidBy, severity v1alpha1.Level, vulnerability, inPackage bool) {
	switch severity {
	case v1alpha1.LevelHigh:
		s.high++
	case v1alpha1.LevelMedium:
		s.medium++
	case v1alpha1.LevelLow:
		s.low++
	}
	if vulnerability {
		s.vulnerabilities++
	}
	if inPackage {
		s.packages++
	}
}

// statedFact matches a line that belongs into another member than the remediation.
var statedFact = regexp.MustCompile(`(?mi)^\W*(severity|confidence|package|resource|installed version|introduced through)\W*:`)

// These checks apply to every result of every tool.
func TestEveryCorpusFindingIsWellSaid(t *testing.T) {
	repository := builder.Repository("shop").In("org-acme").URL("https://github.com/acme/shop").Build()
	for _, file := range needs.SARIF(t, "") {
		t.Run(named(file), func(t *testing.T) {
			batches, err := collect(harness.File(t, file), importer.Choices{Commit: commitA})
			harness.Must(t, err)
			for _, batch := range batches {
				described, _, err := importer.Describe(batch, repository, fingerprints.Scope{})
				if err != nil || len(described) == 0 {
					t.Errorf("%s: nothing is described: %v", batch.Tool, err)
				}
				for _, d := range described {
					wellSaid(t, &d.Facts.Details)
				}
			}
		})
	}
}

func wellSaid(t *testing.T, d *v1alpha1.FindingDetails) {
	t.Helper()
	if strings.ContainsAny(d.Title, "\n\r") || strings.HasSuffix(d.Title, "[cut]") || strings.HasSuffix(d.Title, ",") {
		t.Errorf("the title %q is no whole sentence", d.Title)
	}
	if d.Remediation != "" && (strings.HasPrefix(d.Remediation, d.Title) || statedFact.MatchString(d.Remediation)) {
		t.Errorf("the remediation of %q does not say what to do: %q", d.Title, d.Remediation)
	}
	if l := d.Location; l != nil && strings.Contains(l.FilePath, "://") {
		t.Errorf("the file path %q is none", l.FilePath)
	}
	switch score := d.Score; {
	case score == "":
	case score >= "7.0" || score == "10.0":
		wantSeverity(t, d, v1alpha1.LevelHigh)
	case score >= "4.0":
		wantSeverity(t, d, v1alpha1.LevelMedium)
	default:
		wantSeverity(t, d, v1alpha1.LevelLow)
	}
}

func wantSeverity(t *testing.T, d *v1alpha1.FindingDetails, want v1alpha1.Level) {
	t.Helper()
	harness.Same(t, "the severity of "+d.Title+" with the score "+d.Score, want, d.Severity)
}
