package builder

import (
	"cmp"
	"encoding/json"
)

// Result is a result of a SARIF file; its rule has only an id.
type Result struct {
	// Level is "error" if it is empty.
	Rule, Level, Message, Path string
	Line                       int
	// Snippet is the code at the location, and Suppressed the justification of a suppression in the source. Both may be
	// empty.
	Snippet, Suppressed string
}

// SARIF returns a SARIF file with one run of the tool.
func SARIF(tool string, results ...Result) string { return SARIFRuns([]string{tool}, results...) }

// Problems returns a SARIF file of the tool "lint" that reports the problems, each in a file of its own.
func Problems(problems ...string) string {
	results := make([]Result, len(problems))
	for i, problem := range problems {
		results[i] = Result{Rule: "R1", Message: problem, Path: "src/" + problem + ".go", Line: 7}
	}
	return SARIF("lint", results...)
}

// SARIFRuns returns a SARIF file with one run per tool, each with all results.
func SARIFRuns(tools []string, results ...Result) string {
	type object = map[string]any
	list := make([]object, len(results))
	for i, r := range results {
		region := object{"startLine": r.Line}
		if r.Snippet != "" {
			region["snippet"] = object{"text": r.Snippet}
		}
		list[i] = object{
			"ruleId": r.Rule, "level": cmp.Or(r.Level, "error"), "message": object{"text": r.Message},
			"locations": []any{object{"physicalLocation": object{"artifactLocation": object{"uri": r.Path}, "region": region}}},
		}
		if r.Suppressed != "" {
			list[i]["suppressions"] = []any{object{"kind": "inSource", "justification": r.Suppressed}}
		}
	}
	runs := make([]object, len(tools))
	for i, tool := range tools {
		runs[i] = object{"tool": object{"driver": object{"name": tool, "version": "1.0"}}, "results": list}
	}
	content, err := json.Marshal(object{"version": "2.1.0", "runs": runs})
	if err != nil {
		panic(err) // maps of text and numbers
	}
	return string(content)
}
