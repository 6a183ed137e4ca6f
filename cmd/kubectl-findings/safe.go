package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// Runes that join letters in scripts that need them, without any other effect on the display.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// commandInFront matches what GitHub's runner executes if a job prints it at the beginning of a line.
var commandInFront = regexp.MustCompile(`^( *)::`)

// printable returns text in a form that is safe to print on a terminal, and in the log of a CI job. Scanners quote the
// scanned code, which may contain sequences that clear the screen, set its title, or reverse the reading direction, and
// commands that CI executes.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == utf8.RuneError:
			b.WriteRune(utf8.RuneError) // also for invalid bytes
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case r == zeroWidthJoiner, r == zeroWidthNonJoiner:
			b.WriteRune(r)
		case unicode.IsControl(r) && r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return commandInFront.ReplaceAllString(importer.WithoutCommands(b.String()), `$1:\x3a`)
}

// printableLines returns text of several lines, each in the form of printable.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n")
}

// titleLength bounds a title in a table, in characters.
const titleLength = 72

// shortened returns the text cut to n characters, with a mark if it was cut.
func shortened(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:n-1])) + "…"
}
