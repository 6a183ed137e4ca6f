package conformance

import (
	"net/url"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Reading a repository by its id and the issues of a review are additions to the contract.

func TestRepository_ByItsIDIsAsListed(t *testing.T) {
	o := sampleOrganization(t)
	for _, id := range []string{"full", "bare"} {
		got := o.get("/v2/repos/"+id).wants(200, "a repository").object()
		wantsRepository(t, got)
		harness.Same(t, id+" alone, where listed is wanted", o.listed("/v2/repos", id), got)
	}
	o.get("/v2/repos/none").notFound("no repository")
}

func TestReviewIssues_AreThoseOfTheReviewAlone(t *testing.T) {
	o := sampleOrganization(t)
	for path, want := range map[string][]string{
		"/v2/reviews/rv-open/issues":                               {"ri-medium-1", "ri-medium-2", "ri-open", "ri-resolved"},
		"/v2/reviews/rv-open/issues?status=open":                   {"ri-medium-1", "ri-medium-2", "ri-open"},
		"/v2/reviews/rv-open/issues?status=resolved":               {"ri-resolved"},
		"/v2/reviews/rv-open/issues?severity=medium":               {"ri-medium-1", "ri-medium-2"},
		"/v2/reviews/rv-open/issues?severity=medium&status=closed": nil,
		"/v2/reviews/rv-merged/issues":                             {"ri-merged"},
		"/v2/reviews/rv-bare/issues":                               {},
	} {
		if want == nil {
			o.get(path).badQuery("a status of findings")
			continue
		}
		o.wantsList(path, "/v2/issues/", want)
	}
	o.get("/v2/reviews/none/issues").notFound("no review")
}

func TestReviewIssues_PagesFollowInOrderAndAreOfTheirReview(t *testing.T) {
	o := sampleOrganization(t)
	const path = "/v2/reviews/rv-open/issues?size=1"
	for _, query := range []string{"", "&order=asc", "&sort=updated_at", "&sort=updated_at&order=asc"} {
		sort, order := "created_at", "desc"
		if strings.Contains(query, "updated_at") {
			sort = "updated_at"
		}
		if strings.Contains(query, "asc") {
			order = "asc"
		}
		items := o.walk(path + query)
		if len(items) != 4 || !sorted(items, sort, order) {
			t.Errorf("%s: %v", query, idsOf(items))
		}
	}
	cursor := "&cursor=" + url.QueryEscape(o.get(path).page().NextCursor)
	o.get(path + cursor + "&severity=medium").badQuery("another filter")
	o.get("/v2/reviews/rv-merged/issues?size=1" + cursor).badQuery("another review")
}
