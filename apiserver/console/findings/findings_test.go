package findings

import (
	"net/url"
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/client"
)

// textOf is what a person reads of HTML, and whether it holds an element beside those of code.
func textOf(shown string) (text string, elements map[string]bool) {
	elements = map[string]bool{}
	var out strings.Builder
	for tokens := html.NewTokenizer(strings.NewReader(shown)); ; {
		switch tokens.Next() {
		case html.ErrorToken:
			return out.String(), elements
		case html.TextToken:
			out.Write(tokens.Text())
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := tokens.TagName()
			elements[string(name)] = true
		}
	}
}

func TestCodeIsShownAsItIsWhateverItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom([]string{"a.go", "b.py", "c.html", "d.js", "e", "f.sql", "g.xml", "<h>.rb"}).Draw(t, "path")
		code := rapid.StringMatching(`([a-z<>/"'&;=(){} ]|<script>|\n){0,80}`).Draw(t, "code")
		text, elements := textOf(highlighted(path, code, 1))
		for name := range elements {
			if name != "pre" && name != "code" && name != "span" {
				t.Fatalf("the code became <%s>", name)
			}
		}
		// Numbers of lines stand between them.
		letters := func(s string) string {
			return strings.Map(func(r rune) rune {
				return map[bool]rune{true: r, false: -1}[strings.ContainsRune("abcdefghijklmnopqrstuvwxyz<>/\"'&;=(){}", r)]
			}, s)
		}
		if letters(html.UnescapeString(text)) != letters(code) {
			t.Fatalf("%q is shown as %q", code, text)
		}
	})
}

// endless is a lexer that comes to no end.
type endless struct{ chroma.Lexer }

func (endless) Tokenise(*chroma.TokeniseOptions, string) (chroma.Iterator, error) {
	n := 0
	return func() chroma.Token {
		n++
		return chroma.Token{Type: chroma.TokenType(n%2 + 1), Value: "x"}
	}, nil
}

func TestCodeThatTakesTooLongHasNoColours(t *testing.T) {
	if tokens := coloured(endless{}, "x"); tokens != nil {
		t.Errorf("it came to an end with %d tokens", len(tokens))
	}
	if tokens := coloured(lexers.Get("go"), "return nil"); len(tokens) < 2 {
		t.Errorf("after it, Go has %v", tokens)
	}
	colouring <- struct{}{}
	defer func() { <-colouring }()
	if tokens := coloured(lexers.Get("go"), "return nil"); tokens != nil {
		t.Errorf("a second text was coloured at the same time: %v", tokens)
	}
}

func TestAViewsLinksHoldItAndNothingElse(t *testing.T) {
	v := newView(url.Values{"severity": {"high"}, "text": {""}, "cursor": {"x"}, "facet": {"rule"}, "sort": {"created_at"}, "made": {"up"}})
	if got := v.with("tool", "gosec"); got != "/console/findings?severity=high&sort=created_at&tool=gosec" {
		t.Errorf("with another filter: %s", got)
	}
	if got := v.with("severity", "", "sort", ""); got != listPath {
		t.Errorf("without any: %s", got)
	}
	if got := v.export("csv"); got != "/console/export?format=csv&severity=high&sort=created_at" {
		t.Errorf("its export: %s", got)
	}
}

func TestWhatIsChosenStaysInItsFacet(t *testing.T) {
	counts := client.FindingCounts{Fields: []client.FieldCounts{
		{Field: "tool", Distinct: 9, Values: []client.ValueCount{{Value: "gosec", Count: 3}}},
		{Field: "stale", Distinct: 1, Values: []client.ValueCount{{Value: "false", Count: 3}}},
	}}
	facets := facetsOf(counts, newView(url.Values{"tool": {"semgrep"}}), "")
	if len(facets) != 1 || len(facets[0].Values) != 2 || !facets[0].Values[1].Chosen || facets[0].Values[1].Toggle != listPath || facets[0].Hidden != 8 {
		t.Errorf("%+v", facets)
	}
}
