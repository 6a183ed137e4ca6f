package findings

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"k8s.io/utils/ptr"
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

func TestAChangeLeadsToTheDecisionItWasMadeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := decision{
			UserStatus: rapid.SampledFrom([]string{"open", "active", "muted"}).Draw(t, "status"),
			Comments:   rapid.String().Draw(t, "comments"),
		}
		if rapid.Bool().Draw(t, "a reason") {
			d.Reason = ptr.To(rapid.SampledFrom(reasons).Draw(t, "reason").Value)
		}
		if rapid.Bool().Draw(t, "an end") {
			d.ExpiresAt = ptr.To(time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "end"), 0).UTC())
		}
		c := changeTo(d)
		// As the module sends it back.
		form := url.Values{}
		for name, value := range map[string]*string{"user_status": c.UserStatus, "reason": c.Reason, "until": c.ExpiresAt, "comments": c.Comments} {
			if value != nil {
				form.Set(name, *value)
			}
		}
		if diff := cmp.Diff(c, changeOf(form, decision{UserStatus: open})); diff != "" {
			t.Fatalf("it came back as another (-sent +got):\n%s", diff)
		}
	})
}

func TestAFormThatNobodyTouchedChangesNothing(t *testing.T) {
	end := time.Date(2099, 5, 4, 8, 0, 0, 0, time.UTC)
	before := decision{UserStatus: "muted", Reason: ptr.To("duplicate"), ExpiresAt: &end, Comments: "one\ntwo"}
	form := url.Values{"user_status": {"muted"}, "reason": {"duplicate"}, "until": {before.until()}, "comments": {"one\r\ntwo"}}
	if diff := cmp.Diff(changeTo(before), changeOf(form, before)); diff != "" {
		t.Errorf("(-before +asked for):\n%s", diff)
	}
	form.Set("until", "2099-05-05")
	if got := *changeOf(form, before).ExpiresAt; got != "2099-05-05T23:59:59Z" {
		t.Errorf("another day ends %s", got)
	}
}

func TestWhatIsOpenAgainHasNoGrounds(t *testing.T) {
	past := time.Unix(1, 0)
	ended := decision{UserStatus: open, Reason: ptr.To("duplicate"), ExpiresAt: &past, Comments: "x"}
	if c := changeTo(ended); c.Reason != nil || c.ExpiresAt != nil || *c.UserStatus != open || *c.Comments != "x" {
		t.Errorf("to one that has ended leads %+v", c)
	}
	form := url.Values{"user_status": {open}, "reason": {"duplicate"}, "until": {"2099-05-04"}}
	if c := changeOf(form, ended); c.Reason != nil || c.ExpiresAt != nil {
		t.Errorf("%+v", c)
	}
}

func TestWhatAFormDoesNotGiveStays(t *testing.T) {
	c := changeOf(url.Values{"user_status": {"active"}}, decision{UserStatus: "muted"})
	if c.Reason != nil || c.ExpiresAt != nil || c.Comments != nil {
		t.Errorf("%+v", c)
	}
	if c = changeOf(url.Values{"reason": {""}, "until": {""}, "comments": {""}}, decision{UserStatus: "muted"}); *c.Reason != none || *c.ExpiresAt != none || *c.Comments != "" {
		t.Errorf("an empty field takes away: %+v", c)
	}
}

func TestADecisionIsToldFromEveryOther(t *testing.T) {
	one := decision{UserStatus: "muted", Comments: "a"}
	for name, other := range map[string]struct {
		decision
		by string
	}{
		"status":  {decision{UserStatus: "active", Comments: "a"}, "apikey/ada"},
		"comment": {decision{UserStatus: "muted", Comments: "b"}, "apikey/ada"},
		"reason":  {decision{UserStatus: "muted", Comments: "a", Reason: ptr.To("duplicate")}, "apikey/ada"},
		"end":     {decision{UserStatus: "muted", Comments: "a", ExpiresAt: ptr.To(time.Unix(1, 0))}, "apikey/ada"},
		"person":  {one, "apikey/bob"},
	} {
		if seen(one, "apikey/ada") == seen(other.decision, other.by) {
			t.Errorf("another %s is not told", name)
		}
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
	facets := facetsOf(counts, newView(url.Values{"tool": {"semgrep"}}))
	if len(facets) != 1 || len(facets[0].Values) != 2 || !facets[0].Values[1].Chosen || facets[0].Values[1].Toggle != listPath || facets[0].Hidden != 8 {
		t.Errorf("%+v", facets)
	}
}
