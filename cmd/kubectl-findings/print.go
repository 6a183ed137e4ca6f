package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// results returns a number of results in words: "1 result", "2 results".
func results(n int) string {
	if n == 1 {
		return "1 result"
	}
	return fmt.Sprintf("%d results", n)
}

func warn(to io.Writer, warnings []string) {
	for _, w := range warnings {
		fmt.Fprintf(to, "  warning: %s\n", printable(w))
	}
}

// unlisted reports how many lines of a preview are not shown.
func unlisted(to io.Writer, more int) {
	if more > 0 {
		fmt.Fprintf(to, "... and %d more\n", more)
	}
}

// explain reports what was skipped or corrected while reading, and why.
func explain(b *bytes.Buffer, skipped map[string]int, examples []string, notes map[string]int) {
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Fprintf(b, "  skipped %d: %s\n", skipped[reason], reason)
	}
	for _, example := range examples {
		fmt.Fprintf(b, "    %s\n", printable(example))
	}
	for _, note := range slices.Sorted(maps.Keys(notes)) {
		fmt.Fprintf(b, "  note %d: %s\n", notes[note], note)
	}
}

func changeLine(b *bytes.Buffer, action, name string, severity v1alpha1.Level, title, place string) {
	fmt.Fprintf(b, "%-7s %s  %-6s  %s", action, name, severity, printable(title))
	if place != "" {
		fmt.Fprintf(b, "  (%s)", printable(place))
	}
	b.WriteByte('\n')
}
