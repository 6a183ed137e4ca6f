package importer

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// An apply request is read as YAML: a text that came back changed would be written again by every import.
func TestCleanTextComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.Rune()).Draw(t, "runes")) + rapid.SampledFrom([]string{"", "\x00", "\x7f", "\u0085", "\u2028", "\ufeff", "\uffff", "\xff", "\r\n", " \n\t "}).Draw(t, "tail")
		cleaned := clean(in)
		encoded := harness.JSON(t, map[string]string{"text": cleaned})
		var out map[string]string
		if err := yaml.Unmarshal(encoded, &out); err != nil {
			t.Fatalf("%q is sent as %s, which is no YAML: %v", in, encoded, err)
		}
		if out["text"] != cleaned {
			t.Fatalf("%q is sent, %q is stored", cleaned, out["text"])
		}
		if clean(cleaned) != cleaned {
			t.Fatalf("%q is not clean yet", cleaned)
		}
	})
}

func TestCutCountsCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.StringN(0, 60, -1).Draw(t, "text")
		limit := rapid.IntRange(len(cutMark), 40).Draw(t, "limit")
		out := cut(in, limit)
		if n := utf8.RuneCountInString(out); n > limit || !utf8.ValidString(out) {
			t.Fatalf("%q has %d characters, at most %d are allowed", out, n, limit)
		}
		if utf8.RuneCountInString(in) <= limit {
			if out != in {
				t.Fatalf("%q fits and became %q", in, out)
			}
			return
		}
		if !strings.HasSuffix(out, cutMark) || utf8.RuneCountInString(out) != limit {
			t.Fatalf("%q was cut to %q, want all %d characters used, the mark last", in, out, limit)
		}
	})
}

func TestLineIsOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"\n\n  first\t one \nx": "first one",
		"a\u2028b":              "a",
		"a\x00b":                "a\uFFFDb",
	} {
		harness.Same(t, fmt.Sprintf("line(%q)", in), want, line(in))
	}
}
