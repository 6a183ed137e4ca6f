package importer

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

func testContext(category v1alpha1.FindingCategory) *scanContext {
	return &scanContext{
		repository: "shop", project: "web", tool: "lint", category: category, commit: commit, scanID: "s-1",
		startedAt: v1alpha1.NewTime(time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC)),
		links:     newPermalinks(&v1alpha1.RepositorySpec{URL: "https://github.com/acme/shop"}, commit),
	}
}

func TestSpecSaysWhatTheFileSays(t *testing.T) {
	c := testContext(v1alpha1.CategoryCode)
	got := c.spec(&sarif.Result{
		RuleID: "go/sql", Severity: v1alpha1.LevelHigh, CWEs: []string{"CWE-89", "CWE-1"},
		Message: "query built from [user input](1)",
		Rule: &sarif.Rule{ID: "go/sql", Name: "sql", ShortDescription: "SQL injection in the\nquery. Bad.", FullDescription: "Never do.",
			Help: "Use parameters.", HelpURI: "https://example.com/sql", Precision: "very-high"},
		Location:     sarif.Location{Path: "src/a b.go", Line: 7, Column: 3, Snippet: "\n\tdb.Query(s)\n"},
		Related:      []sarif.Location{{Path: "src/in.go", Line: 2}},
		Fixes:        []sarif.Fix{{Description: "Use a parameter", Inserted: []string{"db.Query(q, s)"}}},
		Fingerprints: map[string]string{"primaryLocationLineHash": "h:1", "commitSha": "x", "matchBasedId/v1": "requires login"},
	})
	want := v1alpha1.FindingSpec{
		RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"}, ProjectRef: v1alpha1.ProjectReference{Name: "web"},
		DetectedAt: &c.startedAt, Tool: "lint", Category: v1alpha1.CategoryCode, RuleID: "go/sql", Class: "CWE-89",
		Agent: &v1alpha1.FindingAgent{Name: "lint"}, Confidence: v1alpha1.LevelHigh, CommitHash: commit,
		Fingerprints: []v1alpha1.Fingerprint{{Name: "primaryLocationLineHash", Value: "h:1"}}, Evidence: "iweem3lp.2mvqjrro..3",
		Details: v1alpha1.FindingDetails{
			Title: "SQL injection in the query.", Description: "query built from user input\n\nNever do.", Severity: v1alpha1.LevelHigh,
			Code: "\tdb.Query(s)", FixedCode: "db.Query(q, s)",
			Remediation: "Use parameters.\n\nUse a parameter\n\nSee https://example.com/sql",
			Location: &v1alpha1.FileLocation{FilePath: "src/a b.go", LineNumber: 7,
				URL: "https://github.com/acme/shop/blob/" + commit + "/src/a%20b.go#L7"},
			SupportingFiles: []v1alpha1.FileLocation{{FilePath: "src/in.go", LineNumber: 2,
				URL: "https://github.com/acme/shop/blob/" + commit + "/src/in.go#L2"}},
		},
		Scan: &v1alpha1.FindingScan{ScanID: "s-1", AnalyzedAt: &c.startedAt},
	}
	harness.Same(t, "spec", want, got)
}

// Nothing that is stored may contain the secret, whatever the scanner quotes.
func TestSecretsAreNotKept(t *testing.T) {
	const secret = "hunter2-S3cr3tV4lue"
	const around = "x\nKEY=" + secret
	for name, tc := range map[string]struct {
		reason   string
		category v1alpha1.FindingCategory
		rule     sarif.Rule
		cwes     []string
		snippet  string
		context  string
	}{
		"secret scanner":      {"that is what it quotes", v1alpha1.CategorySecret, sarif.Rule{Name: "x"}, nil, secret, around},
		"secret of trivy":     {"it looks for secrets beside packages", v1alpha1.CategoryPackage, sarif.Rule{Name: "Secret", FullDescription: "KEY=" + secret, Help: "Secret Key\nSeverity: HIGH\nMatch: KEY=" + secret}, nil, secret + "\n", around},
		"rule about secrets":  {"the tag says so", v1alpha1.CategoryCode, sarif.Rule{Name: "x", Tags: []string{"Secrets"}}, nil, "\tpw := `" + secret + "`\n", around},
		"hard-coded password": {"CWE-798 shows it", v1alpha1.CategoryCode, sarif.Rule{Name: "x"}, []string{"CWE-798"}, `const pw = "` + secret + `" // TODO`, around},
		"hard-coded key":      {"its name shows it", v1alpha1.CategoryCode, sarif.Rule{Name: "DoNotStoreTokensOrKeysInSourceCode"}, nil, `key: "` + secret + `"`, around},
		"in a configuration":  {"the message alone shows it", v1alpha1.CategoryCode, sarif.Rule{ShortDescription: "Password in configuration file"}, []string{"CWE-256", "CWE-260", "CWE-313"}, "", ""},
		"in a web.config":     {"CWE-13 shows it", v1alpha1.CategoryCode, sarif.Rule{Name: "x"}, []string{"CWE-13"}, `<add password="` + secret + `"/>`, around},
		"in a setting":        {"it is not quoted", v1alpha1.CategoryCode, sarif.Rule{Name: "x"}, []string{"CWE-259"}, "password=" + secret, around},
		"around it":           {"the tool gives no snippet but of what is around", v1alpha1.CategoryCode, sarif.Rule{Name: "x"}, []string{"CWE-798"}, "", around},
		"no code at all":      {"CodeQL gives none by default", v1alpha1.CategoryCode, sarif.Rule{Name: "x"}, []string{"CWE-798"}, "", ""},
		"hidden code":         {"the tool redacts it", v1alpha1.CategoryCode, sarif.Rule{Name: "x"}, []string{"CWE-798"}, "REDACTED", ""},
		"code of no use":      {"nothing in it is searched for", v1alpha1.CategoryCode, sarif.Rule{Name: "x"}, []string{"CWE-798"}, "}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := testContext(tc.category).spec(&sarif.Result{
				RuleID: "generic-key", Rule: &tc.rule, CWEs: tc.cwes, Severity: v1alpha1.LevelHigh,
				Message:      "found " + secret + " in config",
				Location:     sarif.Location{Path: "a.env", Line: 1, Snippet: tc.snippet, Context: tc.context},
				Suppression:  &sarif.Suppression{Justification: secret + " is a sample"},
				Fixes:        []sarif.Fix{{Description: "remove " + secret, Inserted: []string{secret}}},
				Fingerprints: map[string]string{"secret": secret},
			})
			encoded := harness.JSON(t, spec)
			if strings.Contains(string(encoded), secret) {
				t.Errorf("%s: the secret is stored: %s", tc.reason, encoded)
			}
			if spec.Details.Title == "" || (spec.SecretType == "generic-key") != (spec.Category == v1alpha1.CategorySecret) {
				t.Errorf("title %q, secret type %q", spec.Details.Title, spec.SecretType)
			}
		})
	}
}

func TestATagOfAnImageChangesNoFinding(t *testing.T) {
	found := func(image string) v1alpha1.FindingSpec {
		return testContext(v1alpha1.CategoryPackage).spec(&sarif.Result{RuleID: "CVE-1-x", Rule: &sarif.Rule{},
			Message: "A low vulnerability in apk package: x, version 1.2-r1 was found" + image + " at: /lib/apk"})
	}
	before, after := found(""), found(" in image registry.example.com/app:1747457987")
	harness.Same(t, "description", before.Details.Description, after.Details.Description)
	harness.Same(t, "evidence", before.Evidence, after.Evidence)
}

// Trivy repeats the path in the message. The digest of the message leaves the path out, so it stays the same if the
// message repeats the path that an earlier version stored.
func TestAPasswordInAPathIsNotKept(t *testing.T) {
	for _, tc := range []struct{ uri, earlier, repeated, want string }{
		{"oauth2:t0k3n@example.com/a/b.git?ref=1/main.tf", "oauth2:t0k3n@example.com/a/b.git?ref=1/main.tf",
			"oauth2:t0k3n@example.com/a/b.git?ref=1/main.tf", "example.com/a/b.git?ref=1/main.tf"},
		{"oauth2:p%40ss@example.com/a/b.tf", "oauth2:p%40ss@example.com/a/b.tf",
			"oauth2:p@ss@example.com/a/b.tf", "example.com/a/b.tf"},
		{"https://oauth2:p%40ss@example.com/a", "https://oauth2:p%40ss@example.com/a",
			"https://oauth2:p%40ss@example.com/a", "https://example.com/a"},
		{"user%40corp.com:t0k3n@example.com/a", "user@corp.com:t0k3n@example.com/a",
			"user%40corp.com:t0k3n@example.com/a", "example.com/a"},
		{"user%40corp.com:t0k3n@example.com/a", "user@corp.com:t0k3n@example.com/a",
			"user@corp.com:t0k3n@example.com/a", "example.com/a"},
	} {
		log, err := sarif.Parse(strings.NewReader(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"Trivy"}},"results":[{"ruleId":"R",
			"message":{"text":"Artifact: `+tc.repeated+`\nMessage: me@example.com"},
			"locations":[{"physicalLocation":{"artifactLocation":{"uri":"`+tc.uri+`"}}}]}]}]}`), sarif.Options{})
		harness.Must(t, err)
		r := &log.Runs[0].Results[0]
		harness.Same(t, "path", tc.want, r.Location.Path)
		harness.Same(t, "message", "Artifact: "+tc.want+"\nMessage: me@example.com", r.Message)
		earlier := &sarif.Result{Rule: r.Rule, Location: sarif.Location{Path: tc.earlier},
			Message: "Artifact: " + tc.repeated + "\nMessage: me@example.com"}
		same := messageDigest(earlier) == messageDigest(r)
		harness.Same(t, "same digest for "+tc.repeated, tc.repeated == tc.earlier, same)
	}
}

// Findings whose code an earlier version stored are recognised by its digest after it is withheld.
func TestWithheldCodeIsStillEvidence(t *testing.T) {
	r := sarif.Result{RuleID: "DS173237", Rule: &sarif.Rule{Name: "x"}, Message: "m", Location: sarif.Location{Path: "a", Line: 1, Snippet: `key = "abcd"`}}
	before := testContext(v1alpha1.CategoryCode).spec(&r)
	r.Rule = &sarif.Rule{Name: "HardcodedKey"}
	after := testContext(v1alpha1.CategoryCode).spec(&r)
	if before.Details.Code == "" || after.Details.Code != "" {
		t.Errorf("code %q, then %q", before.Details.Code, after.Details.Code)
	}
	harness.Same(t, "evidence", evidenceOf(&before, nil), evidenceOf(&after, nil))
}

// Every string and list of a finding made from the largest result is within the CRD's bounds.
func TestEveryBoundHolds(t *testing.T) {
	huge := strings.Repeat("<\U0001F600&é", maxDescription/4+1) // no bound is higher
	r := sarif.Result{
		RuleID: huge, Message: huge, Severity: v1alpha1.LevelLow, CWEs: []string{huge},
		Rule:         &sarif.Rule{Name: huge, ShortDescription: huge, FullDescription: "x" + huge, Help: "y" + huge, HelpURI: huge},
		Location:     sarif.Location{Path: huge, Line: 1, Snippet: huge},
		Fixes:        []sarif.Fix{{Description: huge, Inserted: []string{huge}}},
		Fingerprints: map[string]string{},
	}
	for i := range 100 {
		r.Related = append(r.Related, sarif.Location{Path: fmt.Sprint(i, huge), Line: 1})
		r.Fingerprints[fmt.Sprintf("contextHash/v%d", i)] = huge
	}
	c := testContext(v1alpha1.CategorySecret)
	c.tool = cut(huge, maxTool)
	for _, category := range []v1alpha1.FindingCategory{v1alpha1.CategorySecret, v1alpha1.CategoryCode} {
		c.category = category
		checkBounds(t, "spec", findingSchema(t), harness.Decoded[map[string]any](t, harness.JSON(t, c.spec(&r))))
	}
}

func findingSchema(t *testing.T) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	content := harness.RepositoryFile(t, "config", "crd", "bases", "appsec.dev_findings.yaml")
	var crd apiextensionsv1.CustomResourceDefinition
	harness.Must(t, yaml.Unmarshal([]byte(content), &crd))
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

func checkBounds(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps, value any) {
	t.Helper()
	switch v := value.(type) {
	case string:
		if schema.MaxLength != nil && int64(utf8.RuneCountInString(v)) > *schema.MaxLength {
			t.Errorf("%s has %d characters, at most %d are allowed", path, utf8.RuneCountInString(v), *schema.MaxLength)
		}
	case []any:
		if schema.MaxItems != nil && int64(len(v)) > *schema.MaxItems {
			t.Errorf("%s has %d items, at most %d are allowed", path, len(v), *schema.MaxItems)
		}
		for i, item := range v {
			checkBounds(t, fmt.Sprintf("%s[%d]", path, i), *schema.Items.Schema, item)
		}
	case map[string]any:
		for name, item := range v {
			property, known := schema.Properties[name]
			if !known {
				t.Errorf("%s.%s is not in the CRD", path, name)
				continue
			}
			checkBounds(t, path+"."+name, property, item)
		}
	}
}

func TestPermalinks(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		repository v1alpha1.RepositorySpec
		commit     string
		want       string
	}{
		"github":           {"the plain case", v1alpha1.RepositorySpec{Provider: "github", URL: "https://github.com/a/b"}, commit, "https://github.com/a/b/blob/" + commit + "/x%23y/a.go#L3"},
		"by host":          {"no provider is given", v1alpha1.RepositorySpec{URL: "https://github.com/a/b.git"}, commit, "https://github.com/a/b/blob/" + commit + "/x%23y/a.go#L3"},
		"by host, loud":    {"a host has no case", v1alpha1.RepositorySpec{URL: "https://GitHub.com/a/b"}, commit, "https://GitHub.com/a/b/blob/" + commit + "/x%23y/a.go#L3"},
		"gitlab":           {"another form", v1alpha1.RepositorySpec{Provider: "gitlab", URL: "https://git.acme.example/a/b/"}, commit, "https://git.acme.example/a/b/-/blob/" + commit + "/x%23y/a.go#L3"},
		"bitbucket":        {"another form", v1alpha1.RepositorySpec{Provider: "bitbucket", URL: "https://bitbucket.org/a/b"}, commit, "https://bitbucket.org/a/b/src/" + commit + "/x%23y/a.go#lines-3"},
		"gitea":            {"another form", v1alpha1.RepositorySpec{Provider: "gitea", URL: "https://git.acme.example/a/b"}, commit, "https://git.acme.example/a/b/src/commit/" + commit + "/x%23y/a.go#L3"},
		"credentials":      {"a link is shown to everybody", v1alpha1.RepositorySpec{Provider: "github", URL: "https://me:pw@github.com/a/b"}, commit, "https://github.com/a/b/blob/" + commit + "/x%23y/a.go#L3"},
		"no commit":        {"a link to a branch would move", v1alpha1.RepositorySpec{Provider: "github", URL: "https://github.com/a/b"}, "", ""},
		"a branch":         {"the same", v1alpha1.RepositorySpec{Provider: "github", URL: "https://github.com/a/b"}, "main", ""},
		"unknown provider": {"a guess leads nowhere", v1alpha1.RepositorySpec{Provider: "svn", URL: "https://svn.acme.example/a"}, commit, ""},
		"not the web":      {"a browser cannot open it", v1alpha1.RepositorySpec{Provider: "github", URL: "git@github.com:a/b"}, commit, ""},
		"script":           {"a link must not run anything", v1alpha1.RepositorySpec{Provider: "github", URL: "javascript://github.com/%0aalert(1)"}, commit, ""},
	} {
		t.Run(name, func(t *testing.T) {
			links := newPermalinks(&tc.repository, tc.commit)
			harness.Same(t, tc.reason, tc.want, links.of("x#y/a.go", 3))
		})
	}
}

func TestCategoryOf(t *testing.T) {
	for tool, want := range map[string]v1alpha1.FindingCategory{
		"gitleaks": "Secret", "TruffleHog": "Secret", "Trivy": "Package", "grype": "Package", "osv-scanner": "Package",
		"Snyk Open Source": "Package", "Snyk Container": "Package", "SnykCode": "Code", "CodeQL": "Code", "gosec": "Code",
		"Semgrep OSS": "Code", "OWASP dependency-check": "Package", "Recommender": "Code", "recommender mend": "Package",
		"lint": "Code",
	} {
		harness.Same(t, tool, want, CategoryOf(tool))
	}
	harness.Same(t, "names are no patterns", `deps\.dev|a\+`, anyOf([]string{"deps.dev", "a+"}))
}

func TestFieldManagerIsOneTheServerTakes(t *testing.T) {
	for tool, want := range map[string]string{
		"gosec": "scanner/gosec", "Snyk Open Source": "scanner/Snyk-Open-Source", "ümlaut/\n": "scanner/-mlaut--",
	} {
		harness.Same(t, tool, want, fieldManager(tool))
	}
	if n := len(fieldManager(strings.Repeat("é", 128))); n > v1alpha1.MaxFieldManagerLength {
		t.Errorf("%d bytes, at most %d are allowed", n, v1alpha1.MaxFieldManagerLength)
	}
}
