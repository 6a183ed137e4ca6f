package conformance

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// wantsFindingV2 fails the test unless a record has the v2 shape at every depth.
func wantsFindingV2(t *testing.T, got record) {
	t.Helper()
	wantsShape(t, "finding", got, findingV2Shape)
	wantsShape(t, "agent", got.object("agent"), agentShape)
	wantsShape(t, "details", got.object("details"), detailsShape)
	wantsShape(t, "details.location", got.object("details").object("location"), fileLocationShape)
	wantsShape(t, "project", got.object("project"), findingProjectShape)
	wantsShape(t, "project.context", got.object("project").object("context"), projectContextShape)
	wantsShape(t, "repo", got.object("repo"), findingRepoShape)
	wantsShape(t, "scan_details", got.object("scan_details"), scanDetailsShape)
}

func TestFindingsV2_GetHasExactlyTheDocumentedMembers(t *testing.T) {
	f := theDeployment.fixtures.Finding
	got := existing(t, "finding", findingPath("full", "full", "f-full"), f.ID, findingPath(f.RepoID, f.ProjectID, f.ID))
	wantsFindingV2(t, got)
}

func TestFindingsV2_EveryMemberShowsItsFact(t *testing.T) {
	o := sampleOrganization(t)
	got := o.get(findingPath("full", "full", "f-full")).wants(200, "a finding").object()
	want := record{
		"id": "f-full", "organization_id": o.name, "comments": "", "created_at": shownTime(fullDetectedAt), "status": "open", "user_status": "open",
		"agent": map[string]any{"custom_agent_vector_id": "vector-1", "description": "Looks at Go.", "name": "gosec", "vector": "taint"},
		"details": map[string]any{
			"code": "open(name)", "description": "The name is joined unchecked <&>.", "exploit_feasibility": "easy", "exploit_walkthrough": "Ask for ../..",
			"fixed_code": "root.open(name)", "remediation": "Refuse what lies outside.", "remediation_effort": "hard", "severity": "high", "title": "Path traversal",
			"endpoint_locations": []any{
				map[string]any{"type": "grpc", "action": "Download", "path": "files.Files"},
				map[string]any{"type": "http", "action": "GET", "path": "/download"},
				map[string]any{"type": "http", "action": "POST", "path": "/later"},
				map[string]any{"type": "graphql", "action": "query.download", "path": "/graphql"},
			},
			"location": map[string]any{
				"class_name": "Downloads", "file_path": "api/download.go", "function_signature": "get(name)", "hash": "h1", "method_name": "get",
				"url": "https://github.com/acme/full/blob/main/api/download.go#L42", "line_number": 42.0,
			},
			"supporting_files": []any{map[string]any{
				"class_name": "Routes", "file_path": "api/routes.go", "function_signature": "add()", "hash": "h2", "method_name": "add",
				"url": "https://github.com/acme/full/blob/main/api/routes.go#L7", "line_number": 7.0,
			}},
			"validation_evidence": []any{map[string]any{"criteria": "The name reaches the file system.", "rationale": "Nothing checks it."}},
		},
		"project": map[string]any{"id": "full", "name": "Payments API", "purpose": "Takes payments.", "context": map[string]any{
			"business_criticality": "critical", "deployment": "One container behind the gateway.", "exposure": "public", "owner": "team-payments",
			"sensitive_data_types": []any{"card number"},
		}},
		"repo":         map[string]any{"id": "full", "name": "full", "provider": "github", "url": "https://github.com/acme/full"},
		"scan_details": map[string]any{"analyzed_at": shownTime(analyzedAt), "rejected_at": shownTime(rejectedAt), "scan_id": "scan-1", "verified_at": shownTime(verifiedAt)},
	}
	wantsFacts(t, "the finding", want, got, "updated_at") // the controllers' clock
}

func TestFindingsV2_AbsentValuesAreNullOrEmpty(t *testing.T) {
	o := sampleOrganization(t)
	got := o.get(findingPath("full", "bare", "f-bare")).wants(200, "a finding").object()
	want := record{
		"agent": map[string]any{"custom_agent_vector_id": "", "description": "", "name": "", "vector": ""},
		"details": map[string]any{
			"code": "", "description": "", "exploit_feasibility": nil, "exploit_walkthrough": "", "fixed_code": "", "remediation": "",
			"remediation_effort": nil, "severity": "low", "title": "Title of f-bare",
			"endpoint_locations": []any{}, "supporting_files": []any{}, "validation_evidence": []any{},
			"location": map[string]any{"class_name": "", "file_path": "", "function_signature": "", "hash": "", "method_name": "", "url": "", "line_number": 0.0},
		},
		"scan_details": map[string]any{"analyzed_at": nil, "rejected_at": nil, "scan_id": "", "verified_at": nil},
		"comments":     "",
	}
	wantsMembers(t, "the finding", want, got)
	context := map[string]any{"business_criticality": nil, "deployment": "", "exposure": nil, "owner": "", "sensitive_data_types": []any{}}
	harness.Same(t, "project.context", any(context), got.object("project")["context"])
}

func TestFindingsV2_ProjectNameIsDisplayNameElsePathElseID(t *testing.T) {
	o := sampleOrganization(t)
	for id, test := range map[string]struct{ project, name string }{
		"f-full": {"full", "Payments API"}, "f-by-path": {"by-path", "services/by-path"}, "f-bare": {"bare", "bare"},
	} {
		got := o.get(findingPath("full", test.project, id)).object().object("project")
		harness.Same(t, id+": project.name", test.name, got.text("name"))
	}
}

func TestFindingsV2_StatusIsTheSameWordAsInV1(t *testing.T) {
	c := anyKey(t)
	v1 := map[string]any{}
	for _, item := range c.walk("/v1/findings?size=1000") {
		v1[item.text("id")] = item["status"]
	}
	for _, item := range c.walk("/v2/findings?size=1000") {
		harness.Same(t, "the status of "+item.text("id")+" in v2", v1[item.text("id")], item["status"])
	}
}

func TestFindingsV2_ListShowsWhatGetShows(t *testing.T) {
	o := sampleOrganization(t)
	alone := o.get(findingPath("full", "full", "f-full")).object()
	harness.Same(t, "listed, where alone is wanted", alone, o.listed("/v2/findings", "f-full"))
}

func TestFindingsV2_GetNeedsAllThreeIDsToAgree(t *testing.T) {
	o := sampleOrganization(t)
	missing := o.get(findingPath("full", "full", "none")).notFound("no such finding")
	for reason, path := range map[string]string{
		"another repository": findingPath("bare", "full", "f-full"),
		"another project":    findingPath("full", "bare", "f-full"),
		"no such repository": findingPath("none", "full", "f-full"),
		"no such project":    findingPath("full", "none", "f-full"),
	} {
		if got := o.get(path).notFound(reason); !bytes.Equal(got.Body, missing.Body) {
			t.Errorf("%s: the body reveals more than that it does not exist: %s", reason, got.Body)
		}
	}
	o.get(findingPath("full", "full", "f%2Dfull")).wants(200, "an id may be percent-encoded")
}

func TestFindingsV2_PatchSetsUserStatusAndComments(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1"))
	for _, step := range []struct{ version, body, status, comments string }{
		{"v2", `{"user_status":"active","comments":"first"}`, "active", "first"},
		{"v2", `{"comments":"second <b>&\u2028\u0000"}`, "active", "second <b>&\u2028\u0000"},
		{"v2", `{"user_status":"muted"}`, "muted", "second <b>&\u2028\u0000"},
		{"v1", `{"user_status":"active"}`, "active", "second <b>&\u2028\u0000"}, // v1 leaves the comments alone
		{"v2", `{"comments":""}`, "active", ""},
	} {
		got := o.patch("/"+step.version+"/findings/f-1", step.body).wants(200, step.body).object()
		if step.version == "v2" {
			wantsFindingV2(t, got)
			wantsMembers(t, step.body, record{"user_status": step.status, "comments": step.comments}, got)
		}
		if stored := o.storedFinding("f-1").Spec.Triage; string(stored.UserStatus) != step.status || stored.Comments != step.comments || stored.By != "apikey/conformance" {
			t.Errorf("%s: the cluster has %+v", step.body, stored)
		}
	}
}

func TestFindings_PatchIsSeenByReads(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1"))
	later := o.finding(builder.Finding("f-2"))
	o.laterSecond(later)
	inV1 := o.patch("/v1/findings/f-1", `{"user_status":"muted"}`).wants(200, "a patch").object()
	inV2 := o.patch("/v2/findings/f-2", `{"user_status":"muted","comments":"why"}`).wants(200, "a patch").object()
	harness.Within(t, replicaDelay, func(g Gomega) {
		g.Expect(o.listed("/v1/findings", "f-1")).To(Equal(inV1))
		g.Expect(o.get(pathOf(later)).object()).To(Equal(inV2))
		g.Expect(o.listed("/v2/findings", "f-2")).To(Equal(inV2))
	})
}

func TestFindingsV2_PatchWithTheSameValuesWritesNothing(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1"))
	o.patch("/v2/findings/f-1", `{"user_status":"open"}`).wants(200, "as it is from the start")
	o.patch("/v2/findings/f-1", `{"comments":""}`).wants(200, "no comments from the start")
	if got := o.storedFinding("f-1"); got.Generation != 1 || got.Spec.Triage.By != "" {
		t.Errorf("nothing was decided, and the generation is %d, by %q", got.Generation, got.Spec.Triage.By)
	}
	o.patch("/v2/findings/f-1", `{"user_status":"muted","comments":"why"}`).wants(200, "a decision")
	before := o.storedFinding("f-1")
	for _, body := range []string{`{"user_status":"muted"}`, `{"comments":"why"}`, `{"user_status":"muted","comments":"why"}`} {
		o.patch("/v2/findings/f-1", body).wants(200, "unchanged: "+body)
	}
	harness.Same(t, "the generation", before.Generation, o.storedFinding("f-1").Generation)
}

// Limits count characters: JSON may encode a character in 12 bytes.
func TestFindingsV2_CommentsHoldAtMost10000CharactersHoweverTheyAreWritten(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1"))
	for written, letter := range map[string]string{
		"a": "a", `\u0061`: "a", "é": "é", `\u00e9`: "é", "€": "€", `\u20ac`: "€", "文": "文", `\u6587`: "文",
		"😀": "😀", `\ud83d\ude00`: "😀", "\u0301": "\u0301", `\u0301`: "\u0301", `\"`: `"`, `\\`: `\`,
	} {
		longest := strings.Repeat(written, 10_000)
		ids := `,"user_status":"\u006d\u0075\u0074\u0065\u0064","repo_id":"\u0072\u0065\u0070\u006f"`
		got := o.patch("/v2/findings/f-1", `{"comments":"`+longest+`"`+ids+`}`).wants(200, "10,000 times "+written).object()
		if got["comments"] != strings.Repeat(letter, 10_000) {
			t.Errorf("%s: the comments are not what was sent", written)
		}
		o.patch("/v2/findings/f-1", `{"comments":"`+longest+written+`"}`).badRequest("10,001 times " + written)
	}
}

func TestFindings_PatchIgnoresUnknownMembers(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1"))
	got := o.patch("/v2/findings/f-1", `{"comments":"x","status":"closed","details":{"severity":"low"}}`).wants(200, "unknown members").object()
	wantsMembers(t, "the finding", record{"comments": "x", "status": "open"}, got)
	o.patch("/v2/findings/f-1", " {\r\n\t\"user_status\" : \"open\", \"Comments\":7 } \n").wants(200, "white space, and a member in another case")
	got = o.patch("/v1/findings/f-1", `{"user_status":"muted","name":"x","x":{"y":[null]}}`).wants(200, "unknown members").object()
	wantsMembers(t, "the finding", record{"user_status": "muted", "name": "Title of f-1"}, got)
}

func TestFindingsV2_PatchFindsTheFindingByItsIDs(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1"))
	o.create(builder.Finding("f-2").Project("repo-2", "proj-2").In(o.namespace).Build())
	o.settled(2)
	for _, test := range []struct{ reason, path, ids, found string }{
		{"the path alone", "/v2/findings/f-1", ``, "f-1"},
		{"ids in the body that agree", "/v2/findings/f-1", `,"repo_id":"repo","project_id":"proj"`, "f-1"},
		{"ids in the query that agree", "/v2/findings/f-1?repo_id=repo&project_id=proj", ``, "f-1"},
		{"finding_id names the finding, the path its repository", "/v2/findings/repo?finding_id=f-1", ``, "f-1"},
		{"empty ids are none", "/v2/findings/f-1?repo_id=", `,"repo_id":"","project_id":""`, "f-1"},
		{"empty ids beside others", "/v2/findings/repo?finding_id=f-1&repo_id=", `,"repo_id":"","project_id":"proj"`, "f-1"},
		{"every id there is", "/v2/findings/repo-2?finding_id=f-2&project_id=proj-2&repo_id=repo-2", `,"repo_id":"repo-2","project_id":"proj-2"`, "f-2"},
	} {
		got := o.patch(test.path, `{"user_status":"active"`+test.ids+`}`).wants(200, test.reason).object()
		harness.Same(t, test.reason+": changed", test.found, got.text("id"))
	}
}

func TestFindingsV2_PatchWithIDsThatDisagreeIs404(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1"))
	o.create(builder.Finding("f-2").Project("repo-2", "proj-2").In(o.namespace).Build())
	o.settled(2)
	missing := o.patch("/v2/findings/none", `{"user_status":"open"}`).notFound("no such finding")
	for _, test := range []struct{ reason, path, ids string }{
		{"another repository in the body", "/v2/findings/f-1", `,"repo_id":"repo-2"`},
		{"another project in the body", "/v2/findings/f-1", `,"project_id":"proj-2"`},
		{"another repository in the query", "/v2/findings/f-1?repo_id=repo-2", ``},
		{"another project in the query", "/v2/findings/f-1?project_id=proj-2", ``},
		{"query and body that differ", "/v2/findings/f-1?project_id=proj", `,"project_id":"proj-2"`},
		{"a path that is not the repository", "/v2/findings/repo-2?finding_id=f-1", ``},
		{"the finding in both places", "/v2/findings/f-1?finding_id=f-1", ``},
		{"a finding_id that is not there", "/v2/findings/repo?finding_id=none", ``},
		{"the path names a finding, the query another", "/v2/findings/f-1?finding_id=f-2", ``},
	} {
		got := o.patch(test.path, `{"user_status":"muted"`+test.ids+`}`).notFound(test.reason)
		if !bytes.Equal(got.Body, missing.Body) {
			t.Errorf("%s: the body reveals more than that it does not exist: %s", test.reason, got.Body)
		}
	}
	for _, id := range []string{"f-1", "f-2"} {
		harness.Same(t, id, v1alpha1.UserStatusOpen, o.storedFinding(id).Spec.Triage.UserStatus)
	}
}
