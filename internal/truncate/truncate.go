// Package truncate shortens texts to a number of characters, counted as the API server does: code points.
package truncate

import "unicode/utf8"

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
