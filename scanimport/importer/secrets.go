package importer

import (
	"regexp"
	"slices"
	"strings"

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
	notKept = "[not kept]"
	// minQuote is the minimum length of a snippet line to search for in the message: "}" is in every message.
	minQuote = 4
	// maxQuotes bounds how many lines are searched for. With more lines, nothing of the message is stored.
	maxQuotes = 200
	// maxValues bounds how many different lines and values are searched for. With more, nothing of the message is stored.
	maxValues = 1000
)

// literal matches a possible credential in a line of code, a string or an unquoted value, and the name that it is
// assigned to.
var literal = regexp.MustCompile("(?:([A-Za-z_][\\w.-]{0,63})[\"']?\\s*(?::=|=>|[=:])\\s*)?" +
	"(?:[\"'`]([^\"'`]{4,})[\"'`]|[=:]\\s*([^\\s\"'`;,)]{4,}))")

var (
	// credentialName matches names of credentials in code and in prose.
	credentialName = regexp.MustCompile(`(?i)pass|pwd|secret|token|key|cred|auth|salt|private|login|conn`)
	// plainWords matches words of prose: no digit, no punctuation but a dash, no capital inside.
	plainWords = regexp.MustCompile(`^[A-Za-z]?[a-z]+(?:[ -][a-z]+)*$`)
)

// withoutQuotes removes from a message the lines and values of the snippet that it quotes. A word that also occurs in
// prose, such as "text" of `type = "text"`, counts only if the message puts it in quotation marks, or if the code
// assigns it to the name of a credential. Overlapping quotations are removed as one. Without code it returns "",
// because it is unknown what the message quotes.
func withoutQuotes(message, snippet string) string {
	quotes, ok := quotesIn(snippet)
	if !ok {
		return ""
	}
	// ends holds, at the position where a quotation begins, the end of the longest one there.
	ends := make([]int, len(message))
	for value, named := range quotes {
		mark(message, value, named, ends)
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
	return out.String()
}

// quotesIn returns the lines and values of a snippet, and whether the code assigns them to a credential's name. ok is
// false if there are too many, or none because the tool gives no code.
func quotesIn(snippet string) (quotes map[string]bool, ok bool) {
	if fingerprints.IsPlaceholder(snippet) {
		return nil, false
	}
	quotes = map[string]bool{}
	add := func(value string, named bool) { quotes[value] = quotes[value] || named }
	lines := 0
	for quoted := range strings.Lines(snippet) {
		if quoted = strings.TrimSpace(quoted); len(quoted) < minQuote {
			continue
		}
		if lines++; lines > maxQuotes {
			return nil, false
		}
		add(quoted, false)
		for _, match := range literals(quoted) {
			add(match[2]+match[3], credentialName.MatchString(match[1]))
		}
		if len(quotes) > maxValues {
			return nil, false
		}
	}
	return quotes, len(quotes) > 0
}

// literals returns the matches of literal in a line, and those within its strings: a connection string has settings.
func literals(code string) [][]string {
	out := literal.FindAllStringSubmatch(code, -1)
	for _, match := range out {
		out = append(out, literal.FindAllStringSubmatch(match[2], -1)...)
	}
	return out
}

// mark notes in ends where the message quotes a value. named means that the code assigns it to a credential's name.
func mark(message, value string, named bool, ends []int) {
	prose := plainWords.MatchString(value)
	word := named && !credentialName.MatchString(value)
	for i := 0; ; {
		at := strings.Index(message[i:], value)
		if at < 0 {
			return
		}
		i += at
		end := i + len(value)
		before, after := around(message, i, end)
		alone := !isWord(before) && !isWord(after)
		quoted := before == after && strings.IndexByte("\"'`", before) >= 0
		if !prose || word && alone || !word && quoted {
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
