package etcdcost

import (
	"fmt"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// document returns a scanner's report of n problems, each of which becomes a finding of about 3 KB.
// Another wording describes the same problems in other words.
func document(t *testing.T, n int, wording string) string {
	t.Helper()
	results := make([]any, n)
	for i := range results {
		line := 10 + 7*i
		results[i] = map[string]any{
			"ruleId": "sql-injection", "level": "error",
			"message": map[string]any{"text": fmt.Sprintf(
				"Untrusted input flows from the request's parameter %d into a query (%s wording). %s", i, wording,
				strings.Repeat("Use a prepared statement with bound parameters. ", 12))},
			"locations": []any{map[string]any{"physicalLocation": map[string]any{
				"artifactLocation": map[string]any{"uri": fmt.Sprintf("internal/store/table%04d.go", i)},
				"region": map[string]any{
					"startLine": line, "endLine": line + 6, "startColumn": 2,
					"snippet": map[string]any{"text": strings.Repeat("rows, err := db.Query(\"SELECT id FROM orders WHERE customer = '\" + name + \"'\")\n", 7)},
				},
			}}},
			"partialFingerprints": map[string]any{"primaryLocationLineHash": fmt.Sprintf("%016x:1", i)},
		}
	}
	content := harness.JSON(t, map[string]any{
		"version": "2.1.0",
		"runs": []any{map[string]any{
			"tool": map[string]any{"driver": map[string]any{
				"name": "gosec", "version": "2.22.0",
				"rules": []any{map[string]any{
					"id": "sql-injection", "name": "SQL injection",
					"shortDescription": map[string]any{"text": "SQL injection"},
					"fullDescription":  map[string]any{"text": strings.Repeat("A query that is put together from input can be made to do anything. ", 6)},
					"help":             map[string]any{"text": strings.Repeat("Bind parameters, and give the account no more rights than it needs. ", 6)},
					"properties":       map[string]any{"tags": []any{"security", "external/cwe/cwe-89"}, "security-severity": "8.8"},
				}},
			}},
			"results": results,
		}},
	})
	return string(content)
}
