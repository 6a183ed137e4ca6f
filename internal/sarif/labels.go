package sarif

import "strings"

// Scanners of packages write what they know line by line: "Package: lodash", "* Package Manager:
// npm", "Severity        : HIGH".
const (
	// longestLabel and longestValue bound what counts as a label and its value, in bytes.
	longestLabel = 24
	longestValue = 512
	// mostLines bounds how many lines of a text are looked at: what the labels say comes first.
	mostLines = 64
)

// labelsOf returns the values by label in lower case, the first of each. Lines that are no label with
// a value are left out.
func labelsOf(text string) map[string]string {
	out := map[string]string{}
	lines := 0
	for line := range strings.Lines(text) {
		if lines++; lines > mostLines {
			break
		}
		label, value, found := strings.Cut(line, ":")
		label = strings.ToLower(strings.Trim(label, " \t*-_"))
		value = strings.Trim(value, " \t\r\n*_")
		if !found || label == "" || value == "" || len(label) > longestLabel || len(value) > longestValue {
			continue
		}
		if _, there := out[label]; !there {
			out[label] = value
		}
	}
	return out
}
