package triagepolicy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// facts returns the facts of a finding with a value for everything.
func facts() *triagepolicy.Facts {
	f := &v1alpha1.Finding{}
	f.Name = "f-1"
	detected := v1alpha1.NewTime(now.Add(-48 * time.Hour))
	f.Spec = v1alpha1.FindingSpec{
		RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"}, ProjectRef: v1alpha1.ProjectReference{Name: "shop-api"},
		DetectedAt: &detected, Tool: "trivy", Analysis: "nightly", Category: v1alpha1.CategoryPackage,
		RuleID: "CVE-2021-23337", Class: "CWE-94", Confidence: v1alpha1.LevelHigh, SecretType: "aws",
		Vulnerability: &v1alpha1.FindingVulnerability{ID: "CVE-2021-23337", Aliases: []string{"GHSA-35jh", "SNYK-1"}},
		Package: &v1alpha1.FindingPackage{
			Name: "lodash", Version: "4.17.15", FixedVersion: "4.17.21", PURL: "pkg:npm/lodash@4.17.15",
		},
		Details: v1alpha1.FindingDetails{
			Title: "Command injection in lodash", Severity: v1alpha1.LevelHigh, Score: "7.2", ToolSeverity: "HIGH",
			Location: &v1alpha1.FileLocation{FilePath: "services/api/test/package-lock.json"},
		},
	}
	project, repository := &v1alpha1.Project{}, &v1alpha1.Repository{}
	project.Spec = v1alpha1.ProjectSpec{DisplayName: "Shop API", RelativePath: "services/api", Owner: "payments"}
	repository.Spec = v1alpha1.RepositorySpec{FullName: "acme/shop", Provider: "github", DefaultBranch: "main"}
	return &triagepolicy.Facts{Finding: f, Project: project, Repository: repository}
}

func TestAnExpressionSeesTheFactsOfAFinding(t *testing.T) {
	full, bare := facts(), &triagepolicy.Facts{Finding: &v1alpha1.Finding{}}
	cases := []struct {
		match string
		facts *triagepolicy.Facts
		want  bool
		fails string
	}{
		{"true", bare, true, ""},
		{"finding.name == 'f-1' && finding.tool == 'trivy' && finding.analysis == 'nightly'", full, true, ""},
		{"finding.category == 'Package' && finding.ruleID.startsWith('CVE-') && finding.class == 'CWE-94'", full, true, ""},
		{"finding.severity in ['high', 'medium'] && finding.toolSeverity.lowerAscii() == 'high'", full, true, ""},
		{"finding.score >= 7.0 && finding.score < 7.3", full, true, ""},
		{"finding.title.contains('lodash') && finding.confidence == 'high' && finding.secretType == 'aws'", full, true, ""},
		{"finding.path.split('/').exists(part, part == 'test')", full, true, ""},
		{"finding.path.split('/').exists(p, p.startsWith('te') && p.endsWith('st') && p in ['test', 'mock'] && p != 'mock')", full, true, ""},
		{"finding.path.matches('^services/[a-z]+/test/')", full, true, ""},
		{"finding.vulnerability.id == 'CVE-2021-23337' && 'SNYK-1' in finding.vulnerability.aliases", full, true, ""},
		{"finding.package.name == 'lodash' && finding.package.version == '4.17.15'", full, true, ""},
		{"finding.package.fixedVersion != '' && finding.package.purl.startsWith('pkg:npm/')", full, true, ""},
		{"now - finding.detectedAt > duration('24h')", full, true, ""},
		{"now.getDayOfWeek('Pacific/Auckland') == 1 && now.getDayOfWeek('-10:00') == 0 && now.getHours('') == 12", full, true, ""},
		{"string(now) == '2026-03-01T12:00:00Z'", full, true, ""},
		{"finding.vulnerability.aliases == ['GHSA-35jh', 'SNYK-1'] && finding.vulnerability.aliases != []", full, true, ""},
		{"(finding.vulnerability.aliases + [finding.vulnerability.id]).exists(id, id in {'CVE-2021-23337': 1})", full, true, ""},
		{"{'a': 1} == {'a': 1} && [finding.path, finding.title].map(t, t.size()) != [1, 2]", full, true, ""},
		{"int(finding.package.version.split('.')[0]) == 4 && finding.path.split('/').exists(p, p.size() > 3)", full, true, ""},
		{"now - finding.detectedAt > duration('72h')", full, false, ""},
		{"project.name == 'shop-api' && project.displayName == 'Shop API' && project.relativePath == 'services/api'", full, true, ""},
		{"project.owner == 'payments' && repository.name == 'shop' && repository.fullName == 'acme/shop'", full, true, ""},
		{"repository.provider == 'github' && repository.defaultBranch == 'main'", full, true, ""},
		{"has(finding.score) && has(finding.vulnerability.id) && has(finding.vulnerability.aliases)", full, true, ""},

		{"finding.package.name == '' && finding.vulnerability.id == '' && project.owner == ''", bare, true, ""},
		{"size(finding.vulnerability.aliases) == 0 && finding.path == ''", bare, true, ""},
		{"has(finding.score) || has(finding.package.name) || has(finding.vulnerability.aliases)", bare, false, ""},
		{"finding.score < 4.0", bare, false, "no such key: score"},
		{"has(finding.score) && finding.score < 4.0", bare, false, ""},
		{"1 / size(finding.vulnerability.aliases) > 0", bare, false, "division by zero"},
		{"int(finding.package.version) > 3", full, false, "type conversion"},
	}
	for _, c := range cases {
		t.Run(c.match, func(t *testing.T) {
			program, err := triagepolicy.Compile(c.match)
			harness.Must(t, err)
			got, err := program.Matches(c.facts, now.In(time.FixedZone("the machine's", 13*60*60)))
			if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got %v, %v", got, err)
			}
			if err != nil && len(triagepolicy.Failure(err)) > 256 {
				t.Errorf("the message is too long: %s", triagepolicy.Failure(err))
			}
		})
	}
}

func TestWhatDoesNotCompile(t *testing.T) {
	long := "finding.path" + strings.Repeat(" + finding.path", 40)
	cases := []struct {
		reason, match string
		line, column  int
		message       string
	}{
		{"a misspelt member", "finding.clas == 'CWE-89'", 1, 8, "undefined field 'clas'"},
		{"a misspelt member of a member", "true &&\n  finding.package.nam == 'x'", 2, 18, "undefined field 'nam'"},
		{"an unknown variable", "finding.tool == 'x' || review.title == ''", 1, 24, "undeclared reference to 'review'"},
		{"a decision of people is no fact", "finding.userStatus == 'open'", 1, 8, "undefined field 'userStatus'"},
		{"a score that is compared with a text", "finding.score > '7'", 1, 15, "no matching overload"},
		{"no syntax", "finding.tool == ", 1, 17, "Syntax error"},
		{"no bool", "finding.tool", 0, 0, "must return a bool and returns a value of type string"},
		{"a wrong regular expression", "finding.path.matches('(')", 1, 22, "invalid matches argument"},
		{"a pattern of many repetitions", "finding.title.matches('" + strings.Repeat(".{0,1000}", 200) + "')", 1, 22, "too large"},
		{"repetitions in repetitions", "matches(finding.title, '((a{10}){10}){9}')", 1, 8, "too large"},
		{"patterns that are small each", strings.Repeat("finding.title.matches('a{400}') || ", 3) + "true", 1, 57, "too large"},
		{"a short pattern that takes long", "finding.path.matches('(.*){200}b')", 0, 0, "may cost too much"},
		{"a pattern in a loop", "[1, 2, 3, 4].exists(a, [1, 2, 3, 4].exists(b, finding.path.matches('(.*){40}b')))", 0, 0, "may cost too much"},
		{"a pattern that comes with the finding", "finding.title.matches(finding.ruleID)", 1, 22, "must be a literal"},
		{"a wrong duration", "now - finding.detectedAt > duration('3d')", 1, 37, "invalid duration argument"},
		{"a function that makes long texts", "finding.path.replace('', 'aaaa') == ''", 1, 21, "the function replace is not available"},
		{"another", "['a', 'b'].join(finding.path) == ''", 1, 16, "the function join is not available"},
		{"another", "'%s'.format([finding.path]) == ''", 1, 12, "the function format is not available"},
		{"another", "strings.quote(finding.path) == ''", 1, 14, "the function strings.quote is not available"},
		{"lists of lists that are compared", "[[finding.path]] == [[finding.title]]", 1, 18, "lists and maps within lists or maps"},
		{"for difference", "[[[1]]] != [[[2]]]", 1, 9, "lists and maps within lists or maps"},
		{"maps of lists", "{'a': finding.path.split('')} == {'a': finding.title.split('')}", 1, 31, "lists and maps within lists or maps"},
		{"a list that is searched for in lists", "finding.path.split('') in [['a']]", 1, 24, "lists and maps within lists or maps"},
		{"a list as the key of a map", "{['a']: 1}[['a']] == 1", 1, 11, "lists and maps within lists or maps"},
		{"a list in a loop", "[[['a']]].exists(q, [[['a']]].exists(p, p == q))", 1, 43, "lists and maps within lists or maps"},
		{"lists that are hidden", "dyn([['a']]) == dyn([['a']])", 1, 4, "no definite type"},
		{"lists hidden among numbers", "[[[1]], 1].exists(q, q == q)", 1, 1, "no definite type"},
		{"lists hidden in an index", "{'a': 1}[dyn([['a']])] == 1", 1, 13, "no definite type"},
		{"lists that are put together", "('a' in []" + strings.Repeat(" + ['a']", 17) + ")", 1, 12, "concatenate lists 16 times at most"},
		{"texts that are put together", "(" + strings.Repeat("finding.path + ", 4) + "'a').size() > 1", 1, 60, "texts put together may be longer than 4096 characters: compare the parts"},
		{"a text that is put together from parts", "true ||\nfinding.path.split('/').exists(p, p + 'x' == 'mockx')", 2, 37, "texts put together may be longer than 4096 characters: compare the parts"},
		{"a part that is searched", "finding.path.split('/').exists(p, p.contains('mock'))", 0, 0, "may cost too much"},
		{"a part that is matched", "finding.path.split('/').exists(p, p.matches('^mock'))", 0, 0, "may cost too much"},
		{"a part whose case is changed", "finding.path.split('/').exists(p, p.lowerAscii() == 'mock')", 0, 0, "may cost too much"},
		{"long lists that are compared in a loop", "[finding.path.split('')].exists(p, [" + strings.Repeat("1, ", 99) + "1].exists(n, p == p))", 0, 0, "may cost too much"},
		{"a text whose length is taken in loops", "finding.path.split('').exists(c, size(finding.path) == 1)", 0, 0, "may cost too much"},
		{"a text that is converted in loops", "finding.path.split('').exists(c, double(finding.path) == 1.0)", 0, 0, "may cost too much"},
		{"a time zone that is read in loops", "finding.path.split('').exists(c, now.getHours('Europe/Berlin') == 1)", 0, 0, "may cost too much"},
		{"a time zone that comes with the finding", "now.getHours(finding.title) == 1", 1, 21, "the time zone must be a literal"},
		{"an unknown time zone", "now.getDayOfWeek('Europe/Berlim') == 0", 1, 18, "unknown time zone"},
		{"the time zone of the machine", "now.getDayOfWeek('Local') == 0", 1, 18, "unknown time zone"},
		{"no offset", "now.getDayOfWeek('+2') == 0", 1, 18, "unknown time zone"},
		{"a loop in a loop over all characters", "finding.path.split('').exists(a, finding.path.split('').exists(b, a == b))", 0, 0, "may cost too much"},
		{"a loop in a loop in a loop", "[1].exists(a, [1].exists(b, [1].exists(c, true)))", 1, 0, "nesting"},
		{"a long text that is searched for each of its parts", "(" + long + ").split('/').exists(p, (finding.path + finding.path + finding.path).contains(p))", 1, 0, "may be longer than"},
		{"too deep", strings.Repeat("(", 300) + "true" + strings.Repeat(")", 300), 0, 0, ""},
		{"too long", strings.Repeat(" ", 4096) + "true", 0, 0, "size"},
		{"nothing", "", 1, 1, "Syntax error"},
		{"no text", "\xff\xfe", 0, 0, ""},
	}
	for _, c := range cases {
		t.Run(c.reason+": "+c.match[:min(40, len(c.match))], func(t *testing.T) {
			_, err := triagepolicy.Compile(c.match)
			wrong, is := errors.AsType[*triagepolicy.CompileError](err)
			if !is {
				t.Fatalf("got %v", err)
			}
			if c.line > 0 && wrong.Line != c.line || c.column > 0 && wrong.Column != c.column || !strings.Contains(wrong.Message, c.message) {
				t.Errorf("got %d:%d %q", wrong.Line, wrong.Column, wrong.Message)
			}
		})
	}
}

func TestAProgramKnowsWhetherItReadsTheTime(t *testing.T) {
	for match, want := range map[string]bool{
		"true": false, "finding.detectedAt < now": true, "[1].exists(x, now > finding.detectedAt)": true,
		"finding.title == 'now'": false, "has(finding.score) && finding.score > 1.0": false,
	} {
		program, err := triagepolicy.Compile(match)
		harness.Must(t, err)
		harness.Same(t, match, want, program.UsesNow())
	}
}
