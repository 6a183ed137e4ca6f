package conformance

import (
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Reading a repository by its id and the issues of a review are additions to the contract.

// listedReview is a review in every organization whose lists are read; the other two are the lists of its issues.
const (
	listedReview         = "rv-open"
	listedIssuesPath     = "/v2/reviews/" + listedReview + "/issues"
	listedFullIssuesPath = "/v2/reviews/" + listedReview + "/full-issues"
)

// listedIssues creates the review with these issues, and waits until they are listed.
func (o *organization) listedIssues(ids ...string) {
	o.t.Helper()
	o.create(builder.Review(listedReview).PullRequest("repo", 999).In(o.namespace).Build())
	issues := make([]client.Object, len(ids))
	for i, id := range ids {
		issues[i] = builder.ReviewIssue(id).Review(listedReview).In(o.namespace).Build()
	}
	theDeployment.cluster.CreateAtOnce(o.t, issues...)
	harness.Eventually(o.t, func(g Gomega) {
		a := o.get(listedIssuesPath)
		g.Expect(a.Status).To(Equal(200))
		g.Expect(a.page().Total).To(Equal(len(ids)))
	})
}

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

func TestReviewIssues_ACursorHoldsForItsFilterAndReviewAlone(t *testing.T) {
	o := sampleOrganization(t)
	const path = listedIssuesPath + "?size=1"
	cursor := "&cursor=" + url.QueryEscape(o.get(path).page().NextCursor)
	o.get(path + cursor + "&severity=medium").badQuery("another filter")
	o.get("/v2/reviews/rv-merged/issues?size=1" + cursor).badQuery("another review")
}
