package ui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// Runes that join letters in scripts that need them, and emoji.
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
	// emojiStyle follows symbols that are shown as emoji, and keycap encloses the character before.
	emojiStyle = '\ufe0f'
	keycap     = '\u20e3'
)

// Visible returns a text of the scanned code, such as a path, with its invisible characters as escapes. Characters that
// reverse the reading direction would show another order than compilers read, and others hide text, end a line where
// the reader sees no end, or make two names look alike. Characters that a script or an emoji needs stay where they are
// used for that. The result is for display only: links and forms need the text itself.
func Visible(text string) string {
	if !strings.ContainsFunc(text, isInvisible) {
		return text
	}
	var b strings.Builder
	var before rune // 0 after an escape
	for i, r := range text {
		if isInvisible(r) {
			after, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
			if !hasEffect(before, r, after) {
				b.WriteString(escapeOf(r))
				before = 0
				continue
			}
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

func isInvisible(r rune) bool {
	switch {
	case ' ' <= r && r <= '~', r == '\t', r == '\n', r == '\r':
		return false
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point)
}

// hasEffect reports whether an invisible rune changes how its neighbours are displayed. Elsewhere, as among Latin
// letters, nobody would notice it.
func hasEffect(before, r, after rune) bool {
	switch r {
	case zeroWidthNonJoiner, zeroWidthJoiner:
		return isJoined(before) && isJoined(after) && !isInvisible(after)
	case emojiStyle:
		return isEmoji(before) || after == keycap && strings.ContainsRune("#*0123456789", before)
	}
	return false
}

// isJoined reports whether the rune may be joined to its neighbour: an emoji, or a letter of a script without upper and
// lower case, except those of East Asia. In some of these scripts, as in Hebrew, no letters are joined.
func isJoined(r rune) bool {
	const marks = '\u0300' // the first of the combining marks; symbols before are not emoji
	return r >= marks && unicode.In(r, unicode.Lo, unicode.M, unicode.So, unicode.Sk) &&
		!unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

func isEmoji(r rune) bool {
	const punctuation = '\u2000' // symbols before are not emoji
	return r >= punctuation && unicode.In(r, unicode.So, unicode.Sm) || strings.ContainsRune("©®‼⁉ℹ〰", r)
}

func escapeOf(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
