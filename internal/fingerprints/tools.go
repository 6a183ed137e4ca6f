package fingerprints

import "slices"

// toolNames lists the names under which one tool has reported, the current one last.
var toolNames = [][]string{
	{"semgrep", "Semgrep", "Semgrep PRO", "Semgrep OSS"},
	{"CodeQL command-line toolchain", "CodeQL"},
	{"Golang security checks by gosec", "gosec"},
	{"Security audit for python by bandit", "bandit", "Bandit"},
}

// NamesOfTool returns all known names of a tool; for an unknown tool, only its name.
func NamesOfTool(tool string) []string {
	for _, names := range toolNames {
		if slices.Contains(names, tool) {
			return names
		}
	}
	return []string{tool}
}

// CurrentName returns the current name of a tool, the same for all its known names; for an unknown tool, its name.
func CurrentName(tool string) string {
	names := NamesOfTool(tool)
	return names[len(names)-1]
}
