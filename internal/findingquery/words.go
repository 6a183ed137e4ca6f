package findingquery

import (
	"strings"
	"unicode"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// MaxWords bounds a question, so that answering it is bounded too.
const MaxWords = 8

// Fold is a text as it is compared: whatever the case of its letters.
func Fold(text string) string {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, text)
		}
	}
	return strings.ToLower(text)
}

// Words are the words of a question, folded, each once. Words are what white space separates.
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

// Text is where words are looked for, folded: the title, and the path in a line of its own, which no word crosses.
func Text(details *v1alpha1.FindingDetails) string {
	if path := PathOf(details); path != "" {
		return Fold(details.Title + "\n" + path)
	}
	return Fold(details.Title)
}

// HasWords reports whether each of the words is in the text, in whole or as a part of a word. All are folded.
func HasWords(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
