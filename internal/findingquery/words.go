package findingquery

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// MaxWords bounds the words of a search, and so its cost.
const MaxWords = 8

// Fold returns a text in the form in which texts are compared, which ignores case and whether accents are characters of
// their own, as in paths from macOS.
func Fold(text string) string {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, norm.NFC.String(text))
		}
	}
	return strings.ToLower(text)
}

// Words returns the words of a search, folded and without duplicates. White space separates words.
func Words(text string) []string {
	var words []string
	seen := map[string]bool{}
	for word := range strings.FieldsSeq(Fold(text)) {
		if !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	return words
}

// Text returns the text in which words are searched, folded: the title and, on a separate line so that no word
// spans both, the path.
func Text(details *v1alpha1.FindingDetails) string {
	if path := details.Place().FilePath; path != "" {
		return Fold(details.Title + "\n" + path)
	}
	return Fold(details.Title)
}

// HasWords reports whether the text contains each of the words, as a whole or as part of a word. All must be
// folded.
func HasWords(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
