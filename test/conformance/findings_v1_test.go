package conformance

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// listed returns the record with that id from a list.
func (c *caller) listed(path, id string) record {
	c.t.Helper()
	item := c.find(path, id)
	if item == nil {
		c.t.Fatalf("%s does not list %s", path, id)
	}
	return item
}

// find is listed for what may not be listed yet, by each replica; it returns nil then.
func (c *caller) find(path, id string) record {
	c.t.Helper()
	for _, item := range c.walk(path) {
		if item.text("id") == id {
			return item
		}
	}
	return nil
}

// wantsFindingV1 fails the test unless a record has the v1 shape at every depth.
func wantsFindingV1(t *testing.T, got record) {
	t.Helper()
	wantsShape(t, "finding", got, findingV1Shape)
	wantsShape(t, "location", got.object("location"), findingV1LocationShape)
	wantsShape(t, "project", got.object("project"), findingV1ProjectShape)
}

func TestFindingsV1_EveryMemberShowsItsFact(t *testing.T) {
	o := sampleOrganization(t)
	got := o.listed("/v1/findings", "f-full")
	want := record{
		"id": "f-full", "name": "Path traversal", "description": "The name is joined unchecked <&>.", "agent_name": "gosec", "class": "CWE-22",
		"attack_feasibility": "easy", "attack_walkthrough": "Ask for ../..", "confidence": "medium", "severity": "high",
		"remediation": "Refuse what lies outside.", "remediation_effort": "hard", "status": "open", "user_status": "open",
		"created_at": shownTime(fullDetectedAt), "endpoint_method": "GET", "endpoint_path": "/download", // the first of HTTP
		"handler_class_name": "Downloads", "handler_method_name": "get", "vulnerable_code_block": "open(name)", "fixed_code_block": "root.open(name)",
		"secret_type": "none of these", "repo_id": "full", "repo_url": "https://github.com/acme/full", "repo_commit_hash": "8f3e1c2d", "project_id": "full",
		"location":         map[string]any{"file_path": "api/download.go", "hash": "h1", "url": "https://github.com/acme/full/blob/main/api/download.go#L42", "line": 42.0},
		"supporting_files": []any{map[string]any{"file_path": "api/routes.go", "hash": "h2", "url": "https://github.com/acme/full/blob/main/api/routes.go#L7", "line": 7.0}},
		"project": map[string]any{
			"business_criticality": "critical", "exposure": "public", "owner": "team-payments", "summary": "What people say.",
			"deployments": map[string]any{"production": "eu-west-1"},
		},
	}
	wantsFacts(t, "the finding", want, got, "updated_at") // the controllers' clock
}

func TestFindingsV1_AbsentValuesAreNullOrEmpty(t *testing.T) {
	o := sampleOrganization(t)
	got := o.listed("/v1/findings", "f-bare")
	want := record{
		"id": "f-bare", "name": "Title of f-bare", "description": "", "agent_name": "", "class": "",
		"attack_feasibility": nil, "attack_walkthrough": "", "confidence": nil, "severity": "low",
		"remediation": "", "remediation_effort": nil, "status": "open", "user_status": "open",
		"endpoint_method": "", "endpoint_path": "", "handler_class_name": "", "handler_method_name": "",
		"vulnerable_code_block": "", "fixed_code_block": "", "secret_type": "",
		"repo_id": "full", "repo_url": "https://github.com/acme/full", "repo_commit_hash": "", "project_id": "bare",
		"location":         map[string]any{"file_path": "", "hash": "", "url": "", "line": 0.0},
		"supporting_files": []any{},
		"project": map[string]any{
			"business_criticality": nil, "exposure": nil, "owner": "", "summary": "", "deployments": map[string]any{},
		},
	}
	wantsFacts(t, "the finding", want, got, "created_at", "updated_at")
}

func TestFindingsV1_CreatedAtIsTheResourcesOwnWhereNothingElseIsKnown(t *testing.T) {
	o := newOrganization(t)
	finding := o.finding(builder.Finding("f-1"))
	harness.Same(t, "created_at", shownTime(finding.CreationTimestamp.Time), o.listed("/v1/findings", "f-1").text("created_at"))
}

func TestFindingsV1_FindingOfAMissingProjectIsShown(t *testing.T) {
	o := newOrganization(t)
	o.create(builder.Finding("f-1").Project("nowhere", "nothing").In(o.namespace).Build())
	o.settled(1)
	got := o.listed("/v1/findings", "f-1")
	wantsFindingV1(t, got)
	wantsMembers(t, "item", record{"repo_id": "nowhere", "project_id": "nothing", "repo_url": ""}, got)
}

// Muting makes the status open_muted, and updated_at never goes back.
func TestFindingsV1_AnyUserStatusMayFollowAnyAndNothingElseChanges(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1"))
	before := o.listed("/v1/findings", "f-1")
	last := before.text("updated_at")
	statuses := map[string]string{"open": "open", "active": "open", "muted": "open_muted"}
	for _, to := range strings.Fields("open active active muted muted active open muted open") { // from open: each after each
		got := o.patch("/v1/findings/f-1", `{"user_status":"`+to+`"}`).wants(200, to).object()
		wantsFindingV1(t, got)
		wantsMembers(t, to, record{"user_status": to, "status": statuses[to]}, got)
		if at := got.text("updated_at"); at < last {
			t.Errorf("updated_at went from %s to %s", last, at)
		} else {
			last = at
		}
		for _, name := range []string{"user_status", "status", "updated_at"} {
			got[name] = before[name]
		}
		harness.Same(t, to+": more has changed", before, got)
	}
}

func TestFindingsV1_ClosedStaysClosedWhateverPeopleDecide(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1").Closed(firstFinding, ""))
	for _, status := range []string{"muted", "active", "open"} {
		got := o.patch("/v1/findings/f-1", `{"user_status":"`+status+`"}`).object()
		wantsMembers(t, status, record{"status": "closed", "user_status": status}, got)
	}
}

func TestFindingsV1_PatchMovesUpdatedAtAndOneThatChangesNothingDoesNot(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1"))
	before := o.listed("/v1/findings", "f-1").text("updated_at")
	same := o.patch("/v1/findings/f-1", `{"user_status":"open"}`).wants(200, "as it is").object()
	harness.Same(t, "updated_at, and nothing has changed", before, same.text("updated_at"))
	// The resolution is one second, so it may take several patches until the time changes.
	harness.Eventually(t, func(g Gomega) {
		o.patch("/v1/findings/f-1", `{"user_status":"active"}`)
		got := o.patch("/v1/findings/f-1", `{"user_status":"muted"}`).object()
		g.Expect(got.text("updated_at") > before).To(BeTrue())
	})
}

func TestDecisions_PatchRefusesABadBody(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1"))
	o.reviewed()
	for path, more := range map[string][]string{
		"/v1/findings/f-1": {`{"comments":"x"}`, `{"User_Status":"open"}`},
		issuePath:          {`{"x":1}`, `{"comments":null}`, `{"comments":["x"]}`, `{"comments":"` + strings.Repeat("a", 10_001) + `"}`},
		"/v2/findings/f-1": {
			`{"repo_id":"repo"}`, `{"repo_id":"repo","project_id":"proj"}`, `{"x":1}`, `{"repo_id":""}`, `{"user_status":"","comments":"x"}`,
			`{"comments":null}`, `{"comments":1}`, `{"comments":["x"]}`, `{"comments":"x","user_status":null}`,
			`{"comments":"x","repo_id":null}`, `{"comments":"x","repo_id":7}`, `{"comments":"x","project_id":{}}`, `{"comments":"x","project_id":null}`,
			`{"comments":"x","repo_id":"a\u0000"}`, `{"comments":"x","project_id":"` + strings.Repeat("a", 254) + `"}`,
		},
	} {
		o.refusesBadBodies(path) // one of them is {}
		o.refusesBodies(path, badUserStatuses...)
		o.refusesBodies(path, more...)
	}
	o.patch("/v2/findings/f-1?repo_id=a&repo_id=b", `{"comments":"x"}`).badQuery("a parameter given twice")
	o.patch("/v2/issues/none", `{"user_status":"muted"}`).notFound("no issue")
	if got := o.storedFinding("f-1"); got.Generation != 1 {
		t.Errorf("something was written: %+v", got.Spec.Triage)
	}
	if got := o.storedIssue("ri-1"); got.Generation != 1 {
		t.Errorf("something was written: %+v", got.Spec.Triage)
	}
}
