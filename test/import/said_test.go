package import_test

import (
	"maps"
	"path/filepath"
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
		name := strings.TrimSuffix(filepath.Base(file), ".sarif")
		t.Run(name, func(t *testing.T) {
			want, known := said[name]
			if !known {
				t.Fatal("nobody has counted what this file says")
			}
			batches, err := collectFile(file, importer.Choices{Commit: commitA})
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
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sarif"), func(t *testing.T) {
			batches, err := collectFile(file, importer.Choices{Commit: commitA})
			harness.Must(t, err)
			for _, batch := range batches {
				described, _, err := importer.Describe(batch, repository, fingerprints.Scope{})
				if err != nil || len(described) == 0 {
					t.Errorf("%s: nothing is described: %v", batch.Tool, err)
				}
				for _, d := range described {
					wellSaid(t, &d.Details)
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
	if d.Severity != want {
		t.Errorf("%q has the score %s and is %s, want %s", d.Title, d.Score, d.Severity, want)
	}
}

const mixedTrivy = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"Trivy","rules":[
	{"id":"CVE-2019-1549","name":"OsPackageVulnerability","shortDescription":{"text":"a vulnerability"}},
	{"id":"AVD-AWS-0132","name":"Misconfiguration","shortDescription":{"text":"a misconfiguration"}},
	{"id":"aws-access-key-id","name":"Secret","shortDescription":{"text":"a secret"}}]}},"results":[
	{"ruleId":"CVE-2019-1549","message":{"text":"Package: openssl\nInstalled Version: 1\nSeverity: HIGH"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"image"}}}]},
	{"ruleId":"AVD-AWS-0132","message":{"text":"no encryption"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"s3.tf"},"region":{"startLine":3}}}]},
	{"ruleId":"aws-access-key-id","message":{"text":"found AKIAEXAMPLE1"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.env"},"region":{"startLine":1}}}]}]}]}`

func (p *project) categories() map[string]v1alpha1.FindingCategory {
	p.Helper()
	out := map[string]v1alpha1.FindingCategory{}
	for _, f := range p.findings() {
		if f.Spec.Closed == nil {
			out[f.Spec.RuleID] = f.Spec.Category
		}
	}
	return out
}

// A tool that detects several kinds of problems reports findings of several categories in one scan.
// Findings that an earlier version put into the scan's category keep their names and decisions.
func TestTheCategoryFollowsTheResult(t *testing.T) {
	p := newProject(t)
	want := map[string]v1alpha1.FindingCategory{
		"CVE-2019-1549": v1alpha1.CategoryPackage, "AVD-AWS-0132": v1alpha1.CategoryCode, "aws-access-key-id": v1alpha1.CategorySecret,
	}
	batches := collect(t, importer.Choices{Category: v1alpha1.CategoryPackage}, mixedTrivy)
	p.importsAll(importer.Options{}, batches)
	before := p.findings()
	p.did("the first import that tells categories apart", p.imports(mixedTrivy, commitA), counts{Updated: 3})
	harness.Same(t, "categories", want, p.categories())
	for name := range p.findings() {
		if _, there := before[name]; !there {
			t.Errorf("%s is a new finding, want those that were there", name)
		}
	}
	versions := p.versions()
	p.did("a rescan", p.imports(mixedTrivy, commitB), counts{Unchanged: 3})
	harness.Same(t, "versions after a rescan", versions, p.versions())
	s := p.imports(strings.ReplaceAll(mixedTrivy, "AVD-AWS-0132", "AVD-AWS-0133"), commitB)
	p.did("a finding of another category than the scan's is gone", s, counts{Created: 1, Unchanged: 2, Closed: 1})
}

// importsSecret imports a secret as another job of the same tool would: in a category that the job names.
func (p *project) importsSecret(more string) {
	p.Helper()
	file := `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"Trivy"}},` + more + `"results":[{"ruleId":"other-key","message":{"text":"x"}}]}]}`
	p.importsAll(importer.Options{}, collect(p, importer.Choices{Category: v1alpha1.CategorySecret}, file))
}

// Jobs of one tool that are separated by category remain separate.
func TestJobsOfSeveralCategoriesStayApart(t *testing.T) {
	p := newProject(t)
	p.importsSecret("")
	p.imports(mixedTrivy, commitA)
	want := map[string]v1alpha1.FindingCategory{
		"CVE-2019-1549": v1alpha1.CategoryPackage, "AVD-AWS-0132": v1alpha1.CategoryPackage,
		"aws-access-key-id": v1alpha1.CategoryPackage, "other-key": v1alpha1.CategorySecret,
	}
	harness.Same(t, "categories", want, p.categories())
}

// Naming the category that was derived before means the same job: its findings keep names and decisions.
func TestNamingTheCategoryOrphansNoDecision(t *testing.T) {
	p := newProject(t)
	p.imports(mixedTrivy, commitA)
	p.muteAll()
	p.importsAll(importer.Options{}, collect(t, importer.Choices{Category: v1alpha1.CategoryPackage}, mixedTrivy))
	p.wantState("the category is named", 3, 0, 3)
	want := map[string]v1alpha1.FindingCategory{
		"CVE-2019-1549": v1alpha1.CategoryPackage, "AVD-AWS-0132": v1alpha1.CategoryPackage, "aws-access-key-id": v1alpha1.CategoryPackage,
	}
	harness.Same(t, "categories", want, p.categories())
}

// A job owns the findings of its scans also before one of them has succeeded.
func TestAnUnfinishedJobKeepsItsFindings(t *testing.T) {
	p := newProject(t)
	p.imports(mixedTrivy, commitA)
	meanwhile := importer.Options{OnRecorded: func(*importer.Batch, string) {
		p.importsSecret(`"invocations":[{"executionSuccessful":false}],`)
	}}
	summaries := p.importsAll(meanwhile, collect(t, importer.Choices{Commit: commitB}, mixedTrivy))
	p.muteAll()
	for _, s := range append(summaries, p.imports(mixedTrivy, commitB)) {
		p.did("the other job", s, counts{Unchanged: 3})
	}
	p.importsSecret("")
	p.wantState("both jobs", 4, 0, 4)
}

// Each of two jobs that share a tool replaces only its own findings, whatever their category.
func TestJobsThatShareAToolLeaveEachOtherAlone(t *testing.T) {
	p := newProject(t)
	p.imports(mixedTrivy, commitA)
	p.muteAll()
	p.importsSecret("")
	p.imports(mixedTrivy, commitB)
	p.wantState("both jobs", 4, 0, 3)
	harness.Same(t, "decision about the other job's secret", v1alpha1.UserStatusOpen, p.titled("other-key").Spec.Triage.UserStatus)
}
