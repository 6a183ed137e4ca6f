package conformance

import (
	"net/url"
	"slices"
	"testing"
)

func TestReviews_EveryMemberShowsItsFact(t *testing.T) {
	o := sampleOrganization(t)
	got := o.listed("/v1/reviews", "rv-open")
	want := record{
		"id": "rv-open", "provider": "github", "repo_id": "full", "repo_name": "full", "repo_owner": "acme",
		"pr_number": 101.0, "pr_title": "Zip the downloads", "pr_author": "mallory", "pr_status": "open",
		"open_issue_count": 3.0, "closed_issue_count": 1.0, "open_high_count": 1.0, "open_medium_count": 2.0, "open_low_count": 0.0,
		"last_review_at": shownTime(secondReviewAt),
	}
	wantsFacts(t, "the review", want, got, "created_at", "updated_at")
}

func TestReviews_AbsentValuesAreNullOrEmpty(t *testing.T) {
	o := sampleOrganization(t)
	got := o.listed("/v1/reviews", "rv-bare")
	want := record{
		"id": "rv-bare", "provider": "", "repo_id": "bare", "repo_name": "bare", "repo_owner": "",
		"pr_number": 20.0, "pr_title": "", "pr_author": "", "pr_status": "open",
		"open_issue_count": 0.0, "closed_issue_count": 0.0, "open_high_count": 0.0, "open_medium_count": 0.0, "open_low_count": 0.0,
		"last_review_at": nil,
	}
	wantsFacts(t, "the review", want, got, "created_at", "updated_at")
}

func TestReviews_FiltersLeaveOutWhatDoesNotMatch(t *testing.T) {
	o := sampleOrganization(t)
	for query, want := range map[string][]string{
		"status=open":                           {"rv-bare", "rv-open"},
		"status=closed":                         {"rv-closed"},
		"status=merged":                         {"rv-merged"},
		"custom=open_with_issues":               {"rv-open"},
		"custom=merged_with_issues":             {"rv-merged"},
		"custom=not_reviewed":                   {"rv-bare"},
		"custom=reviewed":                       {"rv-closed", "rv-merged", "rv-open"},
		"status=open&custom=reviewed":           {"rv-open"},
		"status=closed&custom=reviewed":         {"rv-closed"},
		"status=merged&custom=not_reviewed":     {},
		"status=merged&custom=open_with_issues": {},
	} {
		o.wantsIDs("/v1/reviews?"+query, want...)
	}
}

func TestReviews_StartTimeIsIncludedAndEndTimeExcluded(t *testing.T) {
	o := apartOrganization(t)
	all := o.walk("/v1/reviews?sort=updated_at&order=asc")
	first, last := all[0].text("updated_at"), all[len(all)-1].text("updated_at")
	if first == last {
		t.Fatalf("all were updated at %s, so the test proves nothing", first)
	}
	in := func(from, to string) []string {
		var ids []string
		for _, item := range all {
			if at := item.text("updated_at"); (from == "" || at >= from) && (to == "" || at < to) {
				ids = append(ids, item.text("id"))
			}
		}
		slices.Sort(ids)
		return ids
	}
	for _, test := range []struct{ from, to string }{
		{first, ""}, {last, ""}, {"", first}, {"", last}, {first, last},
		{last, last}, // an empty span
	} {
		query := url.Values{}
		if test.from != "" {
			query.Set("start_time", test.from)
		}
		if test.to != "" {
			query.Set("end_time", test.to)
		}
		for _, sort := range []string{"updated_at", "pr_number"} {
			query.Set("sort", sort)
			o.wantsIDs("/v1/reviews?"+query.Encode(), in(test.from, test.to)...)
		}
		for _, filter := range []string{"status=open", "custom=not_reviewed"} { // as all of them are
			o.wantsIDs(with("/v1/reviews?"+query.Encode(), filter), in(test.from, test.to)...)
		}
		for _, filter := range []string{"status=closed", "custom=reviewed"} {
			o.wantsIDs(with("/v1/reviews?"+query.Encode(), filter))
		}
	}
}

func TestReviews_TimesHaveOneGrammar(t *testing.T) {
	c := anyKey(t)
	for _, at := range []string{
		"2026-03-01t00:00:00z", "2026-03-01T00:00:00.5Z", "2026-03-01T00:00:00+23:59", "2026-03-01T00:00:00-23:59", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
	} {
		c.get("/v1/reviews?start_time="+url.QueryEscape(at)).wants(200, at)
		c.get("/v1/reviews?end_time="+url.QueryEscape(at)).wants(200, at)
	}
	for _, at := range []string{
		"2026-03-01T0:00:00Z", "2026-03-01T00:00:00,5Z", "2026-03-01T00:00:00+24:00", "2026-03-01T00:00:00+00:60", "2026-03-01 00:00:00Z", "2026-03-01T00:00:00.Z",
		"2026-03-01T00:00:00", "2016-12-31T23:59:60Z", "0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
	} {
		c.get("/v1/reviews?start_time=" + url.QueryEscape(at)).badQuery(at)
		c.get("/v1/reviews?end_time=" + url.QueryEscape(at)).badQuery(at)
	}
}

func TestReviews_UnknownFilterValuesAreRefused(t *testing.T) {
	c := anyKey(t)
	for _, query := range []string{
		"status=draft", "status=OPEN", "custom=all", "custom=reviewed&custom=not_reviewed",
		"start_time=yesterday", "start_time=2026-03-01", "end_time=2026-03-01T00:00:00", "end_time=1767225600",
		"start_time=2026-02-30T00:00:00Z", "start_time=2026-03-01T00:00:00+02:00", "end_time=2026-03-01T25:00:00Z",
	} {
		c.get("/v1/reviews?" + query).badQuery(query)
	}
}
