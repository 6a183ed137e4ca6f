package importer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestTitleIsOneWholeSentence(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		rule   sarif.Rule
		id     string
		text   string
		want   string
	}{
		"wrapped":           {"a line was broken for its length", sarif.Rule{ShortDescription: "If this data can be\ncontrolled by users, it is bad. Do not."}, "r", "m", "If this data can be controlled by users, it is bad."},
		"a name":            {"a line that is full is gone on with by a name", sarif.Rule{ShortDescription: strings.Repeat("word ", 13) + "of\nJava and others"}, "r", "m", strings.Repeat("word ", 13) + "of Java and others"},
		"several":           {"the first says it", sarif.Rule{ShortDescription: "It does not escape HTML. This can lead to harm."}, "r", "m", "It does not escape HTML."},
		"an abbreviation":   {"its period ends nothing", sarif.Rule{ShortDescription: "Use of weak ciphers, e.g. DES or RC4, in code"}, "r", "m", "Use of weak ciphers, e.g. DES or RC4, in code"},
		"a version":         {"nor does that of a number", sarif.Rule{ShortDescription: "Needs TLS 1.2 or later"}, "r", "m", "Needs TLS 1.2 or later"},
		"in quotes":         {"they belong to the sentence", sarif.Rule{ShortDescription: `It says "do not." Really.`}, "r", "m", `It says "do not."`},
		"lines of facts":    {"each stands for itself", sarif.Rule{}, "r", "Package: lodash\nInstalled Version: 1", "Package: lodash"},
		"Semgrep":           {"a rule without a description", sarif.Rule{ShortDescription: "Semgrep Finding: r", FullDescription: "Full."}, "r", "Sink is called. Fix it.", "Sink is called."},
		"a name for a text": {"scorecard names the check", sarif.Rule{ShortDescription: "Branch-Protection", FullDescription: "Full."}, "r", "score is 3: not maximal", "score is 3: not maximal"},
		"nothing else":      {"a name is more than nothing", sarif.Rule{ShortDescription: "Branch-Protection"}, "r", "", "Branch-Protection"},
		"not a word":        {"a list needs a title", sarif.Rule{}, "", "", "Finding without a description"},
	} {
		harness.Same(t, name+": "+tc.reason, tc.want, title(&sarif.Result{Rule: &tc.rule, RuleID: tc.id}, tc.text, textsOf(&tc.rule)))
	}
}

func TestRemediationSaysWhatToDo(t *testing.T) {
	const markdown = "# Overview\nBad.\n# Remediation\nUpgrade it.\n## How\nBy hand.\n# References\n- x"
	for name, tc := range map[string]struct {
		reason  string
		rule    sarif.Rule
		message string
		fixes   []sarif.Fix
		fixed   string
		uri     string
		wanted  string
	}{
		"advice":              {"it is all that there is", sarif.Rule{Help: "Use parameters."}, "", nil, "", "", "Use parameters."},
		"a section":           {"the rest says what is wrong", sarif.Rule{Help: markdown}, "", nil, "", "", "Upgrade it.\n## How\nBy hand."},
		"in bold":             {"scorecard has no headings", sarif.Rule{Help: "**Remediation (click \"more\")**:\n\n- do x\n\n**Severity**: High\n\n**Details**:\n\ny"}, "", nil, "", "", "- do x"},
		"headings, no advice": {"a description is none", sarif.Rule{Help: "# Overview\nBad."}, "", nil, "", "", ""},
		"the title again":     {"gosec and Checkov", sarif.Rule{ShortDescription: "SQL formatting", Help: "\"SQL formatting\nSeverity: MEDIUM\nConfidence: HIGH\""}, "", nil, "", "", ""},
		"the description":     {"Trivy", sarif.Rule{FullDescription: "It overflows. Fixed in 2.", Help: "Vulnerability CVE-1\nPackage: other\nIt overflows. Fixed in 2."}, "", nil, "1.2", "", "Upgrade p to 1.2."},
		"another's resource":  {"Checkov: the rule is described by its first result", sarif.Rule{ShortDescription: "Add it", Help: "\"Add it\nResource: /other.\""}, "", nil, "", "", ""},
		"the message":         {"Semgrep", sarif.Rule{Help: "Never call it."}, "Never call it.", nil, "", "", ""},
		"an advertisement":    {"Semgrep ends every help with it", sarif.Rule{Help: "Never call it.\n💎 Enable cross-file analysis and Pro rules for free at <a href='https://sg.run/pro'>sg.run/pro</a>\n"}, "Never call it.", nil, "", "", ""},
		"a fix of the tool":   {"it is better than ours", sarif.Rule{}, "", []sarif.Fix{{Description: "Upgrade q to 2"}}, "1.2", "", "Upgrade q to 2"},
		"only an address":     {"it says where it is told", sarif.Rule{Help: "https://x.example/r"}, "", nil, "", "https://x.example/r", "See https://x.example/r"},
		"the rule's page":     {"the same", sarif.Rule{HelpURI: "https://x.example/r"}, "", nil, "", "", "See https://x.example/r"},
		"the tool's page":     {"it says nothing about the rule", sarif.Rule{HelpURI: "https://github.com/anchore/grype"}, "", nil, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &sarif.Result{Rule: &tc.rule, Fixes: tc.fixes}
			if tc.uri != "" {
				r.Rule.HelpURI = tc.uri
			}
			if tc.fixed != "" {
				r.Package = &sarif.Package{Name: "p", FixedVersion: tc.fixed}
			}
			harness.Same(t, tc.reason, tc.wanted, remediation(r, tc.message, textsOf(r.Rule), false))
		})
	}
}

func TestRedactionLeavesProseAlone(t *testing.T) {
	for name, tc := range map[string]struct{ reason, snippet, message, want string }{
		"a plain value":              {"it is a word of the language", `type = "text"`, "stored as plain text", "stored as plain text"},
		"and quoted":                 {"then it may be the value", `type = "text"`, `the value "text" is stored`, `the value "[not kept]" is stored`},
		"a password that is a word":  {"the code calls it a password", `password = "hunter"`, "the password hunter is in the code, hunters too", "the password [not kept] is in the code, hunters too"},
		"a password password":        {"the message is about passwords", `password: "password"`, "hard-coded password", "hard-coded password"},
		"a key":                      {"no prose looks so", `x := "AKIA12345"`, "found AKIA12345 here", "found [not kept] here"},
		"a setting":                  {"it is not quoted", "db_url=postgres://u:pw1@h", "connects to postgres://u:pw1@h", "connects to [not kept]"},
		"in a connection string":     {"CodeQL quotes from the password on", `"db": "Server=x;Password=hunter2S3;Port=3"`, "password 'hunter2S3;Port=3' in", "password '[not kept]' in"},
		"and without quotes":         {"it is a value as well", `"db": "Server=x;Password=hunter2S3;Port=3"`, "password hunter2S3 in", "password [not kept] in"},
		"a setting of make":          {"the operator has no blank after it", "PASSWORD:=hunter2S3", "password hunter2S3 in", "password [not kept] in"},
		"a comparison":               {"the operator has no blank after it", "password==hunter2S3", "password hunter2S3 in", "password [not kept] in"},
		"a word that is compared":    {"the code calls it a password", `password == "hunter"`, "the password hunter is", "the password [not kept] is"},
		"a word that is not equal":   {"the code calls it a password", `password != "hunter"`, "the password hunter is", "the password [not kept] is"},
		"a word with a type":         {"the code calls it a password", `password: str = "hunter"`, "the password hunter is", "the password [not kept] is"},
		"a name like a type":         {"the code calls it a password", `default: password = "hunter"`, "the password hunter is", "the password [not kept] is"},
		"a word with a prefix":       {"the code calls it a password", `password = b"hunter"`, "the password hunter is", "the password [not kept] is"},
		"a word of a hash":           {"the code calls it a password", `:password => "hunter"`, "the password hunter is", "the password [not kept] is"},
		"a setting of a hash":        {"the operator has no blank after it", "password=>hunter2S3", "password hunter2S3 in", "password [not kept] in"},
		"a setting within a setting": {"an address has several", `url = "jdbc:mysql://h/db?user=a&password=hunter2S3"`, "password hunter2S3 in", "password [not kept] in"},
		"a setting among others":     {"an address has several", `url = "jdbc:mysql://h/db?password=hunter2S3&useSSL=false"`, "password hunter2S3 in", "password [not kept] in"},
		"a comma and a semicolon":    {"passwords have them", "password: ab;12,cd", "password 'ab;12,cd' in", "password '[not kept]' in"},
		"a blank":                    {"passwords have them", "password: my pass 99", "password 'my pass 99' in", "password '[not kept]' in"},
		"a bracket":                  {"passwords have them", "password: a) b", "password 'a) b' in", "password '[not kept]' in"},
		"three letters":              {"it is quoted", "password: abc", "password 'abc' in", "password '[not kept]' in"},
		"a mark of quotation":        {"it ends no quotation", `"password": "pa'ss"`, "password 'pa'ss' in 'x'", "password '[not kept]' in 'x'"},
		"an escaped mark":            {"the message may quote the value", `"password": "ab\"cd"`, `password 'ab"cd' or "ab\"cd"`, `password '[not kept]' or "[not kept]"`},
		"an apostrophe":              {"the part after it is one of the values", `"password": "it's4me!"`, "password 'it's4me!' in", "password '[not kept]' in"},
		"a string that is compared":  {"it may be the password", `if ("root" == password) {`, "password 'root' in", "password '[not kept]' in"},
		"a string to choose":         {"it may be the password", `password = debug ? "root" : "";`, "password 'root' in", "password '[not kept]' in"},
		"a string of a case":         {"it may be the password", `case "root": login()`, "password 'root' in", "password '[not kept]' in"},
		"a name that is a value":     {"it may be the password", `root = "root"`, "'root' is in it", "'[not kept]' is in it"},
		"a name of an address":       {"it may be a token", "url: https://t0ken:x@h", "'t0ken' is in it", "'[not kept]' is in it"},
		"a prefix of a string":       {"it opens the string as well", `password = b"root"`, "password b'root' in", "password b'[not kept]' in"},
		"too many marks":             {"nobody could search for all", "password: abc", strings.Repeat("'", maxMarks+1), ""},
		"a short value":              {"no prose looks so", "password: r00t", "password 'r00t' in", "password '[not kept]' in"},
		"after other code":           {"the next may be the password", `open("x", "my pass")`, "call 'f(x)', 'my pass' is there", "call 'f(x)'[not kept]'[not kept]' is there"},
		"after no code":              {"the next may be the password", `for p in ('abc',):`, "'' in 'abc' twice", "''[not kept]'[not kept]' twice"},
		"a short word":               {"it may be the value where it is quoted", "password: root", "root has 'root'", "root has '[not kept]'"},
		"a line of code":             {"it is a quotation", "open(door, 1)", "calls open(door, 1) twice", "calls [not kept] twice"},
		"a value like our mark":      {"what is put in is not searched", `f('ept]', 'ept]', 'kept', "token = 'kept'")`, "ept] is kept", "[not kept] is kept"},
		"values that overlap":        {"a part of a value is one too", "a = 'AKIA1234'\nb = '1234-5678-90'", "found AKIA1234-5678-90 here", "found [not kept] here"},
		"a line with a value":        {"the value was in a line before", "a = 'AKIA1234'\nopen('AKIA1234')", "calls open('AKIA1234') twice", "calls [not kept] twice"},
		"too many values":            {"nobody could search for all", manyValues(maxValues), "found AKIA12345 here", ""},
		"the last of many on a line": {"minified code has hundreds", strings.Repeat("f('abcde', 'cdefg');", maxValues) + "k('AKIA1234')", "found AKIA1234 here", "found [not kept] here"},
		"too many on a line":         {"nobody could search for all", strings.ReplaceAll(manyValues(maxValues+1), "\n", ""), "found AKIA12345 here", ""},
		"nothing but the code":       {"a mark is no title", "password: abc1", "'password: abc1'.", ""},
		"a line that is a word":      {"it is prose as well", "return", "check before you return", "check before you return"},
	} {
		harness.Same(t, name+": "+tc.reason, tc.want, withoutQuotes(tc.message, tc.snippet))
	}
}

// manyValues returns code with so many different values.
func manyValues(n int) string {
	var code strings.Builder
	for i := range n {
		fmt.Fprintf(&code, "'value-%d',%s", i, map[bool]string{true: "\n"}[i%100 == 99])
	}
	return code.String()
}

// Muting a class mutes all findings like it.
func TestClassIsNeverWhatARuleIsCalled(t *testing.T) {
	rule := &sarif.Rule{ID: "CVE-2020-1234-x", Name: "GoModuleMatcherCpeMatch"}
	harness.Same(t, "class", rule.ID, class(&sarif.Result{RuleID: rule.ID, Rule: rule}))
	harness.Same(t, "class with CWEs", "CWE-79", class(&sarif.Result{RuleID: rule.ID, Rule: rule, CWEs: []string{"CWE-79", "CWE-80"}}))
}

func TestAnAddressIsNoFile(t *testing.T) {
	c := testContext(v1alpha1.CategoryCode)
	details := c.details(&sarif.Result{
		Rule: &sarif.Rule{}, Location: sarif.Location{Path: "https://shop.example/cart?token=x", Line: 1},
		Endpoints: []sarif.Endpoint{{Method: "POST", Path: "/cart"}},
	})
	if details.Location != nil {
		t.Errorf("location %+v, want none", details.Location)
	}
	want := []v1alpha1.EndpointLocation{{Type: v1alpha1.EndpointHTTP, Action: "POST", Path: "/cart"}}
	harness.Same(t, "endpoints", want, details.EndpointLocations)
}

// A finding gets links that were missing when it was first imported, and keeps its existing links at any commit.
func TestOnlyANewLinkIsADifference(t *testing.T) {
	of := func(url, supporting string) *v1alpha1.FindingSpec {
		return &v1alpha1.FindingSpec{Details: v1alpha1.FindingDetails{
			Location:        &v1alpha1.FileLocation{FilePath: "a.go", LineNumber: 1, URL: url},
			SupportingFiles: []v1alpha1.FileLocation{{FilePath: "b.go", URL: supporting}},
		}}
	}
	for name, tc := range map[string]struct {
		reported, there *v1alpha1.FindingSpec
		same            bool
	}{
		"another commit":         {of("new", "new"), of("old", "old"), true},
		"no commit now":          {of("", ""), of("old", "old"), true},
		"no commit then":         {of("new", "new"), of("", ""), false},
		"a supporting file only": {of("new", "new"), of("old", ""), false},
	} {
		harness.Same(t, name, tc.same, sameFacts(tc.reported, tc.there))
	}
}

// What another writer has added stays if the file does not contain it.
func TestEndpointsOfOthersAreNoDifference(t *testing.T) {
	there := &v1alpha1.FindingSpec{Details: v1alpha1.FindingDetails{
		EndpointLocations: []v1alpha1.EndpointLocation{{Type: v1alpha1.EndpointGRPC, Path: "x"}},
	}}
	if !sameFacts(&v1alpha1.FindingSpec{}, there) {
		t.Error("an endpoint that the file does not name is a difference")
	}
	reported := &v1alpha1.FindingSpec{Details: v1alpha1.FindingDetails{
		EndpointLocations: []v1alpha1.EndpointLocation{{Type: v1alpha1.EndpointHTTP, Path: "/"}},
	}}
	if sameFacts(reported, there) {
		t.Error("an endpoint that the file names is no difference")
	}
}

func TestCategoryOfResult(t *testing.T) {
	const code, packages, secrets = v1alpha1.CategoryCode, v1alpha1.CategoryPackage, v1alpha1.CategorySecret
	inPackage := &sarif.Package{Name: "p"}
	for name, tc := range map[string]struct {
		reason     string
		tool, want v1alpha1.FindingCategory
		result     sarif.Result
	}{
		"a package of Wiz":       {"it reports code and packages", code, packages, sarif.Result{Rule: &sarif.Rule{}, Package: inPackage}},
		"code":                   {"most is", code, code, sarif.Result{Rule: &sarif.Rule{Name: "Secret"}}},
		"IaC of Trivy":           {"the rule says so", packages, code, sarif.Result{Rule: &sarif.Rule{Name: "Misconfiguration"}}},
		"a secret of Trivy":      {"the rule says so", packages, secrets, sarif.Result{Rule: &sarif.Rule{Tags: []string{"SECRET"}}}},
		"a vulnerability":        {"no package is named", packages, packages, sarif.Result{Rule: &sarif.Rule{Tags: []string{"secret"}}, Vulnerability: &sarif.Vulnerability{ID: "CVE-1"}}},
		"a package and a secret": {"a scanner of secrets finds nothing else", secrets, secrets, sarif.Result{Rule: &sarif.Rule{}, Package: inPackage}},
	} {
		harness.Same(t, name+": "+tc.reason, tc.want, CategoryOfResult(&tc.result, tc.tool))
	}
	harness.Same(t, "the category of Snyk Secrets", secrets, CategoryOf("Snyk Secrets"))
}
