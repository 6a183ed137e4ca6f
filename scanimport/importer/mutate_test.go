package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// object is a part of a SARIF file.
type object = map[string]any

// origin is the property that identifies the original of a mutated result; a newcomer has none.
const origin = "findingsTestOrigin"

// readDocument decodes a SARIF file and marks each result with its origin.
func readDocument(t *testing.T, path string) object {
	t.Helper()
	return decodeDocument(t, []byte(harness.File(t, path)))
}

func decodeDocument(t *testing.T, content []byte) object {
	t.Helper()
	doc := harness.Decoded[object](t, []byte(strings.TrimPrefix(string(content), "\ufeff")))
	for i, run := range runsOf(doc) {
		same := map[string]string{} // some tools report a result twice
		for j, r := range resultsOf(run) {
			text := fmt.Sprint(r)
			if same[text] == "" {
				same[text] = fmt.Sprintf("%d/%d", i, j)
			}
			r[origin] = same[text]
		}
	}
	return doc
}

func clone(doc object) object { return copied(doc).(object) }

func copied(value any) any {
	switch value := value.(type) {
	case object:
		doc := make(object, len(value))
		for name, member := range value {
			doc[name] = copied(member)
		}
		return doc
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = copied(element)
		}
		return list
	}
	return value
}

func objects(v any) []object {
	list, _ := v.([]any)
	var out []object
	for _, e := range list {
		if o, ok := e.(object); ok {
			out = append(out, o)
		}
	}
	return out
}

func child(o object, names ...string) object {
	for _, name := range names {
		o, _ = o[name].(object)
	}
	return o
}

func runsOf(doc object) []object    { return objects(doc["runs"]) }
func resultsOf(run object) []object { return objects(run["results"]) }

// toolOf returns the name of the tool of a document's first run.
func toolOf(doc object) string {
	name, _ := child(runsOf(doc)[0], "tool", "driver")["name"].(string)
	return name
}

func setResults(run object, results []object) {
	list := make([]any, len(results))
	for i, r := range results {
		list[i] = r
	}
	run["results"] = list
}

func eachResult(doc object, do func(r object)) {
	for _, run := range runsOf(doc) {
		for _, r := range resultsOf(run) {
			do(r)
		}
	}
}

func rulesOf(run object) []object {
	rules := objects(child(run, "tool", "driver")["rules"])
	for _, e := range objects(child(run, "tool")["extensions"]) {
		rules = append(rules, objects(e["rules"])...)
	}
	return rules
}

// eachText changes the texts of results: their message, and the rules' messages.
func eachText(doc object, change func(string) string) {
	apply := func(m object) {
		for _, name := range []string{"text", "markdown"} {
			if text, ok := m[name].(string); ok {
				m[name] = change(text)
			}
		}
	}
	eachResult(doc, func(r object) { apply(child(r, "message")) })
	for _, run := range runsOf(doc) {
		for _, rule := range rulesOf(run) {
			for _, m := range child(rule, "messageStrings") {
				if m, ok := m.(object); ok {
					apply(m)
				}
			}
		}
	}
}

func eachPlace(doc object, do func(place object)) {
	eachResult(doc, func(r object) {
		for _, name := range []string{"locations", "relatedLocations"} {
			for _, l := range objects(r[name]) {
				if place := child(l, "physicalLocation"); place != nil {
					do(place)
				}
			}
		}
	})
}

// movePaths renames files, also in the list of artifacts and in the messages.
func movePaths(doc object, rename func(uri string) string) bool {
	names := map[string]string{}
	to := func(location object) {
		if uri, ok := location["uri"].(string); ok && uri != "" {
			names[uri] = rename(uri)
			location["uri"] = names[uri]
		}
	}
	eachPlace(doc, func(place object) { to(child(place, "artifactLocation")) })
	for _, run := range runsOf(doc) {
		for _, a := range objects(run["artifacts"]) {
			to(child(a, "location"))
		}
	}
	eachResult(doc, func(r object) {
		text, _ := child(r, "message")["text"].(string)
		for from, to := range names {
			if strings.Contains(text, from) {
				child(r, "message")["text"] = strings.ReplaceAll(text, from, to)
				break
			}
		}
	})
	return len(names) > 0
}

func moveLines(doc object, by func(line float64) float64) bool {
	moved := false
	eachPlace(doc, func(place object) {
		for _, name := range []string{"region", "contextRegion"} {
			region := child(place, name)
			start, ok := region["startLine"].(float64)
			if !ok || start < 1 {
				continue
			}
			moved = true
			region["startLine"] = start + by(start)
			if end, ok := region["endLine"].(float64); ok {
				region["endLine"] = end + by(start)
			}
		}
	})
	return moved
}

// replaceIn replaces a pattern in texts and logical locations; it reports whether it matched.
func replaceIn(doc object, pattern *regexp.Regexp, to string) bool {
	found := false
	change := func(s string) string {
		if pattern.MatchString(s) {
			found = true
		}
		return pattern.ReplaceAllString(s, to)
	}
	eachText(doc, change)
	eachResult(doc, func(r object) { changeLogical(r, change) })
	return found
}

func changeLogical(r object, change func(string) string) {
	for _, l := range objects(r["locations"]) {
		for _, logical := range objects(l["logicalLocations"]) {
			for _, name := range []string{"name", "fullyQualifiedName"} {
				if text, ok := logical[name].(string); ok {
					logical[name] = change(text)
				}
			}
		}
	}
	for _, l := range objects(r["locations"]) {
		if m := child(l, "message"); m != nil {
			if text, ok := m["text"].(string); ok {
				m["text"] = change(text)
			}
		}
	}
}

// eachFingerprint changes the fingerprints that a scanner computes from mutated data.
func eachFingerprint(r object, change func(string) string) {
	for _, name := range []string{"fingerprints", "partialFingerprints"} {
		for n, v := range child(r, name) {
			if s, ok := v.(string); ok && s != "" && !strings.Contains(n, "StartColumn") && s != "requires login" {
				child(r, name)[n] = change(s)
			}
		}
	}
}

func eachSnippet(r object, change func(string) string) bool {
	found := false
	for _, l := range objects(r["locations"]) {
		for _, name := range []string{"region", "contextRegion"} {
			snippet := child(l, "physicalLocation", name, "snippet")
			if text, ok := snippet["text"].(string); ok && !strings.EqualFold(text, "REDACTED") {
				snippet["text"] = change(text)
				found = true
			}
		}
	}
	return found
}

var (
	installed = regexp.MustCompile(`(Installed Version: |, version |[\w)]@)(v?\d[\w.+~:-]*\w)`)
	fixed     = regexp.MustCompile(`(Fixed Version: |[Ff]ixed in |Upgrade to [^@ ]+@)(\d[\w.+~:-]*)`)
	packaged  = regexp.MustCompile(`(Package: |vulnerable |package: |Package ')([\w./-]*\w)`)
	logicalAt = regexp.MustCompile(`^(.*: )?([^@: ]+)@`)
)

// mutation is a change between two scans.
type mutation struct {
	name string
	// apply changes the document; it returns false if there is nothing to change.
	apply func(doc object) bool
	// back reports that the original document is imported once more.
	back bool
}

var mutations = []mutation{
	{name: "shuffled", apply: func(doc object) bool {
		for _, run := range runsOf(doc) {
			results := resultsOf(run)
			slices.Reverse(results)
			setResults(run, results)
		}
		return true
	}},
	{name: "duplicated", apply: func(doc object) bool {
		for _, run := range runsOf(doc) {
			results := resultsOf(run)
			setResults(run, append(slices.Clone(results), objects(clone(object{"r": run["results"]})["r"])...))
		}
		return true
	}},
	{name: "run split", apply: splitRuns},
	{name: "runs merged", apply: mergeRuns},
	{name: "runs of two analyses", apply: func(doc object) bool {
		split := splitRuns(doc)
		for i, run := range runsOf(doc) {
			if run["automationDetails"] != nil {
				return false // the run already has an analysis
			}
			run["automationDetails"] = object{"id": []string{"first/", "second/"}[i%2]}
		}
		return split
	}},
	{name: "known other name", apply: func(doc object) bool { return renameTool(doc, knownOtherName) }},
	{name: "new name", apply: func(doc object) bool {
		return renameTool(doc, func(name string) string { return name + " Community" })
	}},
	{name: "reworded", apply: func(doc object) bool {
		eachText(doc, func(s string) string { return s + "\nAttention: read on.\nRead the handbook." })
		return true
	}},
	{name: "re-rated", apply: rerate},
	{name: "lines moved", apply: func(doc object) bool { return moveLines(doc, func(float64) float64 { return 7 }) }},
	{name: "lines inserted", apply: func(doc object) bool {
		return moveLines(doc, func(line float64) float64 {
			if line > 20 {
				return 3
			}
			return 0
		})
	}},
	{name: "reindented", apply: func(doc object) bool {
		found := false
		eachResult(doc, func(r object) {
			found = eachSnippet(r, func(s string) string { return "\t  " + strings.ReplaceAll(s, "\n", "\n\t  ") }) || found
		})
		return found
	}},
	{name: "file renamed", apply: func(doc object) bool {
		return movePaths(doc, func(uri string) string {
			at := strings.LastIndexByte(uri, '/') + 1
			if at == len(uri) {
				return uri // a folder
			}
			return uri[:at] + "renamed-" + uri[at:]
		})
	}},
	{name: "file moved", apply: func(doc object) bool {
		return movePaths(doc, func(uri string) string {
			at := strings.LastIndexByte(uri, '/') + 1
			if at == len(uri) {
				return uri // a folder
			}
			return uri[:at] + "deeper/" + uri[at:]
		})
	}},
	{name: "another root", apply: func(doc object) bool {
		return movePaths(doc, func(uri string) string {
			if strings.HasSuffix(uri, "/") {
				return uri // a folder
			}
			if rest, ok := strings.CutPrefix(uri, "file:///"); ok {
				return "file:///build/7/" + rest
			}
			return "build/7/" + uri
		})
	}},
	{name: "version raised", apply: func(doc object) bool {
		if !replaceIn(doc, installed, "${1}${2}9") {
			return false
		}
		raisePURLs(doc)
		// A package's fingerprint depends on its version too.
		eachResult(doc, func(r object) { eachFingerprint(r, func(s string) string { return "9" + s }) })
		return true
	}},
	{name: "fixed version raised", apply: replaceFixed},
	{name: "suppressed", apply: suppress},
	{name: "suppressed and back", apply: suppress, back: true},
	{name: "another in its file", apply: func(doc object) bool { return newcomers(doc, func(uri string) string { return uri }) }},
	{name: "another elsewhere", apply: func(doc object) bool { return newcomers(doc, func(uri string) string { return uri + ".other" }) }},
	{name: "moved, and one gone", apply: moveAndDropLast},
	{name: "moved without code", apply: moveWithoutCode},
}

// moveWithoutCode drops the code and what scanners compute from it, and moves all lines too far for the nearest line.
func moveWithoutCode(doc object) bool {
	found := false
	eachResult(doc, func(r object) {
		for _, name := range []string{"fingerprints", "partialFingerprints"} {
			found = found || r[name] != nil
			delete(r, name)
		}
	})
	eachPlace(doc, func(place object) {
		for _, name := range []string{"region", "contextRegion"} {
			found = found || child(place, name, "snippet") != nil
			delete(child(place, name), "snippet")
		}
	})
	return found && moveLines(doc, func(float64) float64 { return 40 })
}

// moveAndDropLast moves all lines, and drops the last result of each file.
func moveAndDropLast(doc object) bool {
	left := map[string]int{}
	eachResult(doc, func(r object) { left[fileOf(r)]++ })
	for _, run := range runsOf(doc) {
		setResults(run, slices.DeleteFunc(resultsOf(run), func(r object) bool {
			left[fileOf(r)]--
			return left[fileOf(r)] == 0
		}))
	}
	return moveLines(doc, func(float64) float64 { return 7 })
}

// fileOf returns the URI of a result's first location.
func fileOf(r object) string {
	for _, l := range objects(r["locations"]) {
		uri, _ := child(l, "physicalLocation", "artifactLocation")["uri"].(string)
		return uri
	}
	return ""
}

// suppress suppresses every second result, as its source would.
func suppress(doc object) bool {
	n := 0
	eachResult(doc, func(r object) {
		if n++; n%2 == 0 {
			r["suppressions"] = []any{object{"kind": "inSource", "justification": "a test"}}
		}
	})
	return n > 1
}

// renameTool renames the tool of a file with a single tool.
func renameTool(doc object, rename func(string) string) bool {
	names := map[string]bool{}
	for _, run := range runsOf(doc) {
		name, _ := child(run, "tool", "driver")["name"].(string)
		names[name] = true
		child(run, "tool", "driver")["name"] = rename(name)
		if len(names) > 1 || rename(name) == name {
			return false
		}
	}
	return true
}

func knownOtherName(name string) string {
	names := fingerprints.NamesOfTool(name)
	return names[(slices.Index(names, name)+1)%len(names)]
}

var purlVersion = regexp.MustCompile(`@(\d[^?@]*)`)

// raisePURLs raises the versions in the package URLs that some tools store in their rules.
func raisePURLs(doc object) {
	for _, run := range runsOf(doc) {
		for _, rule := range rulesOf(run) {
			purls, _ := child(rule, "properties")["purls"].([]any)
			for i := range purls {
				if s, ok := purls[i].(string); ok {
					purls[i] = purlVersion.ReplaceAllString(s, "@${1}9")
				}
			}
		}
	}
}

func replaceFixed(doc object) bool {
	found := replaceIn(doc, fixed, "${1}${2}9")
	eachResult(doc, func(r object) {
		for _, f := range objects(r["fixes"]) {
			if text, ok := child(f, "description")["text"].(string); ok && fixed.MatchString(text) {
				child(f, "description")["text"] = fixed.ReplaceAllString(text, "${1}${2}9")
				found = true
			}
		}
	})
	return found
}

func splitRuns(doc object) bool {
	var runs []any
	split := false
	for _, run := range runsOf(doc) {
		results := resultsOf(run)
		second := clone(run)
		half := len(results) / 2
		split = split || half > 0
		setResults(second, objects(second["results"])[half:])
		setResults(run, results[:half])
		runs = append(runs, run, second)
	}
	doc["runs"] = runs
	return split
}

// mergeRuns merges the runs of one tool, with the rules of the first run: later results find their rules by id.
func mergeRuns(doc object) bool {
	byTool := map[any]object{}
	var runs []any
	merged := false
	for _, run := range runsOf(doc) {
		driver := child(run, "tool", "driver")
		first, there := byTool[driver["name"]]
		if !there {
			byTool[driver["name"]] = run
			runs = append(runs, run)
			continue
		}
		merged = true
		rules, _ := child(first, "tool", "driver")["rules"].([]any)
		more, _ := driver["rules"].([]any)
		child(first, "tool", "driver")["rules"] = append(rules, more...)
		results := resultsOf(run)
		for _, r := range results {
			delete(r, "ruleIndex")
		}
		setResults(first, append(resultsOf(first), results...))
	}
	doc["runs"] = runs
	return merged
}

// rerate changes the inputs of the severity, and the words for it in messages.
func rerate(doc object) bool {
	other := map[string]string{"error": "warning", "warning": "error", "note": "error"}
	change := func(o object, name string) {
		if level, ok := o[name].(string); ok && other[level] != "" {
			o[name] = other[level]
		}
	}
	score := func(properties object) {
		if _, ok := properties["security-severity"]; ok {
			properties["security-severity"] = "9.9"
		}
	}
	eachResult(doc, func(r object) { change(r, "level"); score(child(r, "properties")) })
	for _, run := range runsOf(doc) {
		for _, rule := range rulesOf(run) {
			change(child(rule, "defaultConfiguration"), "level")
			score(child(rule, "properties"))
		}
	}
	words := strings.NewReplacer("Severity: MEDIUM", "Severity: CRITICAL", "Severity: LOW", "Severity: CRITICAL",
		"a high severity", "a critical severity", "a medium severity", "a high severity", "a low severity", "a medium severity",
		"A high vuln", "A critical vuln", "A medium vuln", "A high vuln", "A low vuln", "A medium vuln")
	eachText(doc, words.Replace)
	return true
}

// newcomers replaces every third result by another problem of the same kind: other code or another package, on a
// distant line.
func newcomers(doc object, rename func(string) string) bool {
	n := 0
	for _, run := range runsOf(doc) {
		for i, r := range resultsOf(run) {
			if i%3 != 0 || len(objects(r["locations"])) == 0 {
				continue
			}
			n++
			before := fmt.Sprint(r)
			one := object{"runs": []any{object{"results": []any{r}}}}
			if !inFolder(r) {
				moveLines(one, func(float64) float64 { return float64(1000 + 37*n) })
			}
			movePaths(one, rename)
			change := func(s string) string { return fmt.Sprintf("other%d(%s)", n, s[:min(len(s), 3)]) }
			eachSnippet(r, change)
			eachFingerprint(r, change)
			if text, ok := child(r, "message")["text"].(string); ok {
				child(r, "message")["text"] = osvAt.ReplaceAllString(packaged.ReplaceAllString(address.ReplaceAllString(text, fmt.Sprintf("${1}/other%d", n)), fmt.Sprintf("${1}other%d-${2}", n)), fmt.Sprintf("'other%d-${1}@", n))
			}
			if fmt.Sprint(r) != before { // otherwise it equals the one that disappears
				delete(r, origin)
			}
			changeLogical(r, func(s string) string { return logicalAt.ReplaceAllString(s, fmt.Sprintf("${1}other%d-${2}@", n)) })
		}
	}
	return n > 0
}

// inFolder reports whether a result is in a folder and not a file: then its line means nothing.
func inFolder(r object) bool {
	for _, l := range objects(r["locations"]) {
		if uri, _ := child(l, "physicalLocation", "artifactLocation")["uri"].(string); strings.HasSuffix(uri, "/") {
			return true
		}
	}
	return false
}

var address = regexp.MustCompile(`(Uri: \S+)`)

var osvAt = regexp.MustCompile(`'(?:other\d+-)?([^'@ ]+)@`)
