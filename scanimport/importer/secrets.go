package importer

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// credentialCWEs are weaknesses whose code contains a credential. CWE-256, CWE-260 and CWE-313 are none: CodeQL also
// gives them to code that writes a password into a file, which people need to see.
var credentialCWEs = []string{"CWE-13", "CWE-259", "CWE-321", "CWE-555", "CWE-798"}

// showsSecret reports whether text quoted by the scanner may contain a credential, and so must not be stored. Reports
// on code or packages may, too: some scanners look for several things at once, and a hard-coded password is a weakness
// of code.
func showsSecret(r *sarif.Result, category v1alpha1.FindingCategory) bool {
	if category == v1alpha1.CategorySecret || r.TaggedSecret || r.Rule.NamesSecret() {
		return true
	}
	return slices.ContainsFunc(r.CWEs, func(cwe string) bool { return slices.Contains(credentialCWEs, cwe) })
}

const (
	notKept        = "[not kept]"
	quotationMarks = "\"'`"
	// minQuote is the minimum length of a snippet line to search for in the message: "}" is in every message.
	minQuote = 4
	// maxQuotes bounds how many lines are searched for. With more lines, nothing of the message is stored.
	maxQuotes = 200
	// maxValues bounds how many different lines and values are searched for. With more, nothing of the message is stored.
	maxValues = 1000
	// maxMarks bounds how many quotation marks a message may have. With more, nothing of it is stored.
	maxMarks = 1000
)

var (
	// literal matches a string in a line of code, and the name, with its type, that it is assigned to or compared with.
	literal = regexp.MustCompile("(?:([A-Za-z_][\\w.-]{0,63}[\"']?(?:: ?\\w+)?)\\s*[!=:]+>?\\s*)?" +
		"\\w{0,2}[\"'`]([^\"'`]{4,})[\"'`]")
	// setting matches an unquoted value, also within a string: a connection string has several.
	setting = regexp.MustCompile("[=:]+>?\\s*([^\\s\"'`;,)]{4,})")
	// operator matches where a value itself contains a setting, such as the query of a URL.
	operator = regexp.MustCompile("[=:]+>?")
	// credentialName matches names of credentials in code and in prose.
	credentialName = regexp.MustCompile(`(?i)pass|pwd|secret|token|key|cred|auth|salt|private|login|conn`)
	// plainWords matches words of prose: no digit, no punctuation but a dash, no capital inside.
	plainWords = regexp.MustCompile(`^[A-Za-z]?[a-z]+(?:[ -][a-z]+)*$`)
	// unquote undoes the escapes of quotation marks within a string.
	unquote = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\'`, "'")
)

// withoutQuotes removes from a message what it quotes from the snippet: what it puts in quotation marks, and otherwise
// lines and values. A word that also occurs in prose, such as "text" of `type = "text"`, counts without quotation marks
// only if the code assigns it to a credential, or compares the two. Overlapping quotations are removed as one. It
// returns "" if no word is left, and without code, because it is unknown what the message quotes.
func withoutQuotes(message, snippet string) string {
	// ends holds, at the position where a quotation begins, the end of the longest one there.
	ends := make([]int, len(message))
	quotes, ok := quotesIn(snippet)
	if !ok || !markQuoted(message, snippet, ends) {
		return ""
	}
	for value, word := range quotes {
		mark(message, value, word, ends)
	}
	var out strings.Builder
	for i := 0; i < len(message); i++ {
		end := ends[i]
		if end == 0 {
			out.WriteByte(message[i])
			continue
		}
		for ; i < end; i++ {
			end = max(end, ends[i])
		}
		i--
		out.WriteString(notKept)
	}
	if !strings.ContainsFunc(strings.ReplaceAll(out.String(), notKept, ""), isWordRune) {
		return ""
	}
	return out.String()
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// quotesIn returns the lines and values of a snippet, and whether they count only as whole words. ok is false if there
// are too many, or none because the tool gives no code.
func quotesIn(snippet string) (quotes map[string]bool, ok bool) {
	if fingerprints.IsPlaceholder(snippet) {
		return nil, false
	}
	quotes = map[string]bool{}
	add := func(value string) {
		if !plainWords.MatchString(value) {
			quotes[value] = false
		}
	}
	lines := 0
	for quoted := range strings.Lines(snippet) {
		if quoted = strings.TrimSpace(quoted); len(quoted) < minQuote {
			continue
		}
		if lines++; lines > maxQuotes {
			return nil, false
		}
		add(quoted)
		for _, match := range setting.FindAllStringSubmatch(quoted, -1) {
			add(match[1])
			for _, inner := range settingsWithin(match[1]) {
				add(inner)
			}
		}
		for _, match := range literal.FindAllStringSubmatch(quoted, -1) {
			name, value := match[1], match[2]
			add(value)
			if plainWords.MatchString(value) && credentialName.MatchString(name) && !credentialName.MatchString(value) {
				quotes[value] = true
			}
		}
		if len(quotes) > maxValues {
			return nil, false
		}
	}
	return quotes, lines > 0
}

// settingsWithin returns the values of the settings within a value, such as those of an address: each up to the end,
// and up to the next parameter.
func settingsWithin(value string) (out []string) {
	for _, at := range operator.FindAllStringIndex(value, maxValues+1) {
		inner := value[at[1]:]
		parameter, _, _ := strings.Cut(inner, "&")
		for _, part := range []string{inner, parameter} {
			if len(part) >= minQuote {
				out = append(out, part)
			}
		}
	}
	return out
}

// markQuoted notes in ends what the message puts in quotation marks and the code contains. That includes names, because
// no pattern tells them from passwords in every language. ok is false if there is too much to search for.
func markQuoted(message, snippet string, ends []int) (ok bool) {
	count := 0
	for _, mark := range quotationMarks {
		count += strings.Count(message, string(mark))
	}
	if count > maxMarks {
		return false
	}
	code := snippet + "\n" + unquote.Replace(snippet)
	for i := 0; i < len(message); i++ {
		if strings.IndexByte(quotationMarks, message[i]) < 0 {
			continue
		}
		if end := quotedEnd(message, i+1, code); end > i+1 {
			ends[i+1] = end
			i = end - 1 // the mark there may also open the next quotation
		}
	}
	return true
}

// quotedEnd returns the last mark that may close the quotation at begin, so that the code contains all up to it: a
// password may itself contain such marks. It returns 0 if there is none.
func quotedEnd(message string, begin int, code string) (end int) {
	for at := begin; ; at++ {
		length := strings.IndexByte(message[at:], message[begin-1])
		if length < 0 {
			return end
		}
		if at += length; !strings.Contains(code, message[begin:at]) {
			return end
		}
		end = at
	}
}

// mark notes in ends where the message contains a value. word means that it counts only as a whole word.
func mark(message, value string, word bool, ends []int) {
	for i := 0; ; {
		at := strings.Index(message[i:], value)
		if at < 0 {
			return
		}
		i += at
		end := i + len(value)
		before, after := around(message, i, end)
		if !word || !isWord(before) && !isWord(after) {
			ends[i] = max(ends[i], end)
			i = end
			continue
		}
		// A quotation cannot begin within a word.
		for i < len(message) && isWord(message[i]) {
			i++
		}
	}
}

// around returns the bytes before and after a part of a text; 0 at the text's ends.
func around(s string, from, to int) (before, after byte) {
	if from > 0 {
		before = s[from-1]
	}
	if to < len(s) {
		after = s[to]
	}
	return before, after
}

// isWord reports whether a byte is a word character for \b in a regular expression.
func isWord(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}
