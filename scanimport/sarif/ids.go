package sarif

import (
	"regexp"
	"strings"
)

// forms holds what follows the first word of an id, by this word in capitals.
var forms = formsOf(map[string]string{
	"CVE":                                    `[0-9]{4}-[0-9]{4,19}|LOCAL-[0-9]{4}-[0-9]{1,19}`,
	"GHSA":                                   `[23456789cfghjmpqrvwx]{4}(?:-[23456789cfghjmpqrvwx]{4}){2}`,
	"GO|RUSTSEC|PYSEC|OSV|MAL|RSEC|HSEC|UVI": `[0-9]{4}-[0-9]{1,19}`,
	"SNYK":                                   `[A-Z0-9]{1,32}-[A-Z0-9_]{1,96}-[0-9]{1,19}`,
	"XRAY":                                   `[0-9]{1,19}`,
	datedAdvisories:                          `[0-9]{4}:[0-9]{1,9}`,
	"BDSA|TEMP|ALAS|" + numberedAdvisories:   numbered,
	"SUSE":                                   `SU-` + numbered,
})

const numbered = `[0-9][0-9A-Z:.-]{0,63}[0-9A-Z]`

// These are longer than each word in forms, and than what follows it, in bytes.
const maxIDWord, maxIDRest = 8, 256

// formsOf compiles the forms, each that of several words. An underscore may follow an id: JFrog Xray has rule ids such
// as "CVE-2020-28500_lodash_4.17.15", and names such as "XRAY-140562-lodash-4.17.15".
func formsOf(byWords map[string]string) map[string]*regexp.Regexp {
	out := map[string]*regexp.Regexp{}
	for words, form := range byWords {
		compiled := regexp.MustCompile(`^-(?i:` + form + `)(?:_|\b)`)
		for word := range strings.SplitSeq(words, "|") {
			out[word] = compiled
		}
	}
	return out
}

// findID returns where the first id of a vulnerability database lies in a text, with a following underscore. If there
// is none, end is 0. One expression for all ids would take a minute for the texts of the worst file that is accepted:
// so only what follows the first word of an id is matched.
func findID(s string) (begin, end int) {
	for from := 0; ; {
		hyphen := strings.IndexByte(s[from:], '-')
		if hyphen < 0 {
			return 0, 0
		}
		hyphen += from
		begin = hyphen
		for begin > from && isWordByte(s[begin-1]) {
			begin--
		}
		if form := formAfter(s[begin:hyphen]); form != nil {
			if at := form.FindStringIndex(s[hyphen:min(len(s), hyphen+maxIDRest)]); at != nil {
				return begin, hyphen + at[1]
			}
		}
		from = hyphen + 1
	}
}

// formAfter returns the form of what follows a word, or nil if no id begins with it.
func formAfter(word string) *regexp.Regexp {
	first := strings.ToUpper(word[:min(len(word), maxIDWord)])
	if strings.HasPrefix(first, "ALAS") && !strings.Contains(word, "_") { // such as "ALAS2023"
		first = "ALAS"
	}
	return forms[first]
}

// isWordByte reports whether a byte belongs to a word as regular expressions see it.
func isWordByte(b byte) bool {
	return '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || b == '_' || 'a' <= b && b <= 'z'
}
