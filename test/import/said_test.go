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
			if d := cmp.Diff(want, got, cmp.AllowUnexported(saidBy{})); d != "" {
				t.Errorf("(-counted by hand +read):\n%s", d)
			}
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
	_, err := p.tryImport(importer.Options{}, batches)
	p.must(err)
	before := p.findings()
	if s := p.imports(mixedTrivy, commitA); s.Updated != 3 || s.Created != 0 || s.Closed != 0 {
		t.Errorf("the first import that tells categories apart: %+v, want 3 updated", *s)
	}
	harness.Same(t, "categories", want, p.categories())
	for name := range p.findings() {
		if _, there := before[name]; !there {
			t.Errorf("%s is a new finding, want those that were there", name)
		}
	}
	versions := p.versions()
	if s := p.imports(mixedTrivy, commitB); s.Unchanged != 3 {
		t.Errorf("a rescan: %+v, want 3 unchanged", *s)
	}
	if d := cmp.Diff(versions, p.versions()); d != "" {
		t.Errorf("a rescan wrote:\n%s", d)
	}
	if s := p.imports(strings.ReplaceAll(mixedTrivy, "AVD-AWS-0132", "AVD-AWS-0133"), commitB); s.Closed != 1 || s.Created != 1 {
		t.Errorf("a finding of another category than the scan's is gone: %+v, want 1 closed", *s)
	}
}

// Jobs of one tool that are separated by category remain separate.
func TestJobsOfSeveralCategoriesStayApart(t *testing.T) {
	p := newProject(t)
	secrets := `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"Trivy"}},"results":[{"ruleId":"other-key","message":{"text":"x"}}]}]}`
	_, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{Category: v1alpha1.CategorySecret}, secrets))
	p.must(err)
	p.imports(mixedTrivy, commitA)
	want := map[string]v1alpha1.FindingCategory{
		"CVE-2019-1549": v1alpha1.CategoryPackage, "AVD-AWS-0132": v1alpha1.CategoryPackage,
		"aws-access-key-id": v1alpha1.CategoryPackage, "other-key": v1alpha1.CategorySecret,
	}
	harness.Same(t, "categories", want, p.categories())
}

// mute mutes every finding.
func (p *project) mute() {
	p.Helper()
	for name := range p.findings() {
		p.triage(name, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	}
}

// Naming the category that was derived before means the same job: its findings keep names and decisions.
func TestNamingTheCategoryOrphansNoDecision(t *testing.T) {
	p := newProject(t)
	p.imports(mixedTrivy, commitA)
	before := p.categories()
	p.mute()
	_, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{Category: v1alpha1.CategoryPackage}, mixedTrivy))
	p.must(err)
	findings := p.findings()
	if len(findings) != len(before) {
		t.Errorf("%d findings became %d", len(before), len(findings))
	}
	for _, f := range findings {
		if f.Spec.Category != v1alpha1.CategoryPackage || f.Spec.Closed != nil || f.Spec.Triage.UserStatus != v1alpha1.UserStatusMuted {
			t.Errorf("%s is %s, closed %v, %s", f.Spec.RuleID, f.Spec.Category, f.Spec.Closed, f.Spec.Triage.UserStatus)
		}
	}
}

// A job owns the findings of its scans also before one of them has succeeded.
func TestAnUnfinishedJobKeepsItsFindings(t *testing.T) {
	p := newProject(t)
	p.imports(mixedTrivy, commitA)
	secrets := func(more string) {
		t.Helper()
		file := `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"Trivy"}},` + more + `"results":[{"ruleId":"other-key","message":{"text":"x"}}]}]}`
		_, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{Category: v1alpha1.CategorySecret}, file))
		p.must(err)
	}
	meanwhile := importer.Options{OnRecorded: func(*importer.Batch, string) { secrets(`"invocations":[{"executionSuccessful":false}],`) }}
	summaries, err := p.tryImport(meanwhile, collect(t, importer.Choices{Commit: commitB}, mixedTrivy))
	p.must(err)
	p.mute()
	for _, s := range append(summaries, p.imports(mixedTrivy, commitB)) {
		if s.Closed != 0 || s.Unchanged != 3 {
			t.Errorf("the other job: %+v, want 3 unchanged and none closed", *s)
		}
	}
	secrets("")
	findings := p.findings()
	if len(findings) != 4 {
		t.Errorf("%d findings, want 4", len(findings))
	}
	for _, f := range findings {
		if f.Spec.Closed != nil || f.Spec.Triage.UserStatus != v1alpha1.UserStatusMuted {
			t.Errorf("%s is closed %v, %s", f.Spec.RuleID, f.Spec.Closed, f.Spec.Triage.UserStatus)
		}
	}
}

// Each of two jobs that share a tool replaces only its own findings, whatever their category.
func TestJobsThatShareAToolLeaveEachOtherAlone(t *testing.T) {
	p := newProject(t)
	p.imports(mixedTrivy, commitA)
	p.mute()
	secrets := `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"Trivy"}},"results":[{"ruleId":"other-key","message":{"text":"x"}}]}]}`
	_, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{Category: v1alpha1.CategorySecret}, secrets))
	p.must(err)
	p.imports(mixedTrivy, commitB)
	findings := p.findings()
	if len(findings) != 4 {
		t.Errorf("%d findings, want 4", len(findings))
	}
	for _, f := range findings {
		if decided := f.Spec.Triage.UserStatus == v1alpha1.UserStatusMuted; f.Spec.Closed != nil || decided != (f.Spec.RuleID != "other-key") {
			t.Errorf("%s is closed %v, %s", f.Spec.RuleID, f.Spec.Closed, f.Spec.Triage.UserStatus)
		}
	}
}
