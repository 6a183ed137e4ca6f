package importer

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// title returns one whole sentence: of the rule's short description if that is one, else of the message, else of the
// rule's long description. Without any sentence it returns the rule's name or id.
func title(r *sarif.Result, message string, rule *ruleTexts) string {
	return sarif.FirstOf(rule.title, sentence(message), rule.otherTitle, line(r.RuleID), "Finding without a description")
}

// describes reports whether a text is a description and not the rule's name, such as "Branch-Protection", or the text
// that Semgrep writes for a rule without one.
func describes(short string) bool {
	return strings.ContainsRune(short, ' ') && !strings.HasPrefix(short, "Semgrep Finding: ")
}

const (
	// wrapped is the length from which a line counts as broken for its length.
	wrapped = 60
	// maxSentence bounds how much of a text is searched, in bytes.
	maxSentence = 4 * maxTitle
	// minSentence prevents "No." and "1." from being sentences.
	minSentence = 12
)

// sentence returns the first sentence of a text, on one line with single blanks; the text may break it anywhere.
func sentence(s string) string {
	if len(s) > maxSentence {
		s = strings.ToValidUTF8(s[:maxSentence], "")
	}
	joined := ""
	for l := range strings.Lines(clean(s)) {
		l = strings.Join(strings.Fields(l), " ")
		if joined != "" && (l == "" || !continues(joined, l)) {
			break
		}
		joined = strings.TrimSpace(joined + " " + l)
		if end := sentenceEnd(joined); end > 0 {
			return joined[:end]
		}
	}
	return joined
}

// continues reports whether a line continues the sentence of the lines before it: "Version: 1" does not continue
// "Package: x".
func continues(before, l string) bool {
	first, _ := utf8.DecodeRuneInString(l)
	return unicode.IsLower(first) || utf8.RuneCountInString(before) >= wrapped && unicode.IsLetter(first)
}

// notAnEnd matches words whose period ends no sentence.
var notAnEnd = regexp.MustCompile(`(?i)(?:^|[\s("'])(?:e\.g|i\.e|etc|vs|cf|resp|approx|no|incl|esp|ca|dr|mr|mrs|st)\.$`)

// maxAbbreviation is longer than the longest match, including the character before it.
const maxAbbreviation = 16

// abbreviates reports whether a period at the end of s belongs to an abbreviation and ends no sentence.
func abbreviates(s string) bool { return notAnEnd.MatchString(s[max(0, len(s)-maxAbbreviation):]) }

// sentenceEnd returns where the first sentence ends, or 0 if it does not end.
func sentenceEnd(s string) int {
	for i := minSentence; i < len(s); i++ {
		if s[i] != '.' && s[i] != '!' && s[i] != '?' {
			continue
		}
		end := i + 1
		for end < len(s) && strings.IndexByte(`"')]`, s[end]) >= 0 {
			end++
		}
		switch {
		case end < len(s) && s[end] != ' ' || abbreviates(s[:i+1]):
		case end == len(s):
			return end
		default:
			if next, _ := utf8.DecodeRuneInString(s[end+1:]); !unicode.IsLower(next) {
				return end
			}
		}
	}
	return 0
}
