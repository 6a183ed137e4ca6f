package sarif

import (
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// member writes a JSON member, with a comma before it, or nothing for an empty value.
func member(t *testing.T, name, value string) string {
	t.Helper()
	if value == "" {
		return ""
	}
	encoded := harness.JSON(t, value)
	return `,"` + name + `":` + string(encoded)
}

func TestWhichPackageAndVulnerability(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                         string
		id, help, short, full, message string
		rule, result                   string // further members
		location                       string // a logical one
		want                           *Package
		vulnerability                  *Vulnerability
	}{
		"Trivy": {
			reason: "the rule's help is that of another package with the same CVE", id: "CVE-2019-1549",
			message: "Package: libcrypto1.1\nInstalled Version: 1.1.1c-r0\nVulnerability CVE-2019-1549\nSeverity: MEDIUM\nFixed Version: 1.1.1d-r0",
			help:    "Vulnerability CVE-2019-1549\nPackage: libssl1.1\nFixed Version: 9",
			want:    &Package{Name: "libcrypto1.1", Version: "1.1.1c-r0", FixedVersion: "1.1.1d-r0"}, vulnerability: &Vulnerability{ID: "CVE-2019-1549"},
		},
		"grype": {
			reason: "the package URL is one of several of the rule", id: "CVE-2025-1000-jwt",
			message: "A high vulnerability in go-module package: example.com/jwt/v4, version v4.5.1 was found in image x at: /app",
			help:    "Vulnerability CVE-2025-1000\nPackage: example.com/jwt/v4\nVersion: v4.5.1\nFix Version: 4.5.2\nType: go-module",
			rule:    `,"properties":{"purls":["pkg:golang/example.com/jwt/v4@v4.0.0","pkg:golang/example.com/jwt/v4@v4.5.1"]}`,
			want: &Package{PURL: "pkg:golang/example.com/jwt/v4@v4.5.1", Ecosystem: "golang", Name: "example.com/jwt/v4",
				Version: "v4.5.1", FixedVersion: "4.5.2"}, vulnerability: &Vulnerability{ID: "CVE-2025-1000"},
		},
		"grype, another version": {
			reason: "what fixes the version that the help describes need not fix this one", id: "CVE-2025-1000-jwt",
			message: "A high vulnerability in go-module package: jwt, version v3 was found in image x at: /app",
			help:    "Package: jwt\nVersion: v4\nFix Version: 4.5.2\nType: go-module",
			want:    &Package{PURL: "pkg:golang/jwt@v3", Ecosystem: "golang", Name: "jwt", Version: "v3"}, vulnerability: &Vulnerability{ID: "CVE-2025-1000"},
		},
		"osv-scanner": {
			reason: "the CVE is the id, whatever comes first", id: "GHSA-29mw-wpgm-hmr9",
			message:       "Package '@babel/core@7.1.0' is vulnerable to 'GHSA-29mw-wpgm-hmr9' (also known as 'CVE-2020-28500').",
			want:          &Package{Name: "@babel/core", Version: "7.1.0"},
			vulnerability: &Vulnerability{ID: "CVE-2020-28500", Aliases: []string{"GHSA-29mw-wpgm-hmr9"}},
		},
		"JFrog Xray": {
			reason: "only the rule's id and a sentence name the package", id: "CVE-2020-28500_lodash_4.17.15", message: "[CVE-2020-28500] lodash 4.17.15",
			want: &Package{Name: "lodash", Version: "4.17.15"}, vulnerability: &Vulnerability{ID: "CVE-2020-28500"},
		},
		"JFrog Xray, without a CVE": {
			reason: "names of packages may have underscores", id: "XRAY-140562_typing_extensions_v3.7",
			want: &Package{Name: "typing_extensions", Version: "v3.7"}, vulnerability: &Vulnerability{ID: "XRAY-140562"},
		},
		"JFrog Xray, several CVEs": {
			reason: "the first is the id, and the others are not in the package's name", id: "CVE-2020-28500_CVE-2021-23337_lodash_4.17.15",
			want: &Package{Name: "lodash", Version: "4.17.15"}, vulnerability: &Vulnerability{ID: "CVE-2020-28500", Aliases: []string{"CVE-2021-23337"}},
		},
		"JFrog Xray, several CVEs in earlier versions": {
			reason: "they are a list", id: "CVE-2020-28500, CVE-2021-23337_lodash_4.17.15",
			want: &Package{Name: "lodash", Version: "4.17.15"}, vulnerability: &Vulnerability{ID: "CVE-2020-28500", Aliases: []string{"CVE-2021-23337"}},
		},
		"JFrog Xray, a rule with a name": {
			reason: "the package in the name is not part of the id", id: "XRAY-140562_typing_extensions_v3.7", rule: `,"name":"XRAY-140562-typing-extensions-v3.7"`,
			want: &Package{Name: "typing_extensions", Version: "v3.7"}, vulnerability: &Vulnerability{ID: "XRAY-140562"},
		},
		"no version": {
			reason: "a rule's id may begin with a CVE", id: "CVE-2020-28500_lodash_template", vulnerability: &Vulnerability{ID: "CVE-2020-28500"},
		},
		"Snyk Open Source": {
			reason: "another package's upgrade is no version of this one", id: "SNYK-JS-COOKIE-8163060",
			full: "(CVE-2024-47764) cookie@0.4.0", help: "* Package Manager: npm\n* Vulnerable module: cookie",
			result:        `,"fixes":[{"description":{"text":"Upgrade to express@4.21.1"}}]`,
			location:      "cookie@0.4.0",
			want:          &Package{PURL: "pkg:npm/cookie@0.4.0", Ecosystem: "npm", Name: "cookie", Version: "0.4.0"},
			vulnerability: &Vulnerability{ID: "CVE-2024-47764", Aliases: []string{"SNYK-JS-COOKIE-8163060"}},
		},
		"Snyk Container": {
			reason: "its help names no package manager, and the fix the source package too", id: "SNYK-ALPINE319-MUSL-8720640",
			full: "(CVE-2025-26519) musl/musl-utils@1.2.4-r4", result: `,"fixes":[{"description":{"text":"Upgrade to musl/musl-utils@1.2.4-r5"}}]`, location: "musl@1.2.4-r4",
			want:          &Package{Name: "musl", Version: "1.2.4-r4", FixedVersion: "1.2.4-r5"},
			vulnerability: &Vulnerability{ID: "CVE-2025-26519", Aliases: []string{"SNYK-ALPINE319-MUSL-8720640"}},
		},
		"Snyk Container, named late": {
			reason: "only the beginning of a description is searched", id: "SNYK-ALPINE319-MUSL-8720640",
			full: strings.Repeat("x ", maxDescribed) + "musl/musl-utils@1.2.4-r4", result: `,"fixes":[{"description":{"text":"Upgrade to musl/musl-utils@1.2.4-r5"}}]`, location: "musl@1.2.4-r4",
			want:          &Package{Name: "musl", Version: "1.2.4-r4"},
			vulnerability: &Vulnerability{ID: "SNYK-ALPINE319-MUSL-8720640"},
		},
		"a license": {
			reason: "a package can break a rule that is no vulnerability", id: "snyk:lic:npm:cookie:GPL", help: "* Package Manager: npm\n* Vulnerable module: cookie", location: "cookie@0.4.0",
			want: &Package{PURL: "pkg:npm/cookie@0.4.0", Ecosystem: "npm", Name: "cookie", Version: "0.4.0"},
		},
		"govulncheck": {
			reason: "the rule's tags are the aliases", id: "GO-2023-1234", message: "Your code calls vulnerable functions in 1 package (x).",
			rule:          `,"properties":{"tags":["CVE-2023-1","CVE-2023-12345","ghsa-2CF5-4w76-r9qv"]}`,
			vulnerability: &Vulnerability{ID: "CVE-2023-12345", Aliases: []string{"GO-2023-1234", "GHSA-2cf5-4w76-r9qv"}},
		},
		"a package URL": {
			reason: "some tools put it in place of the name", id: "CVE-2022-1000", message: "Vulnerability : CVE-2022-1000\nPackage : pkg:deb/debian/openssl@1.1.1n-0?os=x\nFixed version : 1.1.1w",
			want: &Package{PURL: "pkg:deb/debian/openssl@1.1.1n-0?os=x", Ecosystem: "deb", Name: "openssl", Version: "1.1.1n-0",
				FixedVersion: "1.1.1w"}, vulnerability: &Vulnerability{ID: "CVE-2022-1000"},
		},
		"code in the help":    {reason: "an example is no package", id: "R", help: "Bad:\n\n  package: foo\n  version: 1.0\n", message: "Not pinned"},
		"a name in the help":  {reason: "nothing shows that it is a package", id: "R", help: "Component: UserList", message: "Not pinned"},
		"a component of code": {reason: "nothing shows that it is a package", id: "R", message: "Component: UserList renders without a key"},
		"a component": {
			reason: "its version shows that it is a package", id: "R", message: "Component: lodash\nVersion: 1",
			want: &Package{Name: "lodash", Version: "1"},
		},
		"code that is quoted": {reason: "its author would choose the package", id: "R", message: "Bad chart, line 3:\npackage: lodash\nversion: 1"},
		"code after a colon":  {reason: "such a line is no label of a package scanner", id: "R", message: "Found: x\npackage: lodash"},
		"code":                {reason: "a rule may mention a CVE that it is not about", id: "openssl-heartbeat", message: "Like CVE-2014-0160.", full: "(CVE-2014-0160) x"},
	} {
		t.Run(name, func(t *testing.T) {
			location := `{"logicalLocations":[{"fullyQualifiedName":"` + tc.location + `"}]}`
			text := func(name, value string) string {
				return strings.Replace(member(t, "text", value), ",", `,"`+name+`":{`, 1)
			}
			closed := func(s string) string {
				if s == "" {
					return ""
				}
				return s + "}"
			}
			document := file(`"tool":{"driver":{"name":"t","rules":[{"id":"` + tc.id + `"` + closed(text("help", tc.help)) +
				closed(text("shortDescription", tc.short)) + closed(text("fullDescription", tc.full)) + tc.rule + `}]}},"results":[{"ruleId":"` + tc.id +
				`"` + closed(text("message", tc.message)) + tc.result + `,"locations":[` + location + `]}]`)
			got := parseResult(t, document)
			harness.Same(t, tc.reason+": package", tc.want, got.Package)
			harness.Same(t, tc.reason+": vulnerability", tc.vulnerability, got.Vulnerability)
		})
	}
}

func TestScoreAndTheToolsOwnWord(t *testing.T) {
	for name, tc := range map[string]struct{ reason, rule, result, score, word string }{
		"a score":               {"as every tool writes it", `"properties":{"security-severity":"9.84"}`, ``, "9.8", ""},
		"a number":              {"cppcheck writes one", `"properties":{"security-severity":10}`, ``, "10.0", ""},
		"the result's own":      {"it is the nearer", `"properties":{"security-severity":"9"}`, `"properties":{"security-severity":"2.5"}`, "2.5", ""},
		"CVSS":                  {"the score says nothing", `"properties":{"security-severity":"null","cvssv3_baseScore":7.5}`, ``, "7.5", ""},
		"nothing known":         {"0 is what tools write for unknown", `"properties":{"security-severity":"0.0"}`, ``, "", ""},
		"out of range":          {"it is no such score", `"properties":{"security-severity":"75"}`, ``, "", ""},
		"a score of 66 digits":  {"no tool writes one, and each result would read it again", `"properties":{"security-severity":"7.5` + strings.Repeat("0", 64) + `"}`, ``, "", ""},
		"a word for a score":    {"it is the tool's", `"properties":{"security-severity":"HIGH"}`, ``, "", "HIGH"},
		"a tag":                 {"gosec and Trivy give one", `"properties":{"tags":["security","MEDIUM"]}`, `"level":"error"`, "", "MEDIUM"},
		"the rule's help":       {"gosec", `"help":{"text":"x\nSeverity: LOW\nConfidence: HIGH"}`, ``, "", "LOW"},
		"markdown":              {"scorecard", `"help":{"markdown":"**Remediation**:\n\n- x\n\n**Severity**: High"}`, ``, "", "High"},
		"an example":            {"a help shows how not to write it", `"help":{"text":"Bad:\n\npackage: foo\nseverity: low"},"defaultConfiguration":{"level":"error"}`, ``, "", "error"},
		"an indented example":   {"it is none of the tool's words", `"help":{"text":"Bad:\n  severity: low"},"defaultConfiguration":{"level":"error"}`, ``, "", "error"},
		"a fenced example":      {"it is none of the tool's words", `"help":{"markdown":"Bad:\n~~~yaml\nseverity: low\n~~~"},"defaultConfiguration":{"level":"error"}`, ``, "", "error"},
		"the message":           {"Trivy: the rule is that of several packages", `"properties":{"tags":["LOW"]}`, `"message":{"text":"Package: x\nSeverity: CRITICAL"}`, "", "CRITICAL"},
		"code in the message":   {"its author would choose the severity", `"properties":{"tags":["HIGH"]}`, `"message":{"text":"This is bad.\nseverity: low"}`, "", "HIGH"},
		"code after a colon":    {"its first line is no label of a package scanner", `"properties":{"tags":["HIGH"]}`, `"message":{"text":"Dangerous call: run(\nseverity: low"}`, "", "HIGH"},
		"grype":                 {"its message begins with it", ``, `"level":"note","message":{"text":"A low vulnerability in apk package: x"}`, "", "low"},
		"Snyk":                  {"its rule's title begins with it", `"shortDescription":{"text":"Critical severity - X vulnerability in y"}`, ``, "", "Critical"},
		"a property":            {"the plainest", `"properties":{"severity":"Blocker"}`, ``, "", "Blocker"},
		"a property's number":   {"tools count from either end", `"properties":{"severity":1,"tags":["LOW"]}`, `"properties":{"issue_severity":"2"}`, "", "LOW"},
		"CodeQL":                {"it has a word for quality", `"properties":{"problem.severity":"recommendation"},"defaultConfiguration":{"level":"note"}`, ``, "", "recommendation"},
		"the level":             {"there is no other word", `"defaultConfiguration":{"level":"note"}`, `"level":"error"`, "", "error"},
		"no level either":       {"the tool did not say the default", ``, ``, "", ""},
		"a sentence in a label": {"it is no word", `"help":{"text":"Severity: ` + strings.Repeat("long ", 20) + `"}`, `"level":"note"`, "", "note"},
	} {
		t.Run(name, func(t *testing.T) {
			got := parseRuled(t, "t", tc.rule, tc.result)
			if got.Score != tc.score || got.ToolSeverity != tc.word {
				t.Errorf("score %q and word %q, want %q and %q: %s", got.Score, got.ToolSeverity, tc.score, tc.word, tc.reason)
			}
		})
	}
}

func TestSeverityIsTheToolsOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, tool, rule, result string
		want                       v1alpha1.Level
	}{
		"gosec":               {"its level is error for MEDIUM", "gosec", `"properties":{"tags":["security","MEDIUM"]},"help":{"text":"x\nSeverity: MEDIUM"}`, `"level":"error"`, "medium"},
		"a score over a word": {"a score is finer", "Trivy", `"properties":{"security-severity":"9.8","tags":["MEDIUM"]}`, `"level":"warning"`, "high"},
		"dependency-check":    {"its level is no rating", "dependency-check", `"properties":{"cvssv3_baseScore":5.3,"cvssv3_baseSeverity":"MEDIUM"}`, `"level":"error"`, "medium"},
		"CVSS alone":          {"it is better than the level", "x", `"properties":{"cvssv3_baseScore":3.1}`, `"level":"error"`, "low"},
		"Checkov":             {"it writes error for everything", "Checkov", ``, `"level":"error"`, "medium"},
		"Checkov, rated":      {"its platform rates", "checkov", `"properties":{"security-severity":"8.0"}`, `"level":"error"`, "high"},
		"Polyspace":           {"it writes error for everything", "Polyspace Bug Finder", ``, `"level":"error"`, "medium"},
		"gitleaks":            {"it rates nothing", "gitleaks", ``, ``, "high"},
		"another tool":        {"SARIF's default", "x", ``, ``, "medium"},
		"Salesforce":          {"its 1 is the worst, and no score", "pmd", `"properties":{"severity":1}`, `"level":"error"`, "high"},
		"Salesforce, info":    {"its 5 is the least, and its level is warning", "pmd", `"properties":{"severity":5}`, `"level":"warning"`, "medium"},
		"a word without use":  {"CodeQL's is about quality", "CodeQL", `"properties":{"problem.severity":"recommendation"}`, `"level":"note"`, "low"},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Same(t, tc.reason, tc.want, parseRuled(t, tc.tool, tc.rule, tc.result).Severity)
		})
	}
}

func TestWhatADynamicScannerTried(t *testing.T) {
	location := func(uri string) string {
		return `"locations":[{"physicalLocation":{"artifactLocation":{"uri":"` + uri + `"}}}]`
	}
	for name, tc := range map[string]struct {
		reason, result string
		want           []Endpoint
	}{
		"a request":      {"SARIF has a member for it", `"webRequest":{"method":"post","target":"https://a.example/x?q=1"},` + location("https://a.example/x?q=1"), []Endpoint{{"POST", "/x"}}},
		"an address":     {"it is no file", location("https://a.example"), []Endpoint{{"", "/"}}},
		"labels":         {"ZAP, converted", `"message":{"text":"Uri: http://a.example/b\nMethod: GET\nParam: x"},` + location("file:///"), []Endpoint{{"GET", "/b"}}},
		"labels, a file": {"the finding is in the file", `"message":{"text":"Url: http://a.example/b"},` + location("a.js"), nil},
		"a file":         {"most are", location("a.js"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := parseResult(t, file(`"results":[{"ruleId":"R0",`+tc.result+`}]`))
			harness.Same(t, tc.reason, tc.want, got.Endpoints)
		})
	}
}

func TestFixedVersionsInATable(t *testing.T) {
	help := `"help":{"markdown":"## Remediation\nUpdate.\n| Vulnerability ID | Package Name | Fixed Version |\n| --- | --- | --- |\n` +
		`| GHSA-1 | lodash | 4.17.21 |\n| GHSA-1 | lodash-es | 9 |\n| GHSA-2 | lodash | 5.0.1 |\n| GHSA-3 | lodash | --- |\nmore"}`
	got := parseResult(t, file(`"tool":{"driver":{"name":"osv-scanner","rules":[{"id":"R",`+help+`}]}},"results":[{"ruleId":"R",`+
		`"message":{"text":"Package 'lodash@4.17.15' is vulnerable to 'x'."}}]`))
	if got.Package == nil || got.Package.FixedVersion != "4.17.21, 5.0.1" {
		t.Errorf("package %+v, want the fixed versions 4.17.21, 5.0.1", got.Package)
	}
}
