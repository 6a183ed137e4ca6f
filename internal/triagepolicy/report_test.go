package triagepolicy

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func quoted(e *CompileError) string { return fmt.Sprintf("It does not compile: %q.", e.Quotable()) }

func TestAQuotedErrorIsReadBackWithItsPlace(t *testing.T) {
	for _, match := range []string{"finding.nosuch", "true &&", "1 + 1", "finding.title == \"\u0001\"x", "finding.title.matches('[')"} {
		_, err := Compile(match)
		wrong, is := IsCompileError(err)
		if !is {
			t.Fatalf("%q compiles: %v", match, err)
		}
		got, ok := ParseQuoted(quoted(wrong))
		want := *wrong
		want.Message = strings.ReplaceAll(want.Message, `"`, "'")
		if !ok || got != want {
			t.Errorf("%q: read %+v, %t, from %s; want %+v", match, got, ok, quoted(wrong), want)
		}
	}
	long := CompileError{Line: 3, Column: 4, Message: strings.Repeat("ä", 1000)}
	if got, ok := ParseQuoted(quoted(&long)); !ok || got.Line != 3 || got.Column != 4 || len([]rune(long.Quotable())) != maxQuoted {
		t.Errorf("of a long message: %+v, %t", got, ok)
	}
	// Characters that %q prints as several: the API server refuses a condition with more than 1,024.
	for _, odd := range []string{"\u200b", "\U000e0001", `\`, "\xff"} {
		_, err := Compile("finding.path == '" + strings.Repeat(odd, 600))
		wrong, is := IsCompileError(err)
		if !is {
			t.Fatalf("%q: it compiles: %v", odd, err)
		}
		long.Message = wrong.Message + strings.Repeat(odd, 600)
		for _, e := range []*CompileError{wrong, &long} {
			if n := utf8.RuneCountInString(e.Quotable()); n < 50 {
				t.Errorf("%q: %d characters are left", odd, n)
			}
			if n := utf8.RuneCountInString(quoted(e)); n > 600 {
				t.Errorf("%q: the message has %d characters", odd, n)
			}
		}
	}
	for _, other := range []string{"", "The expression spec.match is valid.", `It does not: "`, `"\x"`} {
		if got, ok := ParseQuoted(other); ok {
			t.Errorf("%q was read as %+v", other, got)
		}
	}
}
