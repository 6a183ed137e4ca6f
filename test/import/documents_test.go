package import_test

import (
	"encoding/json"
	"fmt"
)

// result describes a SARIF result; its rule has only an id.
type result struct {
	rule, path, message, level string
	line                       int
	// code is the code at the location; suppressed is the justification of a suppression in the
	// source. Both may be empty.
	code, suppressed string
}

// document returns a SARIF file of tool "lint".
func document(results ...result) string { return documentOf("lint", results...) }

func documentOf(tool string, results ...result) string {
	type object = map[string]any
	list := []any{}
	for _, r := range results {
		region := object{"startLine": r.line, "startColumn": 1}
		if r.code != "" {
			region["snippet"] = object{"text": r.code}
		}
		entry := object{
			"ruleId": r.rule, "level": r.level, "message": object{"text": r.message},
			"locations": []any{object{"physicalLocation": object{
				"artifactLocation": object{"uri": r.path}, "region": region,
			}}},
		}
		if r.suppressed != "" {
			entry["suppressions"] = []any{object{"kind": "inSource", "justification": r.suppressed}}
		}
		list = append(list, entry)
	}
	return encode(object{"version": "2.1.0", "runs": []any{object{
		"tool":    object{"driver": object{"name": tool, "version": "1.0"}},
		"results": list,
	}}})
}

// numbered returns n results, each in a separate file.
func numbered(n int) []result {
	out := make([]result, n)
	for i := range out {
		out[i] = result{rule: "R1", path: fmt.Sprintf("src/file%03d.go", i), message: fmt.Sprintf("problem %03d", i), level: "error", line: 10 + i}
	}
	return out
}

func encode(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}
