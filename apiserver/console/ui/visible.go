package ui

import (
	"fmt"
	"strings"
	"unicode"
)

// Runes that join letters in scripts that need them, and have no other effect on the display.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// Visible returns a text of the scanned code, such as a path, with its invisible characters as escapes. Those that
// reverse the reading direction would show another order than compilers read, and others hide a text, end a line where
// the reader sees no end, or make two names look alike. It is for display alone: links and forms need the text itself.
func Visible(text string) string {
	if !strings.ContainsFunc(text, isInvisible) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isInvisible(r) {
			b.WriteString(escapeOf(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isInvisible(r rune) bool {
	switch {
	case ' ' <= r && r <= '~', r == '\t', r == '\n', r == '\r', r == zeroWidthJoiner, r == zeroWidthNonJoiner:
		return false
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point)
}

func escapeOf(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
