package importer

import "slices"

// toolNames lists the names under which one tool has reported, the current one last.
var toolNames = [][]string{
	{"semgrep", "Semgrep", "Semgrep PRO", "Semgrep OSS"},
	{"CodeQL command-line toolchain", "CodeQL"},
	{"Golang security checks by gosec", "gosec"},
	{"Security audit for python by bandit", "bandit", "Bandit"},
}

// namesOf returns all known names of a tool; for an unknown tool, only its name.
func namesOf(tool string) []string {
	for _, names := range toolNames {
		if slices.Contains(names, tool) {
			return names
		}
	}
	return []string{tool}
}

// sameTool returns the key of a tool, the same for all its names.
func sameTool(tool string) string {
	names := namesOf(tool)
	return names[len(names)-1]
}

// newestName returns the newer of two names of one tool.
func newestName(a, b string) string {
	names := namesOf(a)
	if slices.Index(names, b) > slices.Index(names, a) {
		return b
	}
	return a
}

// formerNames returns the other names of a tool, and the one that the user gave.
func formerNames(tool, given string) []string {
	var out []string
	for _, name := range append(slices.Clone(namesOf(tool)), given) {
		if name != "" && name != tool && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
