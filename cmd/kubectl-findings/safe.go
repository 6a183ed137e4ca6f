package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Runes that join letters in scripts that need them, and move nothing else about.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// printable returns text in a form that a terminal shows and does not obey. What scanners say is
// made of what is in the code that they scan: it may hold sequences that clear the screen,
// set its title, or turn the reading direction round.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == utf8.RuneError:
			b.WriteRune(utf8.RuneError) // a byte that is no text, too
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
	return b.String()
}

// titleLength is how much of a title stands in a table, in characters.
const titleLength = 72

// shortened is the text cut to n characters, with a mark where something is left out.
func shortened(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:n-1])) + "…"
}
