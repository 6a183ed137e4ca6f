package importer

import (
	"strings"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// secretScanners and packageScanners are parts of the names under which tools report, in
// lower case.
var (
	secretScanners = []string{
		"gitleaks", "trufflehog", "detect-secrets", "secretlint", "ggshield", "gitguardian",
		"noseyparker", "nosey parker", "whispers", "talisman", "git-secrets", "kingfisher",
		"ripsecrets", "titus", "credscan", "semgrep secrets",
	}
	packageScanners = []string{
		"trivy", "grype", "osv-scanner", "osv scanner", "snyk open source", "snyk container",
		"dependency-check", "dependency check", "npm-audit", "npm audit", "yarn audit",
		"pip-audit", "cargo-audit", "cargo audit", "govulncheck", "retire", "nancy",
		"bundler-audit", "bundle-audit", "clair", "anchore", "docker scout", "jfrog xray",
		"black duck", "mend", "whitesource", "safety", "depscan", "dep-scan",
	}
)

// CategoryOf derives from a tool's name what it looks for.
func CategoryOf(tool string) appsecv1alpha1.FindingCategory {
	tool = strings.ToLower(tool)
	for _, name := range secretScanners {
		if strings.Contains(tool, name) {
			return appsecv1alpha1.CategorySecret
		}
	}
	for _, name := range packageScanners {
		if isNameIn(tool, name) {
			return appsecv1alpha1.CategoryPackage
		}
	}
	return appsecv1alpha1.CategoryCode
}

// isNameIn finds a name at the start of a word: "mend" is not in "recommender".
func isNameIn(tool, name string) bool {
	for from := 0; ; {
		at := strings.Index(tool[from:], name)
		if at < 0 {
			return false
		}
		at += from
		if at == 0 || !isWordByte(tool[at-1]) {
			return true
		}
		from = at + 1
	}
}

func isWordByte(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
