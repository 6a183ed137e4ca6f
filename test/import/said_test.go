package import_test

import (
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
)

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

// Each of two jobs that share a tool replaces only its own findings, whatever their category, also before one of its
// scans has succeeded.
func TestEachOfTwoJobsOfAToolKeepsItsFindings(t *testing.T) {
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
	p.did("once the tool has two jobs, all of a job's findings take its category: two of three change",
		p.imports(mixedTrivy, commitB), counts{Updated: 2, Unchanged: 1})
	p.wantState("both jobs", 4, 0, 4)
}
