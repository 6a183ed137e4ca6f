package reviews

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
)

// The REST API leaves the end out: the whole last day is meant.
func TestDaysAreAskedForAsTimes(t *testing.T) {
	view := url.Values{"start_time": {"2026-03-01"}, "end_time": {"2026-03-31"}, "status": {"open"}}
	want := "end_time=2026-04-01T00%3A00%3A00Z&start_time=2026-03-01T00%3A00%3A00Z&status=open"
	if got := asked(view).Encode(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := view.Get("end_time"); got != "2026-03-31" {
		t.Errorf("the view of the page became %s", got)
	}
	exact := url.Values{"start_time": {"2026-03-01T12:00:00Z"}}
	if got := asked(exact).Get("start_time"); got != exact.Get("start_time") {
		t.Errorf("a time became %s", got)
	}
}

func TestCommitsAreBesideEachOther(t *testing.T) {
	issue := client.ReviewIssue{CommitSha: "5d41", CommitLink: "https://git.example.com/shop/commit/5d41"}
	for _, tc := range []struct {
		reason string
		issue  client.ReviewIssue
		want   string
	}{
		{"another commit", issue, "https://git.example.com/shop/commit/7d79"},
		{"a link of another form", client.ReviewIssue{CommitSha: "5d41", CommitLink: "https://git.example.com/5d41?x"}, ""},
		{"no link", client.ReviewIssue{CommitSha: "5d41"}, ""},
		{"no commit", client.ReviewIssue{CommitLink: "https://git.example.com/"}, ""},
	} {
		if got := commitLink(tc.issue, "7d79"); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// pages serves pages of the list of reviews with one review each, r-0, r-1 and so on without end, and counts them.
func pages(served *int) page.Visit {
	return page.Visit{API: api.New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		list := client.ReviewList{
			Items: []client.Review{{Id: fmt.Sprintf("r-%d", *served)}}, HasMore: true, NextCursor: "next",
		}
		*served++
		_ = json.NewEncoder(w).Encode(list)
	}), "", "")}
}

func TestAReviewIsLookedForWithinABound(t *testing.T) {
	for _, tc := range []struct {
		id     string
		found  bool
		served int
	}{{"r-0", true, 1}, {"r-2", true, 3}, {"r-3", false, 3}} {
		served := 0
		visit := pages(&served)
		review, err := find(context.Background(), &visit, tc.id)
		if err != nil || (review != nil) != tc.found || served != tc.served {
			t.Errorf("%s: %v %v after %d pages", tc.id, review, err, served)
		}
	}
}
