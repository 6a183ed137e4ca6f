package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
)

// review makes one with that many open issues and a status as its controller would set it.
func (o *organization) review(name string, number int32, status v1alpha1.PullRequestStatus, open int32, reviewed bool, updated time.Time) {
	o.t.Helper()
	b := builder.Review(name).In(o.namespace).PullRequest("repo", number).Status(status).Mutate(func(r *v1alpha1.Review) {
		r.Spec.PRTitle, r.Spec.PRAuthor = "title of "+name, "author"
	})
	if reviewed {
		b = b.Reviewed("c0ffee", updated)
	}
	review := b.Build()
	o.create(review)
	review.Status.ObservedGeneration = review.Generation
	review.Status.UpdatedAt = &v1alpha1.Time{Time: updated}
	if reviewed {
		review.Status.LastReviewAt = &v1alpha1.Time{Time: updated}
	}
	if err := controller.Status().Update(o.t.Context(), review); err != nil {
		o.t.Fatal(err)
	}
	for i := range open {
		o.create(builder.ReviewIssue(fmt.Sprintf("%s-%d", name, i)).In(o.namespace).Review(name).Severity(v1alpha1.LevelHigh).SeenIn("c0ffee").Build())
	}
}

// reviewStart lies ahead: the facade has shown a review as changed at its creation before it
// hears of the status, and goes back to no earlier time.
var reviewStart = time.Now().UTC().Truncate(time.Hour).Add(24 * time.Hour)

// reviews makes one for each question that a list is asked.
func (o *organization) reviews(c *caller) {
	o.t.Helper()
	o.review("r-open-bad", 10, v1alpha1.PullRequestOpen, 2, true, reviewStart)
	o.review("r-open-good", 9, v1alpha1.PullRequestOpen, 0, true, reviewStart.Add(time.Hour))
	o.review("r-open-new", 100, v1alpha1.PullRequestOpen, 0, false, reviewStart.Add(2*time.Hour))
	o.review("r-merged-bad", 2, v1alpha1.PullRequestMerged, 10, true, reviewStart.Add(3*time.Hour))
	o.review("r-closed", 3, v1alpha1.PullRequestClosed, 0, true, reviewStart.Add(4*time.Hour))
	o.lists(c, "/v1/reviews", 5)
	o.eventually(func(g Gomega) {
		g.Expect(names(c.get("/v1/reviews?sort=open_issue_count"))[0]).To(Equal("r-merged-bad"))
		g.Expect(names(c.get("/v1/reviews"))[0]).To(Equal("r-closed"))
	})
}

func TestReviewsAreFilteredSortedAndPaged(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.reviews(c)
	at := func(hours int) string {
		return url.QueryEscape(reviewStart.Add(time.Duration(hours) * time.Hour).Format(time.RFC3339))
	}
	for _, test := range []struct{ reason, query, want string }{
		{"the newest first by default", "", "r-closed r-merged-bad r-open-new r-open-good r-open-bad"},
		{"numbers sort as numbers", "sort=pr_number&order=asc", "r-merged-bad r-closed r-open-good r-open-bad r-open-new"},
		{"counts sort as numbers", "sort=open_issue_count&size=2", "r-merged-bad r-open-bad"},
		{"titles sort bytewise", "sort=pr_title&order=asc&size=2", "r-closed r-merged-bad"},
		{"one value: by id in the order asked for", "sort=pr_author&order=asc&size=2", "r-closed r-merged-bad"},
		{"one value: by id, backwards", "sort=repo_name&order=desc&size=2", "r-open-new r-open-good"},
		{"statuses sort bytewise", "sort=pr_status&order=asc&size=1", "r-closed"},
		{"the status", "status=merged", "r-merged-bad"},
		{"open with issues", "custom=open_with_issues", "r-open-bad"},
		{"merged with issues", "custom=merged_with_issues", "r-merged-bad"},
		{"not reviewed", "custom=not_reviewed", "r-open-new"},
		{"reviewed", "custom=reviewed&order=asc", "r-open-bad r-open-good r-merged-bad r-closed"},
		{"both must match", "custom=reviewed&status=open", "r-open-good r-open-bad"},
		{"nothing is both", "custom=open_with_issues&status=merged", ""},
		{"the start is included", "start_time=" + at(3), "r-closed r-merged-bad"},
		{"the end is not", "end_time=" + at(1), "r-open-bad"},
		{"between two times", "start_time=" + at(1) + "&end_time=" + at(3), "r-open-new r-open-good"},
		{"an empty span", "start_time=" + at(1) + "&end_time=" + at(1), ""},
		{"another time zone", "start_time=" + url.QueryEscape(reviewStart.Add(4*time.Hour).In(time.FixedZone("", 2*60*60)).Format(time.RFC3339)), "r-closed"},
	} {
		if got := strings.Join(names(c.get("/v1/reviews?"+test.query).wants(200, test.reason)), " "); got != test.want {
			t.Errorf("%s: ?%s: got %q, want %q", test.reason, test.query, got, test.want)
		}
	}
	for reason, query := range map[string]string{
		"reversed times":    "start_time=" + at(2) + "&end_time=" + at(1),
		"no time":           "start_time=yesterday",
		"a date alone":      "start_time=2026-03-01",
		"a plus sign bare":  "start_time=2026-03-01T00:00:00+02:00",
		"an unknown sort":   "sort=created_at",
		"an unknown status": "status=draft",
		"an unknown list":   "custom=mine",
		"size 0":            "size=0",
	} {
		c.get("/v1/reviews?"+query).wantsError(400, "Invalid query parameter", reason)
	}
	var all []string
	for cursor, more := "", true; more; {
		page := decoded[listOf[shown]](c.get("/v1/reviews?sort=pr_number&size=2&cursor=" + cursor))
		all, cursor, more = append(all, idsOf(page.Items)...), page.NextCursor, page.HasMore
		if page.Total != 5 {
			t.Errorf("total is %d", page.Total)
		}
	}
	if want := names(c.get("/v1/reviews?sort=pr_number")); !slices.Equal(all, want) {
		t.Errorf("page by page %v, at once %v", all, want)
	}
	next := decoded[listOf[shown]](c.get("/v1/reviews?size=1")).NextCursor
	c.get("/v1/reviews?status=open&cursor="+next).wantsError(400, "Invalid query parameter", "a cursor with another filter")
	c.get("/v1/reviews?start_time="+at(0)+"&cursor="+next).wantsError(400, "Invalid query parameter", "a cursor with another time")
}

func TestAPageOfReviewsHoldsTenByDefault(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	for i := range int32(11) {
		o.create(builder.Review(fmt.Sprintf("r-%02d", i)).In(o.namespace).PullRequest("repo", i+1).Build())
	}
	o.lists(c, "/v1/reviews", 11)
	if got := len(names(c.get("/v1/reviews"))); got != 10 {
		t.Errorf("the page holds %d", got)
	}
}

func TestAReviewIssueIsShown(t *testing.T) {
	o, other := newOrganization(t), newOrganization(t)
	c := o.key("ci")
	o.review("r-1", 7, v1alpha1.PullRequestOpen, 0, true, reviewStart)
	issue := builder.ReviewIssue("i-1").In(o.namespace).Review("r-1").Severity(v1alpha1.LevelHigh).SeenIn("c0ffee").
		Mutate(func(i *v1alpha1.ReviewIssue) { i.Spec.File, i.Spec.Line = "a.go", 3 }).Build()
	o.create(issue)
	other.create(builder.ReviewIssue("i-theirs").In(other.namespace).Review("r-1").Build())
	o.eventually(func(g Gomega) {
		a := c.get("/v2/issues/i-1")
		g.Expect(a.status).To(Equal(200))
		shown := decoded[openapi.ReviewIssue](a)
		g.Expect(shown.ReviewId).To(Equal("r-1"))
		g.Expect(shown.PrNumber).To(Equal(int32(7)))
		g.Expect(shown.RepoOwner).To(Equal("acme"))
		g.Expect(string(shown.Status)).To(Equal("open"))
		g.Expect(shown.LineNumber).To(Equal(int32(3)))
		g.Expect(shown.SeenInCommits).To(Equal([]string{"c0ffee"}))
	})
	spec, err := apiclient.Contract()
	if err != nil {
		t.Fatal(err)
	}
	for schema, path := range map[string]string{"ReviewIssue": "/v2/issues/i-1", "ReviewList": "/v1/reviews"} {
		for _, member := range undocumented(spec.Components.Schemas[schema].Value, decoded[any](c.get(path)), path) {
			t.Errorf("%s is not documented", member)
		}
	}
	c.get("/v2/issues/none").wantsError(404, "Resource not found", "no such issue")
	c.get("/v2/issues/i-theirs").wantsError(404, "Resource not found", "another organization's")
	c.get("/v2/issues/a%0Ab").wantsError(400, "Invalid query parameter", "an id that cannot be")
}
