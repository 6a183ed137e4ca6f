package sarif

import (
	"fmt"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Small files that expand to much more are refused with a reason, or cut and counted. Each of these would take hours or
// all memory if one bound were missing.
func TestFilesThatExpandAreRefusedOrCut(t *testing.T) {
	many := func(entry string, n int) string { return strings.TrimSuffix(strings.Repeat(entry+",", n), ",") }
	long := func(n int) string { return strings.Repeat("a", n) }
	driver := func(rules string) string { return `"tool":{"driver":{"name":"t","rules":[` + rules + `]}},` }
	results := func(result string, n int) string { return `"results":[` + many(result, n) + `]` }
	messages := many(`"`+long(60_000)+`"`, 50)
	fills := strings.Repeat("{0}{1}{49}", 5_000)
	for name, tc := range map[string]struct{ document, want string }{
		"a large result":         {driver("") + `"results":[{"ruleId":"R","message":{"text":"` + long(5<<20) + `"}},{"ruleId":"R","message":{"text":"m"}}]`, ""},
		"places of a result":     {driver("") + `"results":[{"ruleId":"R","locations":[` + many("{}", 1_000_000) + `]}]`, ""},
		"rules without end":      {driver(many("{}", maxRules+1)), "rules"},
		"extensions without end": {`"tool":{"extensions":[` + many("{}", maxParts+1) + `]}`, "extensions"},
		"places of all results":  {driver("") + results(`{"ruleId":"R","locations":[`+many("{}", maxPlaces)+`],"relatedLocations":[`+many("{}", maxPlaces)+`]}`, 4_000), "lists expand"},
		"overrides of a run":     {driver("") + `"invocations":[` + many(`{"ruleConfigurationOverrides":[`+many("1", 90_000)+`]}`, 10) + `]`, "lists expand"},
		"empty artifacts":        {driver("") + `"artifacts":[` + many("{}", maxArtifacts) + `]`, "lists expand"},
		"relationships of rules": {driver(many(`{"id":"R","relationships":[`+many("{}", maxValues)+`]}`, 4_000)), "lists expand"},
		"suppressions":           {driver("") + results(`{"ruleId":"R","suppressions":[`+many("1", 100_000)+`]}`, 10), "lists expand"},
		"invocations":            {driver("") + `"invocations":[` + many("{}", maxParts+1) + `]`, "invocations"},
		"a large rule":           {driver(`{"id":"R","help":{"text":"` + long(5<<20) + `"}}`), "more than 4 MiB"},
		"messages that unfold":   {driver("") + results(`{"ruleId":"R","message":{"text":"`+fills+`","arguments":[`+messages+`]}}`, 3), ""},
		"a hierarchy of a rule":  {driver(`{"id":"x"}`) + results(`{"ruleId":"`+strings.Repeat("/", 60_000)+`"}`, 200), ""},
		"weaknesses of a rule":   {driver(`{"id":"R","properties":{"tags":[`+tags(100_000)+`]}}`) + results(`{"ruleId":"R"}`, 500), ""},
		"ids of a rule":          {driver(`{"id":"`+long(60_000)+`","name":"CVE-2020-1234","properties":{"tags":[`+many(`"`+long(60_000)+`"`, 60)+`]}}`) + results(`{"ruleIndex":0,"locations":[{"logicalLocations":[`+many(`{"name":"a@1"}`, 16)+`]}]}`, 5_000), ""},
		"long tags of a rule":    {driver(`{"id":"R","properties":{"tags":[`+many(`"`+strings.Repeat("informational", 200)+`"`, maxValues)+`]}}`) + results(`{"ruleId":"R"}`, 100_000), ""},
		"weaknesses in a text":   {driver(`{"id":"R","properties":{"cwe":[`+many(`"a"`, 500_000)+`]}}`) + results(`{"ruleId":"R"}`, 2), ""},
		"a long base":            {driver("") + `"originalUriBaseIds":{"B":{"uri":"` + long(3<<20) + `/"}},` + results(`{"ruleId":"R","locations":[{"physicalLocation":{"artifactLocation":{"uri":"x","uriBaseId":"B"}}}]}`, 5_000), ""},
		"a long artifact":        {driver("") + `"artifacts":[{"location":{"uri":"` + long(3<<20) + `"}}],` + results(`{"ruleId":"R","locations":[{"physicalLocation":{"artifactLocation":{"index":0}}}]}`, 5_000), ""},
		"bases in a circle":      {driver("") + `"originalUriBaseIds":{"A":{"uri":"a/","uriBaseId":"B"},"B":{"uri":"b/","uriBaseId":"A"}},` + results(`{"ruleId":"R","locations":[{"physicalLocation":{"artifactLocation":{"uri":"x","uriBaseId":"A"}}}]}`, 100), ""},
		"bases that are their own": {driver("") + `"originalUriBaseIds":{"A":{"uri":"a/","uriBaseId":"A"}},` +
			`"artifacts":[{"location":{"index":0}}],` + results(`{"ruleId":"R","locations":[{"physicalLocation":{"artifactLocation":{"uri":"x","uriBaseId":"A"}}},{"physicalLocation":{"artifactLocation":{"index":0}}}]}`, 100), ""},
	} {
		t.Run(name, func(t *testing.T) {
			log, err := Parse(strings.NewReader(file(tc.document)), Options{})
			harness.ErrorContains(t, "reading it", err, tc.want)
			if err != nil || tc.want != "" {
				return
			}
			run := log.Runs[0]
			harness.Same(t, "results and skipped ones", len(run.Results)+len(run.Skipped), run.Total)
			for _, r := range run.Results {
				if len(r.Message) > maxText || len(r.Location.Path) > maxURI || len(r.CWEs) > maxPlaces {
					t.Fatalf("a message of %d bytes, a path of %d, %d weaknesses", len(r.Message), len(r.Location.Path), len(r.CWEs))
				}
			}
		})
	}
}

func tags(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, `"cwe-%d",`, i+1)
	}
	return strings.TrimSuffix(out.String(), ",")
}

func TestWhatUnfoldsTooFarIsRefused(t *testing.T) {
	limits := DefaultLimits
	limits.Bytes = 4 << 20
	many := func(entry string, n int) string { return strings.TrimSuffix(strings.Repeat(entry+",", n), ",") }
	// Eight bases that name one another, and many locations on the first: little is left of each path.
	var bases strings.Builder
	for i := range 8 {
		fmt.Fprintf(&bases, `,"%d":{"uri":"%s","uriBaseId":"%d"}`, i, strings.Repeat("a/../", 500)+strings.Repeat("a/", 1000), i+1)
	}
	onBases := `"originalUriBaseIds":{` + bases.String()[1:] + `},`
	results := func(location string) string {
		var out strings.Builder
		for i := range 2_000 {
			out.WriteString(`{"ruleId":"R","locations":[{"physicalLocation":{"artifactLocation":{` + fmt.Sprintf(location, i) + `}}}]},`)
		}
		return `"results":[` + strings.TrimSuffix(out.String(), ",") + `]`
	}
	byID := func(text, message string, n int) string {
		return `"tool":{"driver":{"name":"t","rules":[{"id":"R","messageStrings":{"m":{"text":"` + text + `"}}}]}},` +
			`"results":[` + many(`{"ruleId":"R","message":{"id":"m"`+message+`}}`, n) + `]`
	}
	for name, document := range map[string]string{
		"messages by id":             byID(strings.Repeat("a", 60_000), "", 100),
		"emptied messages by id":     byID(strings.Repeat("{0}", 20_000), `,"arguments":[""]`, 100),
		"messages":                   `"results":[` + many(`{"ruleId":"R","message":{"text":"{0}{0}{0}{0}{0}{0}{0}{0}","arguments":["`+strings.Repeat("a", 4000)+`"]}}`, 500) + `]`,
		"the paths of results":       onBases + results(`"uri":"a/../%d","uriBaseId":"0"`),
		"the paths of scanned files": onBases + `"results":[],"artifacts":[` + many(`{"location":{"uri":"a","uriBaseId":"0"},"roles":["analysisTarget"]}`, 2_000) + `]`,
		"paths of which nothing is left": `"artifacts":[{"location":{"uri":"` + strings.Repeat("a/../", 800) + `"}}],` +
			results(`"index":0,"uriBaseId":"%d"`),
	} {
		_, err := Parse(strings.NewReader(file(document)), Options{Limits: limits})
		harness.ErrorContains(t, name, err, "unfold")
	}
	_, err := Parse(strings.NewReader(file(byID(strings.Repeat("a", spareMessage), "", 10_000))), Options{Limits: limits})
	harness.NoError(t, "messages by id as long as those of most tools", err)
}

func TestAPathIsComparedWithAFewRoots(t *testing.T) {
	run := &wireRun{}
	for i := range maxParts {
		folder := wireArtifactLocation{URI: text(fmt.Sprintf("/build/%d", i/2))}
		run.invocations = append(run.invocations, wireInvocation{WorkingDirectory: folder})
	}
	roots := newPathBook(run, "/src", &budget{}).roots
	harness.Same(t, "roots, the user's, the second and the last", []any{maxRoots, "/src/", "/build/0/", "/build/30/"},
		[]any{len(roots), roots[0], roots[1], roots[len(roots)-1]})
}

func TestALargeResultIsCounted(t *testing.T) {
	log, err := Parse(strings.NewReader(file(`"results":[{"ruleId":"R","message":{"text":"`+strings.Repeat("a", 5<<20)+`"}}]`)), Options{})
	if err != nil || len(log.Runs[0].Skipped) != 1 || log.Runs[0].Skipped[0].Reason != SkipTooLarge {
		t.Fatalf("got %v, want it skipped for its size", err)
	}
	harness.Contains(t, "incomplete for its size: it may be a known result", log.Runs[0].Incomplete, string(SkipTooLarge))
}
