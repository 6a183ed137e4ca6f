package openapi_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// quoted matches what a page shows as code.
var quoted = regexp.MustCompile("`([^`]+)`")

// The first column has the scopes in the order of the contract, or "any"; the second the operations as code.
func TestThePageListsEveryOperationAtItsScope(t *testing.T) {
	_, table, _ := strings.Cut(harness.RepositoryFile(t, "docs", "rest.md"), "| Scope | Operations |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	listed := map[string]string{}
	for row := range strings.Lines(table) {
		scopes, operations, _ := strings.Cut(strings.Trim(row, "| \n"), " | ")
		for _, operation := range codeOf(operations) {
			if _, twice := listed[operation]; twice {
				t.Errorf("docs/rest.md: the table of scopes lists %s twice", operation)
			}
			listed[operation] = strings.Join(codeOf(scopes), " ")
		}
	}
	_, all := operations(t)
	for _, operation := range all {
		name, needed := operation.Method+" "+operation.Path, ""
		for _, scope := range operation.Scopes {
			needed = strings.TrimSpace(needed + " " + string(scope))
		}
		if scopes, found := listed[name]; !found {
			t.Errorf("docs/rest.md: add `%s` to the table of scopes", name)
		} else if scopes != needed {
			t.Errorf("docs/rest.md: the table of scopes lists `%s` at %q, and the contract requires %q", name, scopes, needed)
		}
		delete(listed, name)
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		t.Errorf("docs/rest.md: the table of scopes lists `%s`, which the contract does not have", name)
	}
}

// codeOf returns what a cell shows as code.
func codeOf(cell string) (code []string) {
	for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
		code = append(code, match[1])
	}
	return code
}
