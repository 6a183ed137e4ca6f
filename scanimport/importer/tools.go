package importer

import (
	"slices"

	"github.com/appsec-dev/findings-operator/internal/fingerprints"
)

// newestName returns the newer of two names of one tool.
func newestName(a, b string) string {
	names := fingerprints.NamesOfTool(a)
	if slices.Index(names, b) > slices.Index(names, a) {
		return b
	}
	return a
}

// formerNames returns the other names of a tool, and the one that the user gave.
func formerNames(tool, given string) []string {
	var out []string
	for _, name := range append(slices.Clone(fingerprints.NamesOfTool(tool)), given) {
		if name != "" && name != tool && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
