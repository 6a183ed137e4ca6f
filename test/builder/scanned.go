package builder

import (
	"fmt"
	"math/rand/v2"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Scanned draws the facts that a scanner reports of a finding: all findings of a rule have the same tool, class and
// score, and so do all findings of a vulnerability, a third of all findings.
func Scanned(random *rand.Rand, spec *v1alpha1.FindingSpec) {
	words := []string{
		"SQL", "injection", "Path", "traversal", "Weak", "hash", "Hard-coded", "credential", "Open", "redirect",
	}
	rule := random.IntN(500)
	spec.Tool, spec.RuleID = fmt.Sprintf("tool-%d", rule%5), fmt.Sprintf("RULE-%d", rule)
	spec.Category = v1alpha1.CategoryCode
	spec.Class, spec.Details.Score = fmt.Sprintf("CWE-%d", rule%50), fmt.Sprintf("%d.%d", rule%10, rule/10%10)
	path := random.IntN(20_000)
	spec.Details.Location = &v1alpha1.FileLocation{
		FilePath:   fmt.Sprintf("services/component-%d/internal/handlers/File%d.go", path%100, path),
		LineNumber: 7, URL: "https://code.example/src/main.go#L7",
	}
	spec.Details.Title = fmt.Sprintf("%s %s in function handle%d", words[rule%10], words[rule/10%10], random.IntN(1000))
	spec.Fingerprints = []v1alpha1.Fingerprint{
		{Name: "primaryLocationLineHash/v1", Value: fmt.Sprintf("%032x", random.Uint64())},
	}
	spec.CommitHash = fmt.Sprintf("%040x", random.IntN(1000))
	if random.IntN(3) > 0 {
		return
	}
	id := random.IntN(2000)
	name := fmt.Sprintf("package-%d", id/4)
	spec.Category, spec.Tool, spec.RuleID = v1alpha1.CategoryPackage, "trivy", fmt.Sprintf("CVE-2026-%04d", id)
	spec.Class, spec.Details.Score = fmt.Sprintf("CWE-%d", id%50), fmt.Sprintf("%d.%d", id%10, id/10%10)
	spec.Details.Title = fmt.Sprintf("%s: %s %s", name, words[id%10], words[id/10%10])
	spec.Vulnerability = &v1alpha1.FindingVulnerability{ID: spec.RuleID, Aliases: []string{fmt.Sprintf("GHSA-%04d", id)}}
	spec.Package = &v1alpha1.FindingPackage{
		Name: name, PURL: "pkg:npm/" + name + "@1.2.3", Version: "1.2.3", FixedVersion: "1.2.4",
	}
}
