package ui

import (
	"encoding/json"
	"html"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestAMessageBecomesASentence(t *testing.T) {
	for message, want := range map[string]string{
		"the API key lacks the scope webhooks:read": "The API key lacks the scope webhooks:read.",
		"Already one.": "Already one.",
		"über":         "Über.",
		"":             "",
	} {
		harness.Same(t, "sentence of "+message, want, Sentence(message))
	}
}

func TestThousandsStandApart(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		harness.Same(t, "thousands", want, Thousands(n))
	}
}

// A scanner's top-level headings must rank below those of the page.
func TestHeadingsOfProseAreOfOneLevel(t *testing.T) {
	html := new(Texts).prose("# First\n\ntext\n\n###### Last\n", 3)
	if strings.Count(html, "<h3>") != 2 || strings.Count(html, "<h") != 2 {
		t.Errorf("got %s", html)
	}
}

func TestProseHoldsNoScript(t *testing.T) {
	html := new(Texts).prose("a <script>alert(1)</script> [b](javascript:alert) ![c](https://example.com/c.png)", 3)
	harness.Lacks(t, "the text", html, "<script", "javascript:", "<img")
}

// Most scanners write plain text, and what looks like a tag may be the evidence.
func TestWhatLooksLikeATagIsShown(t *testing.T) {
	for text, want := range map[string]string{
		"Evidence: </web-app>":                      "<p>Evidence: &lt;/web-app&gt;</p>",
		"Evidence: <title>Google</title>":           "<p>Evidence: &lt;title&gt;Google&lt;/title&gt;</p>",
		"<title></title> must not be empty":         "<p>&lt;title&gt;&lt;/title&gt; must not be empty</p>",
		"<script>alert(1)\n\n# What to do\n\n*Fix*": "<p>&lt;script&gt;alert(1)</p>\n<h3>What to do</h3>\n<p><em>Fix</em></p>",
		"a <!-- b --> <?c?> <!D> <![CDATA[e]]>":     "<p>a &lt;!-- b --&gt; &lt;?c?&gt; &lt;!D&gt; &lt;![CDATA[e]]&gt;</p>",
		"`<b>` &lt;i&gt;":                           "<p><code>&lt;b&gt;</code> &lt;i&gt;</p>",
		"<https://a.example/>":                      `<p><a href="https://a.example/" rel="nofollow noreferrer">https://a.example/</a></p>`,
		"vector<std::string> a<b@c.example>":        "<p>vector&lt;std::string&gt; a&lt;b@c.example&gt;</p>",
		"<soap:Envelope>":                           "<p>&lt;soap:Envelope&gt;</p>",
		"|a|\n|-|\n|List<String>|":                  "<td>List&lt;String&gt;</td>",
	} {
		harness.Contains(t, text, new(Texts).prose(text, 3), want)
	}
}

func TestASmallTextCannotBecomeALargePage(t *testing.T) {
	const end = "R&D"
	for name, text := range map[string]string{
		"short rows of a wide table": "|" + strings.Repeat("a|", 500) + "\n|" + strings.Repeat("-|", 500) + strings.Repeat("\na", 3000),
		"uses of a long address":     "[a]: http://x/?" + strings.Repeat("&", 4000) + "\n\n" + strings.Repeat("[a] ", 900),
		"nested quotes":              strings.Repeat(">", 16000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		shown := new(Texts).prose(text+"\n\n"+end, 3)
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; len(shown) > 2*maxHTML || allocated > 128<<20 {
			t.Errorf("%s: %d bytes become %d, and allocate %d", name, len(text), len(shown), allocated)
		}
		if !strings.Contains(shown, html.EscapeString(end)) {
			t.Errorf("%s: the text is gone: %.100s", name, shown)
		}
	}
	harness.Contains(t, "a small table", new(Texts).prose("|a|b|\n|-|-|\n|c|", 3), "<td>c</td>")
}

func TestTextsThatMarkdownRendersSlowlyArePlain(t *testing.T) {
	for part, most := range map[string]int{
		">": maxDepth, "> ": maxDepth, "+\t": maxDepth, "1. ": maxDepth, "- > ": maxDepth / 2,
		"[a](": maxBrackets / 2, "[]": maxBrackets / 2, "*a_ ": maxDelimiters / 2, "*a~ ": maxDelimiters / 2,
	} {
		for _, before := range []string{"", "a\n\n"} {
			if text := before + strings.Repeat(part, most) + "a"; new(Texts).prose(text, 3) == plain(text) {
				t.Errorf("%d times %q are plain", most, part)
			}
			if text := before + strings.Repeat(part, most+1) + "a"; new(Texts).prose(text, 3) != plain(text) {
				t.Errorf("%d times %q are not plain", most+1, part)
			}
		}
	}
	for _, text := range []string{strings.Repeat("- a\n", 4000), strings.Repeat("> a\n", 4000), strings.Repeat("-", 80)} {
		if new(Texts).prose(text, 3) == plain(text) {
			t.Errorf("%.20q... is plain", text)
		}
	}
}

func TestTextsThatTakeTooLongArePlain(t *testing.T) {
	const plain = "<pre>*a* &lt;b&gt;</pre>"
	var page Texts
	for n := 0; page.prose("*a* <b>", 3) != plain; n++ {
		if n == 10_000 {
			t.Fatal("a page renders any number of texts, whatever they take")
		}
		page.prose(strings.Repeat("[a](", maxBrackets/2), 3)
	}
	if got := new(Texts).prose("*a* <b>", 3); got == plain {
		t.Error("the texts of another page are plain too")
	}
	rendering <- struct{}{}
	defer func() { <-rendering }()
	harness.Same(t, "a second text at the same time", plain, new(Texts).prose("*a* <b>", 3))
}

func TestARefusalNamesTheFieldsOfTheForm(t *testing.T) {
	for field, of := range map[string]struct{ detail, want string }{
		"expires_at":  {"expires_at must be in the future", "the end date must be in the future"},
		"valid_until": {"valid_until must be in the future and after valid_from", "the end date must be in the future"},
		"set.reason":  {"set.reason is required to mute", "the reason is required to mute"},
		"match":       {"match does not compile: line 1", "the expression does not compile: line 1"},
		"cursor":      {"cursor is of another list", "cursor is of another list"},
	} {
		harness.Same(t, field, of.want, Describe(client.Error{Detail: of.detail, Field: field}))
	}
}

func TestARefusalNamesNoHeader(t *testing.T) {
	for detail, want := range map[string]string{
		waitAsTold + ", then try again":   "wait a moment, then try again",
		"too many exports; " + waitAsTold: "too many exports; wait a moment",
	} {
		harness.Same(t, detail, want, Describe(client.Error{Detail: detail}))
	}
}

// A message in the corner of the page has nothing below it.
func TestWhatAModuleIsToldNamesTimeAndRequest(t *testing.T) {
	for want, p := range map[string]Problem{
		"Try again in 40 seconds.": {Status: http.StatusTooManyRequests, RetryAt: time.Now().Add(40 * time.Second)},
		"many such requests":       {Status: http.StatusTooManyRequests, Busy: true},
		"the request id r-1.":      {Status: http.StatusInternalServerError, RequestID: "r-1"},
		"the request id r-2.":      {Status: http.StatusInternalServerError, RequestID: "r-2", Change: true},
		"with that scope":          {Status: http.StatusForbidden, MissingScope: true},
		"is out of date":           {Status: http.StatusPreconditionFailed, Change: true},
		"what it is about now":     {Status: http.StatusPreconditionFailed, Change: true},
		"was changed. Load the":    {Status: http.StatusPreconditionFailed, Change: true},
		"Nothing was changed.":     {Status: http.StatusMethodNotAllowed, Change: true},
		"Not accepted":             {Status: http.StatusConflict, Change: true},
		"Do what the reason asks":  {Status: http.StatusConflict, Change: true},
	} {
		shown, err := json.Marshal(p.JSON())
		if err != nil || !strings.Contains(string(shown), want) || strings.Contains(string(shown), "below") {
			t.Errorf("want %q, got %s (%v)", want, shown, err)
		}
	}
}
