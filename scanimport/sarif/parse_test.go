package sarif

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// file wraps the members of one run; a run without a tool gets one.
func file(run string) string {
	if !strings.Contains(run, `"tool"`) {
		run = `"tool":{"driver":{"name":"lint","rules":[{"id":"R0"},{"id":"R1","name":"second"}]}},` + run
	}
	return `{"version":"2.1.0","runs":[{` + run + `}]}`
}

func parseOne(t *testing.T, document string, options Options) Run {
	t.Helper()
	log, err := Parse(strings.NewReader(document), options)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	if len(log.Runs) != 1 {
		t.Fatalf("%d runs, want 1", len(log.Runs))
	}
	run := log.Runs[0]
	if run.Total != len(run.Results)+len(run.Skipped) {
		t.Fatalf("%d entries, %d results and %d skipped", run.Total, len(run.Results), len(run.Skipped))
	}
	return run
}

// parseResult parses a file with one result and requires it to be a finding.
func parseResult(t *testing.T, document string) Result {
	t.Helper()
	run := parseOne(t, document, Options{})
	if len(run.Results) != 1 {
		t.Fatalf("%d results (skipped %v), want 1", len(run.Results), run.Skipped)
	}
	return run.Results[0]
}

// parseRuled parses a file with one result of a rule of the tool; rule and result are further members of these objects.
func parseRuled(t *testing.T, tool, rule, result string) Result {
	t.Helper()
	with := func(id, more string) string {
		if more != "" {
			id += ","
		}
		return "{" + id + more + "}"
	}
	return parseResult(t, file(`"tool":{"driver":{"name":"`+tool+`","rules":[`+with(`"id":"R"`, rule)+`]}},`+
		`"results":[`+with(`"ruleId":"R"`, result)+`]`))
}

func TestFilesThatAreRefused(t *testing.T) {
	small := Limits{Bytes: 4096, Depth: 32, Results: 3, Runs: 2}
	for name, tc := range map[string]struct {
		reason, document, want string
	}{
		"empty":          {"the scanner may have failed", "", "empty"},
		"blank":          {"the same", " \n", "empty"},
		"not JSON":       {"it is a log, say", "Scanning...\n", "not JSON"},
		"compressed":     {"scanners and CI write it so", "\x1f\x8b\x08", "gunzip -c FILE | kubectl findings import -"},
		"cut off":        {"a full disk does that", `{"version":"2.1.0","runs":[{"results":[{"ru`, "ends too early"},
		"two documents":  {"the second would be lost", file(`"results":[]`) + "{}", "follows the end"},
		"an array":       {"SARIF is an object", "[]", "the file is not an object"},
		"no version":     {"it may be anything", `{"runs":[]}`, `no member "version"`},
		"old version":    {"its members are others", `{"version":"2.0.0","runs":[{}]}`, `version is "2.0.0"`},
		"version at end": {"members come in any order", `{"runs":[{}],"version":"1.0.0"}`, `version is "1.0.0"`},
		"no runs":        {"nobody says anything", `{"version":"2.1.0"}`, `no member "runs"`},
		"runs null":      {"the same", `{"version":"2.1.0","runs":null}`, `no member "runs"`},
		"runs empty":     {"no tool says that it is clean", `{"version":"2.1.0","runs":[]}`, "holds no run"},
		"runs an object": {"it is not SARIF", `{"version":"2.1.0","runs":{}}`, "runs is not an array"},
		"run a string":   {"it is not SARIF", `{"version":"2.1.0","runs":["x"]}`, "runs[0] is not an object"},
		"results object": {"to take it for empty would close everything", file(`"results":{}`), "runs[0].results is not an array"},
		"results twice":  {"which of them counts is anybody's guess", file(`"results":[],"results":[{}]`), `"results" occurs twice`},
		"too large":      {"memory is finite", file(`"results":[],"x":"` + strings.Repeat("x", 5000) + `"`), "larger than 0 MiB: " + reportLess},
		"too deep":       {"a stack is finite", file(`"results":[],"x":` + strings.Repeat("[", 50) + strings.Repeat("]", 50)), "nested deeper than 32"},
		"too many":       {"a cluster is finite", file(`"results":[{},{},{},{}]`), "more than 3 entries: " + reportLess},
		"too many total": {"the same", `{"version":"2.1.0","runs":[{"results":[{},{}]},{"results":[{},{}]}]}`, "more than 3 results: " + reportLess},
		"too many runs":  {"the same", `{"version":"2.1.0","runs":[{},{},{}]}`, "more than 2 entries: " + reportLess},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(strings.NewReader(tc.document), Options{Limits: small})
			harness.ErrorContains(t, tc.reason, err, tc.want)
		})
	}
}

// Brackets in strings do not count as nesting.
func TestDepthIsOfTheStructure(t *testing.T) {
	parseOne(t, file(`"results":[{"message":{"text":"`+strings.Repeat(`[{\"`, 300)+`"}}]`), Options{Limits: Limits{Bytes: 1 << 20, Depth: 16, Results: 9, Runs: 9}})
}

func TestEncodings(t *testing.T) {
	plain := file(`"results":[{"message":{"text":"é"}}]`)
	utf16LE := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(plain)) {
		utf16LE = binary.LittleEndian.AppendUint16(utf16LE, unit)
	}
	for name, tc := range map[string]struct {
		reason   string
		document []byte
		want     string
	}{
		"UTF-8 with a mark": {".NET writes one", append([]byte{0xef, 0xbb, 0xbf}, plain...), "é"},
		"UTF-16":            {"PowerShell's > writes it", utf16LE, "é"},
		"invalid UTF-8":     {"a snippet of a binary file", []byte(strings.Replace(plain, "é", "\xff", 1)), "\uFFFD"},
		"half a surrogate":  {"a snippet cut in two", []byte(strings.Replace(plain, "é", `\ud800`, 1)), "\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			log, err := Parse(bytes.NewReader(tc.document), Options{})
			if err != nil {
				t.Fatalf("refused: %v; %s", err, tc.reason)
			}
			harness.Same(t, tc.reason, tc.want, log.Runs[0].Results[0].Message)
		})
	}
}

func TestFormerIDsOfRules(t *testing.T) {
	run := parseOne(t, file(`"tool":{"driver":{"name":"lint","rules":[
		{"id":"R","deprecatedIds":["OLD","OF TWO","S","R",""]},{"id":"R","deprecatedIds":["OLD"]},{"id":"S"},{"deprecatedIds":["OF NONE"]}]},
		"extensions":[{"rules":[{"id":"E","deprecatedIds":["OF TWO","OF E"]}]}]},
		"results":[{"ruleIndex":0},{"ruleIndex":1},{"ruleId":"E"}]`), Options{})
	for i, want := range [][]string{{"OLD"}, {"OLD"}, {"OF E"}} {
		harness.Same(t, fmt.Sprintf("former ids of the rule of result %d", i), want, run.Results[i].Rule.Formerly)
	}
}

func TestEntriesThatAreNoFindings(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, result string
		want           SkipReason
	}{
		"pass":               {"the rule found nothing", `{"ruleId":"R0","kind":"pass"}`, SkipPass},
		"not applicable":     {"the rule did not run", `{"ruleId":"R0","kind":"notApplicable"}`, SkipNotApplicable},
		"open":               {"not decided is not none", `{"ruleId":"R0","kind":"open"}`, ""},
		"suppressed":         {"it is there", `{"ruleId":"R0","suppressions":[{"kind":"inSource"}]}`, ""},
		"gone":               {"the tool says that it is gone", `{"ruleId":"R0","baselineState":"absent"}`, SkipAbsentInBaseline},
		"unchanged":          {"it is there", `{"ruleId":"R0","baselineState":"unchanged"}`, ""},
		"pass, loud":         {"case has no meaning", `{"ruleId":"R0","kind":" Pass"}`, SkipPass},
		"inapplicable, loud": {"case has no meaning", `{"ruleId":"R0","kind":"NotApplicable"}`, SkipNotApplicable},
		"gone, loud":         {"case has no meaning", `{"ruleId":"R0","baselineState":"Absent"}`, SkipAbsentInBaseline},
		"a number":           {"there is nothing to read", `7`, SkipNotAnObject},
		"null":               {"there is nothing to read", `null`, SkipNotAnObject},
		"nothing":            {"there is nothing to know it by", `{}`, SkipEmpty},
		"index out of range": {"no rule and no way to find one", `{"ruleIndex":9,"message":{"text":"m"}}`, SkipRuleIndex},
		"unknown component":  {"its rules are not known", `{"rule":{"index":0,"toolComponent":{"name":"x"}},"message":{"text":"m"}}`, SkipRuleIndex},
		"unknown rule.guid":  {"the rule is not known", `{"rule":{"guid":"x"},"message":{"text":"m"}}`, SkipRuleIndex},
		"unknown GUID":       {"its rules are not known", `{"rule":{"index":0,"toolComponent":{"guid":"x"}},"message":{"text":"m"}}`, SkipRuleIndex},
		"message only":       {"SARIF allows it", `{"message":{"text":"m"}}`, ""},
		"wrong types":        {"what can be read is read", `{"ruleId":"R0","locations":{},"message":[],"codeFlows":7,"fixes":"x"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			run := parseOne(t, file(`"results":[`+tc.result+`,{"ruleId":"R1"}]`), Options{})
			got := SkipReason("")
			if len(run.Skipped) > 0 {
				got = run.Skipped[0].Reason
			}
			harness.Same(t, tc.reason, tc.want, got)
			if run.Incomplete != "" != slices.Contains([]SkipReason{SkipNotAnObject, SkipRuleIndex}, tc.want) {
				t.Errorf("incomplete %q: only what cannot be read may be a known result: %s", run.Incomplete, tc.reason)
			}
			harness.Same(t, tc.reason+": the result after it", "R1", run.Results[len(run.Results)-1].RuleID)
		})
	}
}

func TestWhichRunsAreIncomplete(t *testing.T) {
	for reason, tc := range map[string]struct {
		run        string
		incomplete bool
	}{
		"an empty list says that nothing was found":          {`"results":[]`, false},
		"without a list the tool did not get to its results": {`"columnKind":"utf16CodeUnits"`, true},
		"null is not an empty list":                          {`"results":null`, true},
		"what cannot be read may be a known result":          {`"results":[null]`, true},
	} {
		run := parseOne(t, file(tc.run), Options{})
		harness.Same(t, reason, tc.incomplete, run.Incomplete != "")
	}
	// What a failed tool did not report may be there.
	const failed, unknown = "the tool reports that it failed (executionSuccessful is false)",
		"it is not known whether the tool succeeded (executionSuccessful is neither true nor false)"
	for value, want := range map[string]string{
		`true`: "", `"true"`: "", `"True"`: "", `null`: "", `false`: failed, `"false"`: failed,
		`1`: unknown, `"yes"`: unknown, `{}`: unknown,
	} {
		run := parseOne(t, file(`"results":[],"invocations":[{"executionSuccessful":`+value+`}]`), Options{})
		harness.Same(t, "executionSuccessful of "+value, want, run.Incomplete)
	}
	const unread = "it is not known whether the tool succeeded (`invocations` is not a list of objects)"
	for value, want := range map[string]string{
		`null`: "", `[]`: "", `[{}]`: "", `{"executionSuccessful":true}`: "", `{"executionSuccessful":false}`: failed,
		`"failed"`: unread, `false`: unread, `[null]`: unread, `[{},"failed"]`: unread, `[[{"executionSuccessful":false}],{}]`: unread,
		`{"0":{"executionSuccessful":false}}`: unread, `{"invocation":{"executionSuccessful":true}}`: unread, `{}`: unread,
		`{"toolExecutionNotifications":{"level":"error"}}`: "the tool reports an error (a notification of level error)",
	} {
		run := parseOne(t, file(`"invocations":`+value+`,"results":[]`), Options{})
		harness.Same(t, "invocations of "+value, want, run.Incomplete)
	}
}

func TestSuppressions(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, suppressions string
		want                 *Suppression
	}{
		"none":            {"nothing is said", `null`, nil},
		"looked for":      {"an empty list says that there is none", `[]`, nil},
		"no status":       {"that means accepted", `[{"kind":"inSource"}]`, &Suppression{InSource: true}},
		"accepted":        {"somebody has looked", `[{"kind":"external","status":"accepted","justification":" a test \n"}]`, &Suppression{Justification: "a test"}},
		"rejected":        {"one that was rejected is none", `[{"kind":"inSource","status":"accepted"},{"kind":"inSource","status":"rejected"}]`, nil},
		"under review":    {"nobody has decided", `[{"kind":"inSource","status":"underReview"}]`, nil},
		"several":         {"the first that says why", `[{"kind":"external"},{"kind":"inSource","justification":"why"},{"justification":"too late"}]`, &Suppression{InSource: true, Justification: "why"}},
		"another kind":    {"only the code is the source", `[{"kind":"elsewhere"}]`, &Suppression{}},
		"wrong types":     {"what can be read is read", `[{"kind":7,"status":null,"justification":{}}]`, &Suppression{}},
		"loud":            {"case has no meaning", `[{"kind":" InSource","status":" Accepted"},{"status":""}]`, &Suppression{InSource: true}},
		"rejected, loud":  {"case has no meaning", `[{"status":"Rejected"}]`, nil},
		"no list of them": {"nothing can be read", `"yes"`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			run := parseOne(t, file(`"results":[{"ruleId":"R0","suppressions":`+tc.suppressions+`}]`), Options{})
			harness.Same(t, tc.reason, tc.want, run.Results[0].Suppression)
		})
	}
	for _, unknown := range []string{
		`{"status":"under_review"}`, `{"status":"pending"}`, `{"status":7}`, `{"status":{}}`, `{"status":true}`,
		`null`, `7`, `"rejected"`, `[]`,
	} {
		run := parseOne(t, file(`"results":[{"ruleId":"R0","suppressions":[{"status":"accepted"},`+unknown+`]}]`), Options{})
		if run.Results[0].Suppression != nil || run.Notes[NoteSuppression] != 1 {
			t.Errorf("%s: suppressed, or not noted: %v", unknown, run.Notes)
		}
	}
}

func TestRules(t *testing.T) {
	tool := `"tool":{"driver":{"name":"lint","rules":[{"id":"R0","name":"zero"},{"id":"R1","name":"one"},{"id":"R1","name":"one again"}]},
		"extensions":[{"name":"pack","guid":"g-1","rules":[{"id":"E0","guid":"G-2","name":"extension"}]},
			{"name":"plain","rules":[{"id":"P0","name":"plain one"}]}]},`
	for name, tc := range map[string]struct {
		reason, result, id, rule string
		note                     string
	}{
		"id":                       {"the plain case", `"ruleId":"R0"`, "R0", "zero", ""},
		"index":                    {"the index alone", `"ruleIndex":1`, "R1", "one", ""},
		"rule.index":               {"the reference alone", `"rule":{"index":1}`, "R1", "one", ""},
		"rule.id":                  {"the reference by id", `"rule":{"id":"R0"}`, "R0", "zero", ""},
		"same id twice, index":     {"the index tells them apart", `"ruleId":"R1","ruleIndex":2`, "R1", "one again", ""},
		"same id twice":            {"the first is it", `"ruleId":"R1"`, "R1", "one", ""},
		"index as text":            {"some tools quote it", `"ruleIndex":"1"`, "R1", "one", ""},
		"index -1":                 {"SARIF's word for none", `"ruleId":"R0","ruleIndex":-1`, "R0", "zero", ""},
		"index out of range":       {"the id still says it", `"ruleId":"R0","ruleIndex":9`, "R0", "zero", NoteRuleIndex},
		"index of another":         {"the id counts", `"ruleId":"R0","ruleIndex":1`, "R0", "zero", NoteRuleIndex},
		"hierarchical":             {"a sub-rule is its own id and its parent's text", `"ruleId":"R0/sub/x"`, "R0/sub/x", "zero", ""},
		"hierarchical with index":  {"the same", `"ruleId":"R1/sub","ruleIndex":1`, "R1/sub", "one", ""},
		"extension by id":          {"rules may be in an extension only", `"ruleId":"E0"`, "E0", "extension", ""},
		"extension by index":       {"the component tells which array", `"rule":{"index":0,"toolComponent":{"index":0}}`, "E0", "extension", ""},
		"extension by guid":        {"the same", `"rule":{"index":0,"toolComponent":{"guid":"g-1"}}`, "E0", "extension", ""},
		"extension not there":      {"the id still says it", `"rule":{"id":"R0","index":0,"toolComponent":{"index":7}}`, "R0", "zero", NoteRuleIndex},
		"rule.guid":                {"the reference by GUID", `"rule":{"guid":"g-2"}`, "E0", "extension", ""},
		"rule.guid, unknown index": {"the GUID still says it", `"ruleIndex":9,"rule":{"guid":"g-2"}`, "E0", "extension", NoteRuleIndex},
		"extension, new guid":      {"the name still says it", `"rule":{"index":0,"toolComponent":{"name":"plain","guid":"g-9"}}`, "P0", "plain one", ""},
		"extension, another guid":  {"it is another extension of that name", `"rule":{"index":0,"guid":"g-2","toolComponent":{"name":"pack","guid":"g-9"}}`, "E0", "extension", NoteRuleIndex},
		"rule.guid, unknown id":    {"the GUID knows the texts", `"rule":{"id":"X/1","guid":"g-2"}`, "X/1", "extension", ""},
		"not described":            {"no text is no reason to lose it", `"ruleId":"X"`, "X", "", NoteUnknownRule},
		"two ids":                  {"one of them must do", `"ruleId":"R0","rule":{"id":"R1"}`, "R0", "zero", NoteRuleConflict},
		"id a number":              {"some tools do not quote it", `"ruleId":42`, "42", "", NoteUnknownRule},
	} {
		t.Run(name, func(t *testing.T) {
			run := parseOne(t, file(tool+`"results":[{`+tc.result+`,"message":{"text":"m"}}]`), Options{})
			if len(run.Results) != 1 {
				t.Fatalf("skipped: %v; %s", run.Skipped, tc.reason)
			}
			got := run.Results[0]
			if got.RuleID != tc.id || got.Rule.Name != tc.rule {
				t.Errorf("rule %q named %q, want %q named %q: %s", got.RuleID, got.Rule.Name, tc.id, tc.rule, tc.reason)
			}
			if tc.note != "" && run.Notes[tc.note] != 1 {
				t.Errorf("notes %v, want one %q", run.Notes, tc.note)
			}
		})
	}
}

func TestSeverity(t *testing.T) {
	high, medium, low := v1alpha1.LevelHigh, v1alpha1.LevelMedium, v1alpha1.LevelLow
	for name, tc := range map[string]struct {
		reason, rule, result string
		want                 v1alpha1.Level
	}{
		"9.0":                {"critical counts as high", `"properties":{"security-severity":"9.0"}`, ``, high},
		"7.0":                {"the bound is included", `"properties":{"security-severity":"7.0"}`, ``, high},
		"6.9":                {"below it is medium", `"properties":{"security-severity":"6.9"}`, ``, medium},
		"4.0":                {"the bound is included", `"properties":{"security-severity":"4.0"}`, ``, medium},
		"3.9":                {"below it is low", `"properties":{"security-severity":"3.9"}`, ``, low},
		"a number":           {"some tools do not quote it", `"properties":{"security-severity":9.9}`, ``, high},
		"a word":             {"some tools write a word", `"properties":{"security-severity":"HIGH"}`, `"level":"note"`, high},
		"CRITICAL":           {"critical counts as high", `"properties":{"security-severity":"CRITICAL"}`, ``, high},
		"undefined":          {"JavaScript's nothing", `"properties":{"security-severity":"undefined"}`, `"level":"error"`, high},
		"null":               {"the same", `"properties":{"security-severity":"null"}`, `"level":"note"`, low},
		"NaN":                {"the same", `"properties":{"security-severity":"NaN"}`, `"level":"note"`, low},
		"0":                  {"no score, so the level", `"properties":{"security-severity":"0.0"}`, `"level":"error"`, high},
		"of the result":      {"it knows better than its rule", `"properties":{"security-severity":"9"}`, `"properties":{"security-severity":"2"}`, low},
		"error":              {"the level", ``, `"level":"error"`, high},
		"warning":            {"the level", ``, `"level":"warning"`, medium},
		"note":               {"the level", ``, `"level":"note"`, low},
		"error, loud":        {"case has no meaning", ``, `"level":"Error "`, high},
		"fail, loud":         {"case has no meaning", ``, `"kind":"Fail"`, medium},
		"default, loud":      {"case has no meaning", `"defaultConfiguration":{"level":"ERROR"}`, ``, high},
		"rule's default":     {"half of all files give no level", `"defaultConfiguration":{"level":"error"}`, ``, high},
		"nothing":            {"SARIF's default is warning", ``, ``, medium},
		"level of no kind":   {"an unknown word says nothing", `"defaultConfiguration":{"level":"note"}`, `"level":"fatal"`, low},
		"open without level": {"SARIF: none where the kind is not fail", `"defaultConfiguration":{"level":"error"}`, `"kind":"open"`, low},
	} {
		t.Run(name, func(t *testing.T) {
			got := parseRuled(t, "lint", tc.rule, tc.result)
			if got.Severity != tc.want {
				t.Errorf("severity %s (level %s), want %s: %s", got.Severity, got.Level, tc.want, tc.reason)
			}
		})
	}
}

// An invocation may override the level of a rule, by its id or its index.
func TestConfigurationOverride(t *testing.T) {
	const tool = `"tool":{"driver":{"name":"lint","rules":[{"id":"R0","guid":"G-1"}]}},`
	for _, descriptor := range []string{`{"id":"R0"}`, `{"index":0}`, `{"guid":"g-1"}`} {
		got := parseResult(t, file(tool+`"results":[{"ruleId":"R0"}],"invocations":[{"executionSuccessful":true,
			"ruleConfigurationOverrides":[{"descriptor":`+descriptor+`,"configuration":{"level":"Note"}}]}]`))
		harness.Same(t, "the level of descriptor "+descriptor, "note", got.Level)
	}
}

func TestPaths(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, uri, run, root, want string
	}{
		"relative":            {"the plain case", `"uri":"src/a.go"`, "", "", "src/a.go"},
		"dots":                {"one path, one name", `"uri":"./src//x/../a.go"`, "", "", "src/a.go"},
		"out of the root":     {"no path leaves the source", `"uri":"../../etc/passwd"`, "", "", "etc/passwd"},
		"encoded":             {"a URI's %25 is a percent sign", `"uri":"src/%25doc%20a.txt"`, "", "", "src/%doc a.txt"},
		"wrongly encoded":     {"tools write plain paths, too", `"uri":"src/100%.txt"`, "", "", "src/100%.txt"},
		"not a URI":           {"the same", `"uri":"not a valid URI"`, "", "", "not a valid URI"},
		"backslashes":         {"Windows", `"uri":"src\\a.go"`, "", "", "src/a.go"},
		"drive":               {"Windows", `"uri":"C:\\agent\\src\\a.go"`, "", `C:\agent`, "src/a.go"},
		"file URI":            {"nothing says where the root is", `"uri":"file:///home/me/shop/src/a.go"`, "", "", "home/me/shop/src/a.go"},
		"file URI, said":      {"the user says it", `"uri":"file:///home/me/shop/src/a.go"`, "", "/home/me/shop/", "src/a.go"},
		"file URI, elsewhere": {"not below the root", `"uri":"file:///home/me/shopping/a.go"`, "", "/home/me/shop", "home/me/shopping/a.go"},
		"file URI with host":  {"a share", `"uri":"file://server/share/a.go"`, "", "/share", "a.go"},
		"file URI, no slash":  {"a tool's mistake", `"uri":"file:src/a.go"`, "", "", "src/a.go"},
		"file URI, one slash": {"no host", `"uri":"file:/home/me/shop/a.go"`, "", "/home/me/shop", "a.go"},
		"drive, said":         {"the user says it", `"uri":"file:///c:/shop/src/a.go"`, "", `C:\shop`, "src/a.go"},
		"drive, lower case":   {"no letter's case has a meaning", `"uri":"file:///c:/agent/_work/1/s/src/Foo.cpp"`, "", `C:\Agent\_work\1\s`, "src/Foo.cpp"},
		"case elsewhere":      {"it has a meaning", `"uri":"file:///home/me/shop/a.go"`, "", "/home/me/Shop", "home/me/shop/a.go"},
		"drive, elsewhere":    {"another drive", `"uri":"file:///d:/shop/src/a.go"`, "", `C:\shop`, "d:/shop/src/a.go"},
		"file URI, base":      {"the file says it", `"uri":"file:///home/me/shop/src/a.go"`, `"originalUriBaseIds":{"%SRCROOT%":{"uri":"file:///home/me/shop/"}}`, "", "src/a.go"},
		"file URI, workdir":   {"the invocation says it", `"uri":"file:///home/me/shop/src/a.go"`, `"invocations":[{"executionSuccessful":true,"workingDirectory":{"uri":"file:///home/me/shop"}}]`, "", "src/a.go"},
		"base":                {"the root of the machine that scanned is taken off", `"uri":"s3.tf","uriBaseId":"ROOTPATH"`, `"originalUriBaseIds":{"ROOTPATH":{"uri":"file:///home/me/shop/"}}`, "", "s3.tf"},
		"base below a root":   {"the base counts from the root", `"uri":"a.dll","uriBaseId":"BIN"`, `"originalUriBaseIds":{"SRCROOT":{"uri":"file:///shop/"},"BIN":{"uri":"file:///shop/bin/"}}`, "", "bin/a.dll"},
		"base of a base":      {"bases may be chained", `"uri":"a.go","uriBaseId":"SRC"`, `"originalUriBaseIds":{"SRCROOT":{"uri":"file:///shop/"},"SRC":{"uri":"src/","uriBaseId":"SRCROOT"}}`, "", "src/a.go"},
		"base of itself":      {"a chain may have no end", `"uri":"a.go","uriBaseId":"X"`, `"originalUriBaseIds":{"X":{"uri":"x/","uriBaseId":"X"}}`, "", "x/x/x/x/x/x/x/x/a.go"},
		"base not described":  {"most tools leave it at that", `"uri":"a.go","uriBaseId":"%SRCROOT%"`, "", "", "a.go"},
		"artifact":            {"the path may be elsewhere", `"index":0`, `"artifacts":[{"location":{"uri":"src/a.go"}}]`, "", "src/a.go"},
		"artifact missing":    {"or nowhere", `"index":5`, `"artifacts":[{"location":{"uri":"src/a.go"}}]`, "", ""},
		"the root itself":     {"no file", `"uri":"file:///"`, "", "", ""},
		"absolute":            {"an image's path", `"uri":"/lib/apk/db"`, "", "", "lib/apk/db"},
		"web":                 {"not a file, and no other page", `"uri":"https://example.com/a?b=%20"`, "", "", "https://example.com/a?b=%20"},
		"credentials":         {"a path is shown to everybody", `"uri":"git+https://oauth2:s3cr@t@example.com/a@b.git"`, "", "", "git+https://example.com/a@b.git"},
		"credentials, two":    {"of the module's source", `"uri":"git::ssh://t0k3n@example.com:a/b.git"`, "", "", "git::ssh://example.com:a/b.git"},
		"credentials, three":  {"Trivy cuts the scheme off", `"uri":"oauth2:t0k3n@example.com/a/b?ref=1/main.tf"`, "", "", "example.com/a/b?ref=1/main.tf"},
		"credentials, four":   {"or leaves one slash", `"uri":"git::https:/oauth2:t0k3n@example.com/a/b.git"`, "", "", "git::https:/example.com/a/b.git"},
		"credentials, five":   {"the scheme may be encoded", `"uri":"git%2Bhttps://u:t0k3n@example.com/a"`, "", "", "git+https:/example.com/a"},
		"credentials, six":    {"Terraform's form for GitHub has no password", `"uri":"git::https:/ghp_0123456789abcdef@github.com/a"`, "", "", "git::https:/github.com/a"},
		"credentials, seven":  {"Trivy cuts the scheme off", `"uri":"ghp_0123456789abcdef@github.com/a/b?ref=v1/main.tf"`, "", "", "github.com/a/b?ref=v1/main.tf"},
		"credentials, eight":  {"the user may be an address", `"uri":"user%40corp.com:T0KEN@bitbucket.org/a/main.tf"`, "", "", "bitbucket.org/a/main.tf"},
		"credentials, nine":   {"a password may contain a slash", `"uri":"u:p%2Fw@example.com/a/b.tf"`, "", "", "example.com/a/b.tf"},
		"credentials, ten":    {"a host may be an IP address", `"uri":"u:T0KEN@10.0.0.1:8443/a/main.tf"`, "", "", "10.0.0.1:8443/a/main.tf"},
		"credentials, eleven": {"tokens of GitLab have dots", `"uri":"glpat-0123456789abcdefghijklmnopq.01.0abcdefgh@gitlab.com:a/b"`, "", "", "gitlab.com:a/b"},
		"credentials, twelve": {"a domain may be of one's own", `"uri":"ghp_0123456789abcdef0123@git.my-corp/a/main.tf"`, "", "", "git.my-corp/a/main.tf"},
		"no secret":           {"it is the user of all repositories", `"uri":"ssh://git@example.com/a/b.git"`, "", "", "ssh://git@example.com/a/b.git"},
		"package":             {"a version is no host", `"uri":"npm:chalk@5.3.0/index.js"`, "", "", "npm:chalk@5.3.0/index.js"},
		"package, two":        {"a version is no host", `"uri":"controller-runtime-extras@v0.19.0/pkg/x.go"`, "", "", "controller-runtime-extras@v0.19.0/pkg/x.go"},
		"scoped package":      {"its scope is no host", `"uri":"jsr:@std/path"`, "", "", "jsr:@std/path"},
		"file in an image":    {"its digest is no host", `"uri":"alpine:3@sha256:ab/etc/passwd"`, "", "", "alpine:3@sha256:ab/etc/passwd"},
		"image":               {"its digest is no host", `"uri":"docker://alpine:3@sha256:ab"`, "", "", "docker://alpine:3@sha256:ab"},
	} {
		t.Run(name, func(t *testing.T) {
			run := `"results":[{"ruleId":"R0","locations":[{"physicalLocation":{"artifactLocation":{` + tc.uri + `},"region":{"startLine":3}}}]}]`
			if tc.run != "" {
				run += "," + tc.run
			}
			got := parseOne(t, file(run), Options{SourceRoot: tc.root}).Results[0].Location
			if got.Path != tc.want || got.Line != 3 {
				t.Errorf("%q line %d, want %q line 3: %s", got.Path, got.Line, tc.want, tc.reason)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	place := func(uri string, region string) string {
		return `{"physicalLocation":{"artifactLocation":{"uri":"` + uri + `"},"region":` + region + `}}`
	}
	got := parseResult(t, file(`"results":[{"ruleId":"R0",
		"locations":[{"logicalLocations":[{"name":"x"}]},`+place("a.go", `{"startLine":1.0,"startColumn":"7","snippet":{"text":"x()"}}`)+`,`+place("b.go", `{"charOffset":3}`)+`],
		"relatedLocations":[`+place("c.go", `{"startLine":0}`)+`,`+place("a.go", `{"startLine":1}`)+`],
		"codeFlows":[{"threadFlows":[{"locations":[{"location":`+place("d.go", `{"startLine":99999999999}`)+`},{"location":`+place("c.go", `{}`)+`},{"index":0}]}]}]}]`))
	want := Location{Path: "a.go", Line: 1, Column: 7, Snippet: "x()"}
	harness.Same(t, "location", want, got.Location)
	harness.Same(t, "related places, each once and without the first", []Location{{Path: "b.go"}, {Path: "c.go"}, {Path: "d.go"}}, got.Related)
}

func TestMessages(t *testing.T) {
	tool := `"tool":{"driver":{"name":"lint","rules":[{"id":"R","messageStrings":{"default":{"text":"{0} calls {1}, {{0}}"}}}]}},`
	for name, tc := range map[string]struct{ reason, message, want string }{
		"text":         {"the plain case", `{"text":"m"}`, "m"},
		"markdown":     {"better than nothing", `{"markdown":"**m**"}`, "**m**"},
		"arguments":    {"they belong into it", `{"text":"{0} and {1}","arguments":["a","{0}"]}`, "a and {0}"},
		"by id":        {"the rule has the text", `{"id":"default","arguments":["a","b"]}`, "a calls b, {0}"},
		"braces":       {"tools do not double them without arguments", `{"text":"use {{ x }} or {0}"}`, "use {{ x }} or {0}"},
		"id not there": {"nothing to say", `{"id":"other"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Same(t, tc.reason, tc.want, parseResult(t, file(tool+`"results":[{"ruleId":"R","message":`+tc.message+`}]`)).Message)
		})
	}
}

func TestCWEs(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, rule, result string
		want                 []string
	}{
		"CodeQL's tag":    {"leading zeros are dropped", `"properties":{"tags":["security","external/cwe/cwe-079"]}`, ``, []string{"CWE-79"}},
		"Semgrep's tag":   {"text follows", `"properties":{"tags":["CWE-89: SQL Injection","CWE-89"]}`, ``, []string{"CWE-89"}},
		"gosec's":         {"a taxon of CWE by its number", `"relationships":[{"target":{"id":"703","toolComponent":{"name":"CWE"}}}]`, ``, []string{"CWE-703"}},
		"another's taxon": {"a number of another list is none", `"relationships":[{"target":{"id":"703","toolComponent":{"name":"OWASP"}}}]`, ``, nil},
		"the result's":    {"it knows better than its rule", `"properties":{"tags":["CWE-1"]}`, `"taxa":[{"id":"CWE-2"}]`, []string{"CWE-2", "CWE-1"}},
		"a list":          {"each of it counts", `"properties":{"cwe":["CWE-1","CWE-2","CWE-3"]}`, ``, []string{"CWE-1", "CWE-2", "CWE-3"}},
		"a list in a tag": {"each of it counts", `"properties":{"tags":["CWE-1,CWE-2;cwe-3"]}`, ``, []string{"CWE-1", "CWE-2", "CWE-3"}},
		"none":            {"a word that looks like it is none", `"properties":{"tags":["security","cwe","acwe-7"]}`, ``, nil},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Same(t, tc.reason, tc.want, parseRuled(t, "lint", tc.rule, tc.result).CWEs)
		})
	}
}

func TestRunsSayWhatTheyAre(t *testing.T) {
	run := parseOne(t, file(`"results":[],"tool":{"driver":{"name":" lint ","version":"1","semanticVersion":"1.2.3"}},
		"invocations":[{"executionSuccessful":true,"startTimeUtc":"2026-02-01T10:00:00Z"},{"startTimeUtc":"2026-02-01T09:00:00.5Z"},{"startTimeUtc":"yesterday"}],
		"versionControlProvenance":[{"revisionId":"abc1234"}]`), Options{})
	if run.Tool != "lint" || run.ToolVersion != "1.2.3" || run.Commit != "abc1234" || run.Incomplete != "" {
		t.Errorf("tool %q %q, commit %q, incomplete %q", run.Tool, run.ToolVersion, run.Commit, run.Incomplete)
	}
	if want := time.Date(2026, 2, 1, 9, 0, 0, 5e8, time.UTC); !run.StartedAt.Equal(want) {
		t.Errorf("started %s, want the earliest, %s", run.StartedAt, want)
	}
}

func TestResultsThatAreNoFindingsSayWhatWasScanned(t *testing.T) {
	at := func(member, uri string) string {
		return `{"ruleId":"R0","` + member + `","locations":[{"physicalLocation":{"artifactLocation":{"uri":"` + uri + `"}}}]}`
	}
	run := parseOne(t, file(`"results":[`+at(`baselineState":"absent`, "api/a.go")+","+at(`kind":"pass`, "web/a.go")+","+
		at(`kind":"notApplicable`, "lib/a.go")+`,{"kind":"pass"}]`), Options{})
	harness.Same(t, "a rule that does not apply has not run", []string{"api", "web"}, run.Scanned)
}

// FuzzParse checks that Parse returns for any input, and that its counts add up.
func FuzzParse(f *testing.F) {
	f.Add([]byte(file(`"results":[{"ruleId":"R0","ruleIndex":0,"level":"error","message":{"text":"{0}","arguments":["a"]},
		"locations":[{"physicalLocation":{"artifactLocation":{"uri":"file:///a/%25b","uriBaseId":"X","index":0},"region":{"startLine":1,"snippet":{"text":"x"}}}}],
		"partialFingerprints":{"a":"b"},"suppressions":[],"fixes":[{"artifactChanges":[{"replacements":[{"insertedContent":{"text":"y"}}]}]}],
		"codeFlows":[{"threadFlows":[{"locations":[{"location":{}}]}]}],"taxa":[{"id":"CWE-7"}],"rule":{"index":0,"toolComponent":{"index":0}}}],
		"originalUriBaseIds":{"X":{"uri":"x/","uriBaseId":"X"}},"artifacts":[{"location":{"uri":"a"}}],"invocations":[{"executionSuccessful":false}]`)))
	f.Add([]byte("\xef\xbb\xbf" + file(`"results":null`)))
	f.Add([]byte("\xff\xfe{\x00"))
	f.Add([]byte(`{"version":"2.1.0","runs":[{}]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		log, err := Parse(bytes.NewReader(document), Options{Limits: Limits{Bytes: 1 << 20, Depth: 64, Results: 1000, Runs: 10}})
		if err != nil {
			if log != nil || err.Error() == "" {
				t.Fatalf("log %v beside error %q", log, err)
			}
			return
		}
		for _, run := range log.Runs {
			if run.Total != len(run.Results)+len(run.Skipped) {
				t.Fatalf("%d entries, %d results, %d skipped", run.Total, len(run.Results), len(run.Skipped))
			}
			for _, r := range run.Results {
				check(t, &r)
			}
		}
	})
}

func check(t *testing.T, r *Result) {
	switch r.Severity {
	case v1alpha1.LevelHigh, v1alpha1.LevelMedium, v1alpha1.LevelLow:
	default:
		t.Fatalf("severity %q", r.Severity)
	}
	if r.Rule == nil {
		t.Fatal("no rule")
	}
	for _, l := range append([]Location{r.Location}, r.Related...) {
		if l.Line < 0 || l.Column < 0 {
			t.Fatalf("place %+v", l)
		}
		if strings.HasPrefix(l.Path, "/") || strings.HasPrefix(l.Path, "../") {
			t.Fatalf("path %q is not below the root", l.Path)
		}
	}
	if r.RuleID == "" && strings.TrimSpace(r.Message) == "" {
		t.Fatal("neither rule nor message")
	}
	_ = fmt.Sprint(r)
}
