package reviews

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/pagetest"
)

// The REST API excludes the end, so the whole last day is included.
func TestDaysAreAskedForAsTimes(t *testing.T) {
	view := url.Values{"start_time": {"2026-03-01"}, "end_time": {"2026-03-31"}, "status": {"open"}}
	want := "end_time=2026-04-01T00%3A00%3A00Z&start_time=2026-03-01T00%3A00%3A00Z&status=open"
	harness.Same(t, "asked for", want, asked(view).Encode())
	harness.Same(t, "end in the view of the page", "2026-03-31", view.Get("end_time"))
	exact := url.Values{"start_time": {"2026-03-01T12:00:00Z"}}
	harness.Same(t, "a time", exact.Get("start_time"), asked(exact).Get("start_time"))
}

func TestCommitsAreBesideEachOther(t *testing.T) {
	issue := client.ReviewIssueFull{CommitSha: "5d41", CommitLink: "https://git.example.com/shop/commit/5d41"}
	for _, tc := range []struct {
		reason string
		issue  client.ReviewIssueFull
		want   string
	}{
		{"another commit", issue, "https://git.example.com/shop/commit/7d79"},
		{"a link of another form", client.ReviewIssueFull{CommitSha: "5d41", CommitLink: "https://git.example.com/5d41?x"}, ""},
		{"no link", client.ReviewIssueFull{CommitSha: "5d41"}, ""},
		{"no commit", client.ReviewIssueFull{CommitLink: "https://git.example.com/"}, ""},
	} {
		harness.Same(t, tc.reason, tc.want, commitLink(tc.issue, "7d79"))
	}
}

// A decision about an issue that has become critical is refused: the page shows why.
func TestAnIssueShowsHowItIsRated(t *testing.T) {
	for want, i := range map[string]client.ReviewIssueFull{
		"high score 9.8 rated CRITICAL by the tool": {Severity: client.SeverityHigh, Score: new(float32(9.8)), ToolSeverity: "CRITICAL"},
		"low score 0.0": {Severity: client.SeverityLow, Score: new(float32(0))},
		"medium":        {Severity: client.SeverityMedium},
	} {
		i.UserStatus = "open"
		text := pagetest.Text(t, issue(shown{texts: new(ui.Texts)}, i))
		text = regexp.MustCompile("<[^>]*>").ReplaceAllString(text, " ")
		harness.Same(t, "the rating", want, strings.Join(strings.Fields(text), " "))
	}
}

func TestAnIssueSaysWhoDecided(t *testing.T) {
	muted := client.UserStatus("muted")
	for want, issue := range map[string]client.ReviewIssueFull{
		"":                        {UserStatus: "open"},
		"muted by apikey/ada":     {UserStatus: "muted", DecidedBy: "apikey/ada", Verdict: client.FindingVerdict{UserStatus: &muted, Policy: "tests"}},
		"confirmed by apikey/ada": {UserStatus: "active", DecidedBy: "apikey/ada"},
		"muted by policy tests":   {UserStatus: "open", Verdict: client.FindingVerdict{UserStatus: &muted, Policy: "tests"}},
	} {
		harness.Same(t, "who decided", want, decisionWords(issue))
	}
	end, reason := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), client.DecisionReason("duplicate")
	policy := client.FindingVerdict{UserStatus: &muted, Policy: "tests", Reason: &reason, Comment: "Known."}
	for want, issue := range map[string]client.ReviewIssueFull{
		"duplicate Known.": {UserStatus: "open", Verdict: policy},
		"duplicate Known. a person's decision ended 2026-03-01 12:00:00 UTC (last changed by ada) Fix it.": {UserStatus: "open", ExpiresAt: &end, Comments: "Fix it.", DecidedBy: "ada", Verdict: policy},
		"duplicate Known. a person's decision or comment last changed by ada Fix it.":                      {UserStatus: "open", Comments: "Fix it.", DecidedBy: "ada", Verdict: policy},
		"a person's decision ended 2026-03-01 12:00:00 UTC":                                                {UserStatus: "open", ExpiresAt: &end},
		"until 2026-03-01 12:00:00 UTC Fix it.":                                                            {UserStatus: "active", ExpiresAt: &end, Comments: "Fix it.", DecidedBy: "ada"},
		"duplicate":                                                                                        {UserStatus: "muted", Reason: &reason, DecidedBy: "ada"},
	} {
		text := pagetest.Text(t, grounds(issue))
		text = html.UnescapeString(regexp.MustCompile("<[^>]*>").ReplaceAllString(text, " "))
		harness.Same(t, "the grounds", want, strings.Join(strings.Fields(text), " "))
	}
}

func TestAPullRequestIsLinkedWhereItsPageIsKnown(t *testing.T) {
	for _, c := range []struct{ repository, provider, want string }{
		{"https://github.com/acme/shop", "github", "https://github.com/acme/shop/pull/7"},
		{"https://github.com/acme/shop/", "GitHub", "https://github.com/acme/shop/pull/7"},
		{"https://gitlab.com/acme/shop.git/", "gitlab", "https://gitlab.com/acme/shop/-/merge_requests/7"},
		{"http://git.example.com/a/b", "gitlab", "http://git.example.com/a/b/-/merge_requests/7"},
		{"https://git.example.com/a/b", "other", ""},
		{"javascript:alert(1)", "github", ""},
		{"javascript://github.com/%0aalert(1)", "github", ""},
		{"", "github", ""},
	} {
		harness.Same(t, c.repository+" of "+c.provider, c.want, linkOf(c.repository, c.provider, 7))
	}
}

// Projects, on which repositories depend, may be too old for the service although reviews are not.
func TestAReviewIsShownWithoutALinkThatCannotBeMade(t *testing.T) {
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v2/repos/") {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"code":"stale"}`))
			return
		}
		_, _ = w.Write([]byte(`{"repo_id":"shop","open_issue_count":1,"items":[{"id":"i-1","title":"Weak hash"}]}`))
	})
	v := &page.Visit{API: api.New(service, "", ""), Path: func(string) string { return "rv-1" }}
	v.Who.Scopes = []string{"repos:read"}
	_, text := pagetest.Show(t, show, v)
	harness.Same(t, "the issue is shown", true, strings.Contains(text, "Weak hash"))
}

func TestAScanThatChangesAnIssueChangesWhatWasSeen(t *testing.T) {
	before := client.ReviewIssueFull{Severity: client.SeverityHigh, PackageVersion: "1.0", Score: new(float32(7.5)), ToolSeverity: "HIGH"}
	for reason, after := range map[string]client.ReviewIssueFull{
		"another severity":              {Severity: client.SeverityLow, PackageVersion: "1.0"},
		"another version":               {Severity: client.SeverityHigh, PackageVersion: "1.1"},
		"a critical score":              {Severity: client.SeverityHigh, PackageVersion: "1.0", Score: new(float32(9.8))},
		"a critical rating by the tool": {Severity: client.SeverityHigh, PackageVersion: "1.0", ToolSeverity: "Critical"},
	} {
		if now(before).Seen() == now(after).Seen() {
			t.Errorf("%s is not told", reason)
		}
	}
	before = client.ReviewIssueFull{Title: "eval", Description: "Do not.", FilePath: "a.js", LineNumber: 10}
	for reason, change := range map[string]func(*client.ReviewIssueFull){
		"another title":       func(i *client.ReviewIssueFull) { i.Title = "exec" },
		"another description": func(i *client.ReviewIssueFull) { i.Description = "Never." },
		"another file":        func(i *client.ReviewIssueFull) { i.FilePath = "b.js" },
		"another line":        func(i *client.ReviewIssueFull) { i.LineNumber = 200 },
	} {
		after := before
		change(&after)
		if now(before).Seen() == now(after).Seen() {
			t.Errorf("%s is not told", reason)
		}
	}
}

func TestADecisionIsStoredOnlyIfTheIssueIsAsShown(t *testing.T) {
	seen := client.ReviewIssueFull{UserStatus: "open", Severity: client.SeverityHigh, PackageVersion: "1.0", Score: new(float32(7.5))}
	scanned, decided := seen, seen
	scanned.Score = new(float32(9.8))
	decided.UserStatus, decided.DecidedBy = "active", "apikey/bob"
	for _, c := range []struct {
		reason string
		now    client.ReviewIssueFull
		status int
		writes []string
	}{
		{"nothing has changed", seen, http.StatusSeeOther, []string{"PATCH /v2/issues/i-1"}},
		{"a scan has changed the score", scanned, http.StatusConflict, nil},
		{"somebody else has decided", decided, http.StatusConflict, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			var writes []string
			service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet {
					writes = append(writes, r.Method+" "+r.URL.Path)
				}
				_ = json.NewEncoder(w).Encode(c.now)
			})
			v := &page.Visit{API: api.New(service, "", ""), Path: func(string) string { return "i-1" },
				Form: url.Values{"user_status": {"muted"}, "seen": {now(seen).Seen()}}}
			response, err := decide(t.Context(), v)
			harness.Must(t, err)
			harness.Same(t, c.reason, c.status, response.Status)
			harness.Same(t, c.reason+": writes", c.writes, writes)
		})
	}
}

func TestARefusedDecisionIsToldWhereverTheIssueIs(t *testing.T) {
	reviewed := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	with := func(ids ...string) (list client.ReviewIssueFullList) {
		for _, id := range ids {
			list.Items = append(list.Items, client.ReviewIssueFull{Id: id})
		}
		return list
	}
	for _, tc := range []struct {
		reason         string
		open, resolved client.ReviewIssueFullList
	}{
		{"among the open ones", with("i-1", "i-2"), with()},
		{"resolved meanwhile", with("i-2"), with("i-1")},
		{"on another page", with("i-2"), with("i-3")},
	} {
		s := shown{Conflict: "Ada was faster.", Conflicted: "i-1", open: tc.open, resolved: tc.resolved, texts: new(ui.Texts)}
		s.Sent, s.canDecide = url.Values{"comments": {"Typed."}}, true
		s.LastReviewAt = &reviewed
		text := pagetest.Text(t, reviewPage(s))
		harness.Same(t, tc.reason+": times that it is told", 1, strings.Count(text, "Ada was faster."))
		harness.Same(t, tc.reason+": times that what was typed is there", 1, strings.Count(text, "Typed.</"))
	}
}

// Without JavaScript, the browser's Back would lead to an empty form.
func TestARefusedFormKeepsWhatWasTyped(t *testing.T) {
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"detail":"reason is required to mute","field":"reason"}`))
			return
		}
		_, _ = w.Write([]byte(`{"user_status":"open","open_issue_count":1,"items":[{"id":"i-1"}]}`))
	})
	v := &page.Visit{API: api.New(service, "", ""), Path: func(name string) string { return map[string]string{"id": "rv-1", "issue": "i-1"}[name] },
		Form: url.Values{"user_status": {"muted"}, "comments": {"Typed."}}}
	v.Who.Scopes = []string{"findings:triage"}
	response, shown := pagetest.Show(t, decide, v)
	harness.Same(t, "status", http.StatusBadRequest, response.Status)
	harness.Contains(t, "the page", shown, "The reason is required to mute. Nothing was changed", ">\nTyped.</textarea>", `name="filled.comments"`)
}

func TestAReviewPageShowsWhichIssuesThereAre(t *testing.T) {
	reviewed := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	const unreviewed, none, filtered, title = "Not reviewed yet", "it has none.", "None of this severity.", "Weak hash"
	one := client.ReviewIssueFullList{Items: []client.ReviewIssueFull{{Id: "i-1", Title: title}}}
	for _, tc := range []struct {
		reason     string
		reviewedAt *time.Time
		count      int32
		severity   string
		open       client.ReviewIssueFullList
		want       []string
	}{
		{"no commit was reviewed", nil, 0, "", client.ReviewIssueFullList{}, []string{unreviewed}},
		{"the first review was cut off", nil, 1, "", one, []string{title}},
		{"nothing was found", &reviewed, 0, "", client.ReviewIssueFullList{}, []string{none}},
		{"the filter hides all", &reviewed, 1, "high", client.ReviewIssueFullList{}, []string{filtered}},
	} {
		s := shown{open: tc.open, view: url.Values{"severity": {tc.severity}}, texts: new(ui.Texts)}
		s.LastReviewAt, s.OpenIssueCount = tc.reviewedAt, tc.count
		s.RepoName, s.PrAuthor, s.open.Items = "shop\u202e", "eve\u202e", slices.Clone(tc.open.Items)
		for i := range s.open.Items {
			s.open.Items[i].PackageVersion = "1.0\u202e"
		}
		out := pagetest.Text(t, reviewPage(s))
		harness.Same(t, tc.reason+": invisible characters", false, strings.Contains(out, "\u202e"))
		var got []string
		for _, text := range []string{unreviewed, none, filtered, title} {
			if strings.Contains(out, text) {
				got = append(got, text)
			}
		}
		harness.Same(t, tc.reason, tc.want, got)
	}
}

func TestAnIssueHasEveryFactOfADecision(t *testing.T) {
	answer := harness.RepositoryFile(t, "apiserver", "render", "testdata", "reviewissuefull.full.json")
	whole := harness.Decoded[client.ReviewIssueFull](t, []byte(answer))
	harness.Filled(t, "apiserver/console/reviews/decide.go", now(whole).Facts, "Code", "Stale")
}
