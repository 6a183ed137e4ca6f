package importer

import "slices"

// toolNames are the names under which one tool has reported, the one that it uses now last.
var toolNames = [][]string{
	{"semgrep", "Semgrep", "Semgrep PRO", "Semgrep OSS"},
	{"CodeQL command-line toolchain", "CodeQL"},
	{"Golang security checks by gosec", "gosec"},
	{"Security audit for python by bandit", "bandit", "Bandit"},
}

// namesOf returns all names that a tool is known to have, or had; of any other tool, its name alone.
func namesOf(tool string) []string {
	for _, names := range toolNames {
		if slices.Contains(names, tool) {
			return names
		}
	}
	return []string{tool}
}

// sameTool stands for a tool whatever it calls itself.
func sameTool(tool string) string {
	names := namesOf(tool)
	return names[len(names)-1]
}

// newestName returns which of two names of one tool it uses now.
func newestName(a, b string) string {
	names := namesOf(a)
	if slices.Index(names, b) > slices.Index(names, a) {
		return b
	}
	return a
}

// formerNames are the other names of a tool, and the one that somebody gave.
func formerNames(tool, given string) []string {
	var out []string
	for _, name := range append(slices.Clone(namesOf(tool)), given) {
		if name != "" && name != tool && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
