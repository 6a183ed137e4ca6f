package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// Decisions about the issues of reviews, and the operations that show them, are additions to the
// contract.

const (
	issuePath     = "/v2/issues/ri-1"
	fullIssuePath = "/v2/full-issues/ri-1"
)

// reviewed creates the review rv with the open issues ri-1, high, and ri-2, low, and waits until the controllers
// will not change them any more.
func (o *organization) reviewed() {
	o.t.Helper()
	o.create(
		builder.Review("rv").In(o.namespace).Reviewed("sha-1", firstReviewAt).Build(),
		builder.ReviewIssue("ri-1").Review("rv").Severity(v1alpha1.LevelHigh).SeenIn("sha-1").In(o.namespace).Build(),
		builder.ReviewIssue("ri-2").Review("rv").SeenIn("sha-1").In(o.namespace).Build(),
	)
	harness.Eventually(o.t, func(g Gomega) {
		for _, name := range []string{"ri-1", "ri-2"} {
			stored := o.storedIssue(name)
			g.Expect(stored.Status.ObservedGeneration).To(Equal(stored.Generation))
			shown := o.get("/v2/issues/" + name)
			g.Expect(shown.Status).To(Equal(200))
			g.Expect(shown.object().text("updated_at")).To(Equal(shownTime(stored.Status.UpdatedAt.Time)))
		}
		g.Expect(o.get("/v2/reviews/rv").object()["open_issue_count"]).To(Equal(2.0))
	})
}

// storedIssue returns a review issue from the cluster.
func (o *organization) storedIssue(name string) *v1alpha1.ReviewIssue {
	o.t.Helper()
	return testenv.Get(o.t, NewWithT(o.t), theDeployment.cluster, builder.ReviewIssue(name).In(o.namespace).Build())
}

func TestIssueDecisions_TheFullRecordHasExactlyTheDescribedMembers(t *testing.T) {
	o := sampleOrganization(t)
	for _, id := range []string{"ri-open", "ri-resolved"} {
		got := o.get("/v2/full-issues/"+id).wants(200, "an issue").object()
		wantsShape(t, id, got, reviewIssueFullShape)
		wantsShape(t, id+".verdict", got.object("verdict"), verdictShape)
		wantsMembers(t, id+" in full", o.get("/v2/issues/"+id).object(), got)
	}
	o.get("/v2/full-issues/none").notFound("no issue")
}

func TestReviews_TheFullRecordHasExactlyTheDescribedMembers(t *testing.T) {
	o := sampleOrganization(t)
	got := o.get("/v2/reviews/rv-open").wants(200, "a review").object()
	wantsShape(t, "a review", got, reviewFullShape)
	harness.Same(t, "alone, where listed is wanted", o.listed("/v2/full-reviews", "rv-open"), got)
	wantsMembers(t, "the full record", o.listed("/v1/reviews", "rv-open"), got)
	o.get("/v2/reviews/none").notFound("no review")
}

// A decision is answered with the full record, is stored with its author, and can be read with the answer's tag; the
// documented record does not show it.
func TestIssueDecisions_AreStoredAndShown(t *testing.T) {
	o := newOrganization(t)
	o.reviewed()
	before, end := o.get(issuePath).object(), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	shown := o.patch(issuePath, fmt.Sprintf(`{"user_status":"muted","reason":"used-in-tests","comments":"a <test>","expires_at":%q}`, end)).
		wants(200, "a decision").object()
	wantsShape(t, "the answer", shown, reviewIssueFullShape)
	want := record{"user_status": "muted", "reason": "used-in-tests", "comments": "a <test>", "expires_at": end, "decided_by": "apikey/conformance", "status": "open"}
	wantsMembers(t, "the answer", want, shown)
	if got := o.storedIssue("ri-1").Spec.Triage; got.UserStatus != "muted" || got.Reason != "used-in-tests" || got.Comments != "a <test>" || got.By != "apikey/conformance" || shownTime(got.ExpiresAt.Time) != end {
		t.Errorf("the cluster has %+v", got)
	}
	updated := func(r record) string { at := r.text("updated_at"); delete(r, "updated_at"); return at }
	answered := updated(shown)
	harness.Within(t, replicaDelay, func(g Gomega) {
		for _, read := range []record{o.get(fullIssuePath).object(), o.listed("/v2/reviews/rv/full-issues", "ri-1")} {
			g.Expect(updated(read) >= answered).To(BeTrue(), "updated_at goes back")
			g.Expect(read).To(Equal(shown))
		}
	})
	after := o.get(issuePath).object()
	if was := updated(before); updated(after) < was {
		t.Error("updated_at of the documented record goes back")
	}
	harness.Same(t, "the documented record changed", before, after)
	for query, ids := range map[string][]string{"user_status=muted": {"ri-1"}, "user_status=open": {"ri-2"}, "user_status=active": {}, "user_status=muted&status=resolved": {}} {
		for _, path := range []string{"/v2/reviews/rv/issues", "/v2/reviews/rv/full-issues"} {
			harness.Same(t, fmt.Sprintf("%s?%s", path, query), ids, o.get(with(path, query)).page().ids())
		}
	}
}

func TestIssueDecisions_AreCountedInTheReview(t *testing.T) {
	o := newOrganization(t)
	o.reviewed()
	for _, step := range []struct {
		id, status       string
		muted, confirmed float64
	}{
		{"ri-1", "muted", 1, 0}, {"ri-2", "active", 1, 1}, {"ri-1", "active", 0, 2}, {"ri-2", "open", 0, 1},
	} {
		o.patch("/v2/issues/"+step.id, `{"user_status":"`+step.status+`"}`).wants(200, "a decision")
		harness.Within(t, replicaDelay, func(g Gomega) {
			for _, got := range []record{o.get("/v2/reviews/rv").object(), o.listed("/v2/full-reviews", "rv")} {
				g.Expect(got["open_muted_count"]).To(Equal(step.muted))
				g.Expect(got["open_confirmed_count"]).To(Equal(step.confirmed))
				g.Expect(got["open_issue_count"]).To(Equal(2.0))
			}
		})
	}
}

func TestIssueDecisions_TheSameAgainWritesNothing(t *testing.T) {
	o := newOrganization(t)
	o.reviewed()
	o.patch(issuePath, `{"user_status":"open","comments":""}`).wants(200, "as it is from the start")
	if got := o.storedIssue("ri-1"); got.Generation != 1 || got.Spec.Triage.By != "" {
		t.Errorf("nothing was decided, and the generation is %d, by %q", got.Generation, got.Spec.Triage.By)
	}
	o.patch(issuePath, `{"user_status":"muted","reason":"duplicate","comments":"why"}`).wants(200, "a decision")
	decided := o.storedIssue("ri-1").Generation
	another := o.key("another", v1alpha1.ScopeFindingsTriage)
	for _, body := range []string{`{"user_status":"muted"}`, `{"comments":"why"}`, `{"user_status":"muted","reason":"duplicate","comments":"why"}`} {
		got := another.patch(issuePath, body).wants(200, "unchanged: "+body).object()
		harness.Same(t, body+": decided_by", "apikey/conformance", got["decided_by"])
	}
	harness.Same(t, "the generation", decided, o.storedIssue("ri-1").Generation)
	// The cluster's state determines whether a decision is unchanged, not what this replica shows.
	o.patchResource(o.storedIssue("ri-1"), `{"spec":{"triage":{"userStatus":"active"}}}`)
	o.patch(issuePath, `{"user_status":"muted"}`).wants(200, "what was so before")
	harness.Same(t, "the issue's user status", v1alpha1.UserStatusMuted, o.storedIssue("ri-1").Spec.Triage.UserStatus)
}

// The same tag is valid for the documented record and the full one.
func TestIssueDecisions_AreMadeOnTheStateThatWasRead(t *testing.T) {
	o := newOrganization(t)
	o.reviewed()
	tag := o.get(issuePath).Header.Get("Etag")
	full := o.get(fullIssuePath).Header.Get("Etag")
	harness.Same(t, "the tag of the full record", strings.Replace(tag, `-gzip"`, `"`, 1), strings.Replace(full, `-gzip"`, `"`, 1))
	o.patch(issuePath, `{"comments":"theirs"}`, apiclient.Header("If-Match", tag)).wants(200, "the state that was read")
	stale := o.patch(issuePath, `{"user_status":"muted"}`, apiclient.Header("If-Match", tag)).wantsError(412, "Precondition failed", "a state that is over")
	wantsMembers(t, "the answer", record{
		"detail": "the review issue has changed since; read it again", "code": "changed", "field": "if-match",
	}, stale.object())
	harness.Same(t, "the issue's user status", v1alpha1.UserStatusOpen, o.storedIssue("ri-1").Spec.Triage.UserStatus)
	o.get(fullIssuePath, apiclient.Header("If-None-Match", tag)).wants(200, "a decision is another state")
	o.patch(issuePath, `{"user_status":"muted"}`, apiclient.Header("If-Match", "*")).wants(200, "any state")
}

func TestIssueHistory_ListsWhatHappenedInOrder(t *testing.T) {
	o := newOrganization(t)
	o.reviewed()
	o.patch(issuePath, `{"user_status":"muted","reason":"duplicate","comments":"See the other."}`).wants(200, "a decision")
	var got record
	harness.Eventually(t, func(g Gomega) {
		got = o.get(issuePath+"/history").wants(200, "a history").object()
		g.Expect(got.list("transitions")).To(HaveLen(2))
	})
	wantsShape(t, "history", got, issueHistoryShape)
	transitions := got.records("transitions")
	wantsShapes(t, "transitions", transitions, transitionShape)
	opened, decided := transitions[0], transitions[1]
	if got["issue_id"] != "ri-1" || opened["type"] != "opened" || opened["to"] != "open" {
		t.Errorf("first: %v of %v", opened, got["issue_id"])
	}
	wantsMembers(t, "then", record{
		"type": "triaged", "from": "open", "to": "muted", "by": "apikey/conformance", "reason": "duplicate", "comment": "See the other.",
	}, decided)
}

// A policy's decision is shown separately, and only while no person has decided.
func TestIssueDecisions_ComeBeforeAPolicys(t *testing.T) {
	o := newOrganization(t)
	o.reviewed()
	o.create(builder.TriagePolicy("generated", `finding.name == "ri-1"`).In(o.namespace).Build())
	judged := func(g Gomega) {
		got := o.get(fullIssuePath).object()
		verdict := got.object("verdict")
		g.Expect(verdict["user_status"]).To(Equal("muted"))
		g.Expect(verdict["policy"]).To(Equal("generated"))
		g.Expect(verdict["reason"]).To(Equal("used-in-tests"))
		g.Expect(verdict["since"]).NotTo(BeNil())
		g.Expect(got["user_status"]).To(Equal("open"))
		g.Expect(o.get("/v2/reviews/rv").object()["open_muted_count"]).To(Equal(1.0))
	}
	harness.Eventually(t, judged)
	decided := o.patch(issuePath, `{"user_status":"active"}`).wants(200, "a person's decision").object()
	wantsMembers(t, "the verdict still counts", record{"user_status": nil, "policy": ""}, decided.object("verdict"))
	o.patch(issuePath, `{"user_status":"open"}`).wants(200, "taken back")
	harness.Eventually(t, judged)
}
