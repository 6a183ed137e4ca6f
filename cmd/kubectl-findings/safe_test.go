package main

import (
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestPrintable(t *testing.T) {
	for reason, tc := range map[string]struct{ text, want string }{
		"plain text stays":                     {"SQL injection in händler 日本", "SQL injection in händler 日本"},
		"an escape sequence is shown":          {"a\x1b[2Jb", `a\x1b[2Jb`},
		"so is the eight-bit form of it":       {"a\u009b2Jb", `a\u009b2Jb`},
		"and the bell and delete":              {"\a\x7f", `\x07\x7f`},
		"lines become one":                     {"a\r\nb\tc\u2028d\u0085e", "a  b c d e"},
		"text is not turned round":             {"a\u202eb\u2066c\u200fd", `a\u202eb\u2066c\u200fd`},
		"letters may be joined":                {"نامه\u200cای", "نامه\u200cای"},
		"bytes that are no text are not bytes": {"a\x9b\xffb", "a\ufffd\ufffdb"},
	} {
		harness.Same(t, reason, tc.want, printable(tc.text))
	}
}

func TestShortened(t *testing.T) {
	for text, want := range map[string]string{"": "", "äöüß": "äöüß", "äöüßx": "äöü…", "ab c d": "ab…"} {
		harness.Same(t, text, want, shortened(text, 4))
	}
}
