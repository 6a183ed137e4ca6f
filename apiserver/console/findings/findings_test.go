package findings

import (
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a-h/templ"
	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/pagetest"
)

// textOf returns the text of HTML as a person reads it, and the names of its elements.
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
		text, elements := textOf(highlighted(path, code))
		for name := range elements {
			if name != "pre" && name != "code" && name != "span" {
				t.Fatalf("the code became <%s>", name)
			}
		}
		// Lexers may end the code with a line end of their own.
		if got := html.UnescapeString(text); strings.TrimSuffix(got, "\n") != strings.TrimSuffix(code, "\n") {
			t.Fatalf("%q is shown as %q", code, got)
		}
	})
}

// A contributor chooses the names of folders, and a rule's author its title. Links select what is so named.
func TestPathsAndTitlesShowInvisibleCharacters(t *testing.T) {
	const path, title = "te\u200bsts/\u202ea.go", "Key in\u202e code"
	var s shown
	s.Details.Title, s.Details.Location.FilePath, s.Details.Location.LineNumber = title, path, 7
	s.Repo.Name, s.Project.Name, s.texts = "shop\u202e", path, new(ui.Texts)
	s.Similar = similar{Others: 1, Rows: []row{{Repo: "shop\u202e"}}}
	chips := newView(url.Values{"file": {path}}).chips()
	harness.Same(t, "chip", `te\u200bsts/\u202ea.go`, chips[0].Value)
	parts := map[string]templ.Component{"row": item(&row{Standing: s.now()}, true), "page": findingPage(s)}
	for part, shows := range parts {
		text := pagetest.Text(t, shows)
		if strings.ContainsAny(text, "\u200b\u202e") || !strings.Contains(text, `te\u200bsts/\u202ea.go:7<`) ||
			!strings.Contains(text, `>Key in\u202e code</`) {
			t.Errorf("the %s shows\n%s", part, text)
		}
		link := url.Values{"file": {path}}.Encode()
		harness.Same(t, part+" has a link with "+link, part == "page", strings.Contains(text, link))
	}
}

func TestCodeShowsCharactersThatReverseIt(t *testing.T) {
	const reversed = "if admin\u202e \u2066// check\u2069 \u2066{ \u200f\u200b\ufeff\ufe0f\u3164\x1b\U000e0101\u2028\u2029"
	for _, path := range []string{"a.go", "unknown"} {
		text, _ := textOf(highlighted(path, reversed))
		harness.Same(t, path, `if admin\u202e \u2066// check\u2069 \u2066{ \u200f\u200b\ufeff\ufe0f\u3164\u001b\U000e0101\u2028\u2029`, strings.TrimSpace(html.UnescapeString(text)))
	}
	if text, _ := textOf(highlighted("a.go", "\"ن\u200cه\"")); !strings.Contains(text, "\u200c") {
		t.Errorf("letters are no longer joined as their script needs it: %q", text)
	}
}

// endless is a lexer that never ends.
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

// A filter of the REST API that the console does not know has no facet, and is refused in an address.
func TestTheConsoleHasEveryFilter(t *testing.T) {
	for _, filter := range reflect.VisibleFields(reflect.TypeFor[client.TriageOperationFilters]()) {
		if name, _, _ := strings.Cut(filter.Tag.Get("json"), ","); !IsFilter(name) {
			t.Errorf("the list of findings has no filter %s: add it to faceted, or without a facet to filters, in query.go", name)
		}
	}
}

func TestAViewsLinksHoldItAndNothingElse(t *testing.T) {
	v := newView(url.Values{"severity": {"high"}, "text": {" "}, "updated_since": {"1970-01-01T00:00:00-05:00"}, "created_until": {"9999-12-31T00:00:00+14:00"}, "tool": {""}, "cursor": {"x"}, "facet": {"rule"}, "sort": {"created_at"}, "made": {"up"}})
	harness.Same(t, "with another filter", "/console/findings?severity=high&sort=created_at&tool=gosec", v.with("tool", "gosec"))
	harness.Same(t, "without any", listPath, v.with("severity", "", "sort", ""))
	harness.Same(t, "its export", "/console/export?format=csv&organization=acme&severity=high&sort=created_at", v.export("csv", "acme"))
	grouped := newView(url.Values{"severity": {"high"}, "group": {"rule"}})
	harness.Same(t, "the export of a grouped view, which the API would refuse with a group", "/console/export?format=csv&organization=acme&severity=high", grouped.export("csv", "acme"))
	bar := pagetest.Text(t, selectionBar(listing{view: grouped}))
	harness.Same(t, "its rule keeps its filters", true, strings.Contains(bar, `formaction="/console/policies/_new?severity=high"`))
}

func TestARelativeTimeStaysSoInTheAddressAndIsATimeElsewhere(t *testing.T) {
	v := newView(url.Values{"created_since": {"7d"}, "updated_until": {"1d"}, "sort": {"created_at"}})
	v.now = time.Date(2026, 3, 8, 10, 30, 0, 0, time.FixedZone("", 3600))
	const since, until = "2026-03-01T09%3A00%3A00Z", "2026-03-07T09%3A00%3A00Z"
	for what, c := range map[string]struct{ got, want string }{
		"the view":            {v.with("tool", "gosec"), "/console/findings?created_since=7d&sort=created_at&tool=gosec&updated_until=1d"},
		"what is asked for":   {v.filters().Encode(), "created_since=" + since + "&updated_until=" + until},
		"rows after a cursor": {v.next("x"), "/console/findings?created_since=" + since + "&cursor=x&sort=created_at&updated_until=" + until},
		"the export": {v.export("csv", "acme"),
			"/console/export?created_since=" + since + "&format=csv&organization=acme&sort=created_at&updated_until=" + until},
		"an absolute time": {newView(url.Values{"created_since": {"2026-03-01T00:00:00Z"}}).filters().Get("created_since"), "2026-03-01T00:00:00Z"},
		"nonsense":         {newView(url.Values{"created_since": {"0d"}}).filters().Get("created_since"), "0d"},
		"no time":          {newView(url.Values{"rule": {"7d"}}).filters().Get("rule"), "7d"},
	} {
		harness.Same(t, what, c.want, c.got)
	}
	for value, refused := range map[string]bool{
		"7": true, "0d": true, "2026-03-01": true, "7d": false, "": false, "2026-03-01t08:30:60z": false, // that is for the REST API
	} {
		err := check(url.Values{"created_since": {value}})
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "such as 7d") {
			t.Errorf("%q: %v", value, err)
		}
	}
	chips := v.chips()
	if len(chips) != 2 || chips[0].Value != "last 7 days" || chips[0].Bound != "since" || chips[1].Value != "1 day ago" || chips[1].Label != "Changed before" || chips[1].Bound != "before" ||
		!chips[0].At.Equal(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)) {
		t.Errorf("the chips are %+v", chips)
	}
	facets := facetsOf(client.FindingCounts{Fields: []client.FieldCounts{{Field: "created_since", Distinct: 2, Values: []client.ValueCount{
		{Value: "2026-02-06T09:00:00Z", Count: 3}, {Value: "2026-03-01T09:00:00Z", Count: 2}}}}}, v, "")
	if values := facets[0].Values; len(values) != 2 || values[0].Word != "last 30 days" || !strings.Contains(values[0].Toggle, "created_since=30d") ||
		!values[1].Chosen || values[1].Word != "last 7 days" {
		t.Errorf("the facet has %+v", facets[0].Values)
	}
}

func TestATimeIsNamedByItsDayOnlyIfTheDayBeginsWithIt(t *testing.T) {
	for value, want := range map[string]string{
		"2026-03-01T00:00:00Z":      "2026-03-01",
		"2026-03-01t01:00:00+01:00": "2026-03-01",
		"2026-03-01T23:00:00Z":      "2026-03-01 23:00 UTC",
		"2026-03-01T23:00:00-05:00": "2026-03-02 04:00 UTC",
		"2026-03-01T00:00:05Z":      "2026-03-01 00:00:05 UTC",
		"2026-03-01T08:30:60Z":      "2026-03-01T08:30:60Z",
	} {
		_, got := Asked("created_until", value)
		harness.Same(t, value, want, got)
	}
}

func TestAGroupTellsItsSeveritiesWhereTheyAreKnown(t *testing.T) {
	counts := func(distinct int32, values ...client.ValueCount) client.FieldCounts {
		return client.FieldCounts{Field: "rule", Distinct: distinct, Values: values}
	}
	of := newView(url.Values{"group": {"rule"}, "tool": {"gosec"}, "created_since": {"7d"}})
	g := groupsOf(counts(2, client.ValueCount{Value: "G1", Count: 6}, client.ValueCount{Value: "G2", Count: 3}), 9, of, filterNamed("rule"))
	high, medium := counts(1, client.ValueCount{Value: "G1", Count: 2}), counts(3, client.ValueCount{Value: "G1", Count: 1})
	g.addSeverities(high, medium)
	if got := g.Groups[0].Severities; len(got) != 3 || got[0] != (severityCount{"high", 2}) || got[2] != (severityCount{"low", 3}) {
		t.Errorf("the first group has %v", got)
	}
	if got := g.Groups[1].Severities; got != nil {
		t.Errorf("of the second, whose medium ones were not told, there is %v", got)
	}
	harness.Same(t, "its form", "/console/findings?all=true&created_since=7d&rule=G1&tool=gosec", g.Groups[0].All)
	if got := g.Groups[0].Rule; !strings.HasPrefix(got, "/console/policies/_new?created_since=20") || !strings.HasSuffix(got, "&rule=G1&tool=gosec") {
		t.Errorf("its rule is at %s", got)
	}
}

func TestAChosenValueStaysInItsFacet(t *testing.T) {
	counts := client.FindingCounts{Fields: []client.FieldCounts{
		{Field: "tool", Distinct: 9, Values: []client.ValueCount{{Value: "gosec", Count: 3}}},
		{Field: "stale", Distinct: 1, Values: []client.ValueCount{{Value: "false", Count: 3}}},
	}}
	facets := facetsOf(counts, newView(url.Values{"tool": {"semgrep"}}), "")
	if len(facets) != 1 || len(facets[0].Values) != 2 || !facets[0].Values[1].Chosen || facets[0].Values[1].Toggle != listPath || facets[0].Hidden != 8 {
		t.Errorf("%+v", facets)
	}
}

// Back may lead to the address of a page after the first: rows alone would take the place of the filters too.
func TestAModuleGetsTheWholeListUnlessItAsksForRows(t *testing.T) {
	service := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	for part, whole := range map[string]bool{"": true, "rows": false} {
		v := &page.Visit{API: api.New(service, "", ""), Scripted: true, Query: url.Values{"cursor": {"x"}}}
		if part != "" {
			v.Query.Set("part", part)
		}
		_, shown := pagetest.Show(t, list, v)
		harness.Same(t, part+" has the tools", whole, strings.Contains(shown, `class="tools"`))
	}
}

func TestAFindingSaysWhoDecided(t *testing.T) {
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const comment = "Not on the web."
	for reason, c := range map[string]struct {
		want string
		client.FindingFull
	}{
		"nobody":    {"Undecided: no person has decided.", client.FindingFull{UserStatus: "open"}},
		"withdrawn": {"Undecided: decision or comment last changed by ada", client.FindingFull{UserStatus: "open", DecidedBy: "ada"}},
		"withdrawn, perhaps with the comment of another person": {"Undecided: decision or comment last changed by ada " + comment,
			client.FindingFull{UserStatus: "open", DecidedBy: "ada", Comments: comment}},
		"ended": {"Undecided: decision ended 2026-03-01 12:00:00 UTC (last changed by ada) " + comment,
			client.FindingFull{UserStatus: "open", DecidedBy: "ada", Comments: comment, ExpiresAt: &end}},
		"ended, by nobody known": {"Undecided: decision ended 2026-03-01 12:00:00 UTC", client.FindingFull{UserStatus: "open", ExpiresAt: &end}},
		"in force": {"Muted by ada Until 2026-03-01 12:00:00 UTC " + comment,
			client.FindingFull{UserStatus: "muted", DecidedBy: "ada", Comments: comment, ExpiresAt: &end}},
	} {
		decided := pagetest.Text(t, decisionOfFinding(shown{FindingFull: c.FindingFull}))
		text, _ := textOf(strings.ReplaceAll(decided, "</p>", " "))
		got, _, _ := strings.Cut(strings.TrimPrefix(strings.Join(strings.Fields(text), " "), "Decision"), " Your API key")
		harness.Same(t, reason, c.want, got)
	}
}

func TestAFindingIsShownWithoutItsDeliveries(t *testing.T) {
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/webhook-deliveries" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write([]byte(`{"code":"stale","detail":"data is stale"}`))
	})
	v := &page.Visit{API: api.New(service, "", ""), Path: func(string) string { return "f-1" }}
	for scope, told := range map[string]bool{"webhooks:read": true, "findings:read": false} {
		v.Who.Scopes = []string{scope}
		_, shown := pagetest.Show(t, show, v)
		harness.Same(t, scope, told, strings.Contains(shown, "The webhook deliveries are currently unavailable"))
	}
}

// As if none had been sent before these.
func TestAFindingWithMoreDeliveriesLeadsToAllOfThem(t *testing.T) {
	for more, answer := range map[bool]string{true: `{"id":"f-1","has_more":true}`, false: `{"id":"f-1"}`} {
		service := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })
		v := &page.Visit{API: api.New(service, "", ""), Path: func(string) string { return "f-1" }}
		v.Who.Scopes = []string{"webhooks:read"}
		_, shown := pagetest.Show(t, show, v)
		harness.Same(t, answer, more, strings.Contains(shown, `<a href="/console/deliveries?subject_id=f-1">All deliveries</a>`))
	}
}

func TestAnAuthorThatHasAPageIsLinked(t *testing.T) {
	for by, want := range map[string]string{
		"operation/op-1": "/console/operations/op-1", "policy/mute-x": "/console/policies/mute-x",
		"apikey/ada": "", "scanner/gosec": "", "": "", "operation": "",
	} {
		harness.Same(t, "page of "+by, want, pageOf(by))
	}
}

// Somebody else may have made the operation.
func TestTheAuthorOfAnOperationsDecisionHasCommittedIt(t *testing.T) {
	for kind, want := range map[string]string{"triaged": ">committed by bob<", "judged": ">of bob<"} {
		shown := pagetest.Text(t, changed(client.Transition{Type: kind, By: "operation/mute", Author: "bob"}))
		harness.Same(t, kind+": "+shown, true, strings.Contains(shown, want))
	}
}

// Otherwise another end would look like the same decision again.
func TestTheHistoryShowsTheEndOfADecision(t *testing.T) {
	end := time.Date(2099, 5, 4, 23, 59, 59, 0, time.UTC)
	for kind, want := range map[string]string{"triaged": "until 2099-05-04 23:59:59 UTC", "expired": "ended 2099-05-04 23:59:59 UTC"} {
		text, _ := textOf(pagetest.Text(t, changed(client.Transition{Type: kind, From: "muted", To: "muted", ExpiresAt: &end})))
		harness.Contains(t, kind, strings.Join(strings.Fields(text), " "), want)
	}
}

func TestAVerdictShowsItsCommentAndLeadsToItsReviewIssue(t *testing.T) {
	const finding = `{"verdict":{"user_status":"muted","review_issue":"i-1","comment":"Behind the VPN."}}`
	for reason, c := range map[string]struct {
		scope  string
		status int
		issue  string
		linked bool
	}{
		"its review":                     {"reviews:read", http.StatusOK, `{"review_id":"r-1"}`, true},
		"a key that may read no reviews": {"findings:read", http.StatusOK, `{"review_id":"r-1"}`, false},
		"an issue that is gone":          {"reviews:read", http.StatusNotFound, "{}", false},
		"old data":                       {"reviews:read", http.StatusInternalServerError, `{"code":"stale"}`, false},
	} {
		service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/full-issues/i-1" {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.issue))
				return
			}
			_, _ = w.Write([]byte(finding))
		})
		v := &page.Visit{API: api.New(service, "", ""), Path: func(string) string { return "f-1" }}
		v.Who.Scopes = []string{c.scope}
		_, shown := pagetest.Show(t, show, v)
		harness.Contains(t, reason, shown, "<blockquote>Behind the VPN.</blockquote>", "i-1")
		harness.Same(t, reason+" is linked", c.linked, strings.Contains(shown, `<a href="/console/reviews/r-1#issue-i-1">i-1</a>`))
	}
}

// One count per organization is answered at a time, and few more may wait.
func TestGroupsAskForOneCountAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var underWay atomic.Int32
		answer := make(chan struct{})
		v := &page.Visit{API: api.New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			underWay.Add(1)
			<-answer
			_, _ = w.Write([]byte("{}"))
		}), "", "")}
		l := listing{view: newView(url.Values{})}
		go func() { _ = l.describeGroups(t.Context(), v, filterNamed("owner")) }()
		synctest.Wait()
		harness.Same(t, "counts under way", int32(1), underWay.Load())
		close(answer)
		synctest.Wait()
		harness.Same(t, "counts in all", int32(2), underWay.Load())
	})
}
