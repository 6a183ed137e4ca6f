package triagepolicy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// longest is how long any evaluation may take on a slow, shared machine. It normally takes a few milliseconds.
const longest = 10 * time.Second

// FuzzMatch checks that no expression crashes the process, and that none that compiles takes long over
// the longest facts.
func FuzzMatch(f *testing.F) {
	for _, match := range []string{
		"finding.class == 'CWE-89' && finding.path.startsWith('test/')",
		"finding.path.split('/').exists(p, p == 'test')",
		"finding.vulnerability.aliases.exists(a, a.matches('^GHSA-.*(a|b)+$'))",
		"has(finding.score) && finding.score < 4.0 && now - finding.detectedAt > duration('24h')",
		"finding.path.split('').all(c, finding.title.contains(c))",
		"finding.path.matches('(a*)*(a*)*(a*)*b')", "finding.title.matches('(.{0,30}){30}x')",
		"[finding.path, finding.title].map(x, x + x).exists(x, x.size() > 3)",
		"dyn(finding).name == dyn(1)", "finding == finding && finding.package != project",
		"type(finding) == Finding", "Finding{name: 'x'}.name == 'x'", "{finding: 1}[finding] == 1", "finding['name'] == ''",
		"'x'.format([1])", "1/0 == 1", "strings.quote('x') == 'x'", "'a' + 'b' == string(finding.score)",
		"[finding.path.split('')].exists(p, [[" + strings.Repeat("p,", 400) + "p]].exists(q, [" +
			strings.Repeat("q,", 300) + "q] == [" + strings.Repeat("q,", 300) + "q]))",
		"[finding.path + finding.path + finding.path + finding.path].exists(a, finding.path.split('').all(c, " +
			strings.Repeat("a != '' && ", 30) + "a.contains('')))",
	} {
		f.Add(match, "services/api", "7.2")
	}
	f.Fuzz(func(t *testing.T, match, path, score string) {
		program, err := triagepolicy.Compile(match)
		if err != nil {
			if _, wrong := triagepolicy.IsCompileError(err); !wrong {
				t.Fatalf("%q: %v", match, err)
			}
			return
		}
		finding := &v1alpha1.Finding{}
		finding.Spec.Details = v1alpha1.FindingDetails{
			Title: fill(path, 512), Score: score, Location: &v1alpha1.FileLocation{FilePath: fill(path, 1024)},
		}
		finding.Spec.Package = &v1alpha1.FindingPackage{Name: fill(path, 256), PURL: fill(path, 512)}
		finding.Spec.Vulnerability = &v1alpha1.FindingVulnerability{ID: "CVE-1"}
		for range 8 {
			finding.Spec.Vulnerability.Aliases = append(finding.Spec.Vulnerability.Aliases, fill(path, 128))
		}
		began := time.Now()
		_, err = program.Matches(&triagepolicy.Facts{Finding: finding}, now)
		if took := time.Since(began); took > longest {
			t.Errorf("%q took %s", match, took)
		}
		if err != nil && triagepolicy.Failure(err) == "" {
			t.Errorf("%q failed without a word", match)
		}
	})
}

// fill repeats a text up to size bytes.
func fill(text string, size int) string {
	if text == "" {
		return ""
	}
	return strings.Repeat(text, size/len(text)+1)[:size]
}
