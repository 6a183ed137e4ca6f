package importer

import (
	"regexp"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// secretScanners and packageScanners are parts of tools' names, in lower case.
var (
	secretScanners = []string{
		"gitleaks", "trufflehog", "detect-secrets", "secretlint", "ggshield", "gitguardian",
		"noseyparker", "nosey parker", "whispers", "talisman", "git-secrets", "kingfisher",
		"ripsecrets", "titus", "credscan", "semgrep secrets", "snyk secrets",
	}
	packageScanners = []string{
		"trivy", "grype", "osv-scanner", "osv scanner", "snyk open source", "snyk container",
		"dependency-check", "dependency check", "npm-audit", "npm audit", "yarn audit",
		"pip-audit", "cargo-audit", "cargo audit", "govulncheck", "retire", "nancy",
		"bundler-audit", "bundle-audit", "clair", "anchore", "docker scout", "jfrog xray",
		"black duck", "mend", "whitesource", "safety", "depscan", "dep-scan",
	}
)

// packageScannerName matches a word that starts with the name of a package scanner: "mend" is not in "recommender".
var packageScannerName = regexp.MustCompile("(?:^|[^a-z0-9])(?:" + anyOf(packageScanners) + ")")

// anyOf returns a pattern that matches each of the names literally.
func anyOf(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return strings.Join(quoted, "|")
}

// CategoryOf derives the category of findings from the name of their tool.
func CategoryOf(tool string) v1alpha1.FindingCategory {
	tool = strings.ToLower(tool)
	switch {
	case slices.ContainsFunc(secretScanners, func(name string) bool { return strings.Contains(tool, name) }):
		return v1alpha1.CategorySecret
	case packageScannerName.MatchString(tool):
		return v1alpha1.CategoryPackage
	}
	return v1alpha1.CategoryCode
}

// CategoryOfResult returns the category of a result; tool is the category of its tool. Some tools look for several
// things at once: Trivy for packages, misconfigurations and secrets, Wiz for code and packages.
func CategoryOfResult(r *sarif.Result, tool v1alpha1.FindingCategory) v1alpha1.FindingCategory {
	is := func(kind string) bool {
		return strings.EqualFold(r.Rule.Name, kind) || slices.ContainsFunc(r.Rule.Tags,
			func(tag string) bool { return strings.EqualFold(tag, kind) })
	}
	switch {
	case tool == v1alpha1.CategorySecret:
		return tool
	case r.Package != nil, tool == v1alpha1.CategoryPackage && r.Vulnerability != nil:
		return v1alpha1.CategoryPackage
	case tool == v1alpha1.CategoryPackage && is("secret"):
		return v1alpha1.CategorySecret
	case tool == v1alpha1.CategoryPackage && is("misconfiguration"):
		return v1alpha1.CategoryCode
	}
	return tool
}
