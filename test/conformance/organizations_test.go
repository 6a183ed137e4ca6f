package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// anotherOrganization returns an organization that the sample's keys must not see, and vice versa.
func anotherOrganization(t *testing.T) *organization {
	t.Helper()
	return shared(t, &theDeployment.another, func() *organization {
		o := newOrganization(t)
		o.create(builder.Review("rv-theirs").In(o.namespace).Build(), builder.ReviewIssue("ri-theirs").Review("rv-theirs").In(o.namespace).Build())
		o.finding(builder.Finding("f-theirs"))
		o.operations(listedOperation)
		o.listedIssues("ri-other")
		o.policies("mute-theirs")
		harness.Eventually(t, func(g Gomega) { g.Expect(o.get("/v2/issues/ri-theirs").Status).To(Equal(200)) })
		return o
	})
}

// crowdedOrganization returns an organization with more findings, repositories, reviews and issues of a review than the
// default page size.
func crowdedOrganization(t *testing.T) *organization {
	t.Helper()
	return shared(t, &theDeployment.crowded, func() *organization {
		o := newOrganization(t)
		o.crowd()
		return o
	})
}

func (o *organization) crowd() {
	o.t.Helper()
	var rows []client.Object
	var issues []string
	for i := range 101 {
		rows = append(rows, builder.Repository(fmt.Sprintf("repo-%d", i)).In(o.namespace).Build())
		issues = append(issues, fmt.Sprintf("ri-%d", i))
	}
	for i := range 11 {
		rows = append(rows, builder.Review(fmt.Sprintf("rv-%d", i)).PullRequest("repo", int32(i+1)).In(o.namespace).Build())
	}
	theDeployment.cluster.CreateAtOnce(o.t, rows...)
	oldest := o.findings(101)[0]
	// It is changed last, so that the orders by created_at and updated_at differ.
	o.patch("/v1/findings/"+oldest, `{"user_status":"muted"}`).wants(200, "a change")
	o.operations(listedOperation)
	o.listedIssues(issues...)
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(o.get("/v2/repos?size=1").page().Total).To(Equal(102))
		g.Expect(o.get("/v1/reviews?size=1").page().Total).To(Equal(12))
	})
}

func TestOrganizations_AKeySeesItsOwnOrganizationAlone(t *testing.T) {
	o, other := sampleOrganization(t), anotherOrganization(t)
	forEachList(t, func(t *testing.T, l list) {
		ours := map[string]bool{}
		// Both have an operation and a review of the same id, perhaps created in the same second.
		row := func(item record) string {
			return fmt.Sprint(item.id(), " ", item["created_at"], item["full_name"], item["uid"], item["repo_id"])
		}
		for _, item := range o.in(t).walk(with(l.path, "size=1000")) {
			ours[row(item)] = true
		}
		for _, item := range other.in(t).walk(with(l.path, "size=1000")) {
			if ours[row(item)] {
				t.Errorf("both see %s", item.id())
			}
		}
	})
}

func TestOrganizations_AnotherOrganizationsIDIsLikeOneThatDoesNotExist(t *testing.T) {
	o := sampleOrganization(t)
	anotherOrganization(t)
	for _, test := range []struct{ method, theirs, none, body string }{
		{"PATCH", "/v1/findings/f-theirs", "/v1/findings/f-none", `{"user_status":"muted"}`},
		{"PATCH", "/v2/findings/f-theirs", "/v2/findings/f-none", `{"user_status":"muted"}`},
		{"PATCH", "/v2/findings/repo?finding_id=f-theirs", "/v2/findings/repo?finding_id=f-none", `{"user_status":"muted"}`},
		{"GET", findingPath("repo", "proj", "f-theirs"), findingPath("repo", "proj", "f-none"), ""},
		{"GET", projectPath("repo", "proj"), projectPath("repo", "none"), ""},
		{"GET", "/v2/findings/f-theirs", "/v2/findings/f-none", ""},
		{"GET", "/v2/reviews/rv-theirs/issues", "/v2/reviews/rv-none/issues", ""},
		{"GET", "/v2/findings/f-theirs/history", "/v2/findings/f-none/history", ""},
		{"GET", "/v2/reviews/rv-theirs/full-issues", "/v2/reviews/rv-none/full-issues", ""},
		{"GET", "/v2/reviews/rv-theirs", "/v2/reviews/rv-none", ""},
		{"GET", "/v2/issues/ri-theirs", "/v2/issues/ri-none", ""},
		{"GET", "/v2/issues/ri-theirs/history", "/v2/issues/ri-none/history", ""},
		{"GET", "/v2/full-issues/ri-theirs", "/v2/full-issues/ri-none", ""},
		{"PATCH", "/v2/issues/ri-theirs", "/v2/issues/ri-none", `{"user_status":"muted"}`},
	} {
		theirs := o.do(test.method, test.theirs, test.body).notFound("another organization's")
		none := o.do(test.method, test.none, test.body).notFound("nobody's")
		if !bytes.Equal(theirs.Body, none.Body) {
			t.Errorf("%s %s: %s differs from %s", test.method, test.theirs, theirs.Body, none.Body)
		}
	}
	another := anotherOrganization(t)
	harness.Same(t, "another organization's finding", v1alpha1.UserStatusOpen, another.storedFinding("f-theirs").Spec.Triage.UserStatus)
	harness.Same(t, "another organization's review issue", v1alpha1.UserStatusOpen, another.storedIssue("ri-theirs").Spec.Triage.UserStatus)
}

func TestOrganizations_CountsAndExportsHoldNothingOfAnother(t *testing.T) {
	askedOrganization(t)
	o := emptyOrganization(t, plenty)
	counts := o.get("/v2/finding-counts").wants(200, "the counts").object()
	if counts["total"] != 0. || slices.ContainsFunc(counts.records("fields"), func(field record) bool { return field["distinct"] != 0. }) {
		t.Errorf("an organization without findings counts %v", counts)
	}
	if rows := o.get(exportPath).csvRows(); len(rows) > 0 {
		t.Errorf("an organization without findings exports %v", rows)
	}
	if runs := o.get(exportPath + "?format=sarif").sarifResults(); len(runs) > 0 {
		t.Errorf("an organization without findings exports %v", runs)
	}
}

func TestOrganizations_TheSameIDMayBeInTwo(t *testing.T) {
	o, other := newOrganization(t), newOrganization(t)
	o.finding(builder.Finding("f-same").Title("ours"))
	other.finding(builder.Finding("f-same").Title("theirs"))
	o.patch("/v1/findings/f-same", `{"user_status":"muted"}`).wants(200, "ours")
	got := other.listed("/v1/findings", "f-same")
	wantsMembers(t, "the other's", record{"user_status": "open", "name": "theirs"}, got)
}
