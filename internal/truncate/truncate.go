// Package truncate shortens texts to a number of characters, counted as the API server does: code points.
package truncate

import (
	"strconv"
	"unicode/utf8"
)

// To returns the first limit characters of s, or s if it has no more.
func To(s string, limit int) string {
	for i := range s {
		if limit <= 0 {
			return s[:i]
		}
		limit--
	}
	return s
}

// Marked returns s, or if it has more than limit characters, as many of the first as leave room for the mark, and the
// mark.
func Marked(s string, limit int, mark string) string {
	if len(s) <= limit || utf8.RuneCountInString(s) <= limit {
		return s
	}
	return To(s, limit-utf8.RuneCountInString(mark)) + mark
}

// MarkedStart returns s, or if it has more than limit characters, the mark, and as many of the last as leave room for
// it.
func MarkedStart(s string, limit int, mark string) string {
	characters := []rune(s)
	if len(characters) <= limit {
		return s
	}
	return mark + string(characters[len(characters)-limit+utf8.RuneCountInString(mark):])
}

// Quotable returns s, or if %q prints more than limit characters between the quotes, as many of the first as leave room
// for the mark, and the mark: %q prints a character that is not printable as up to ten.
func Quotable(s string, limit int, mark string) string {
	marked := limit - utf8.RuneCountInString(mark)
	end, printed := 0, 0
	for next := 0; next < len(s); {
		_, size := utf8.DecodeRuneInString(s[next:])
		printed += utf8.RuneCountInString(strconv.Quote(s[next:next+size])) - len(`""`)
		if printed > limit {
			return s[:end] + mark
		}
		if next += size; printed <= marked {
			end = next
		}
	}
	return s
}
