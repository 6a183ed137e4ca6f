package triagepolicy

import (
	"fmt"
	"strings"
	"testing"
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
	for _, other := range []string{"", "The expression spec.match is valid.", `It does not: "`, `"\x"`} {
		if got, ok := ParseQuoted(other); ok {
			t.Errorf("%q was read as %+v", other, got)
		}
	}
}
