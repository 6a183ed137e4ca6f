package conformance

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Triage operations are an addition to the contract.

const operationsPath = "/v2/triage-operations"

// listedOperation is an operation that has selected all findings; operationFindingsPath lists these.
const (
	listedOperation       = "op-listed"
	operationFindingsPath = operationsPath + "/" + listedOperation + "/findings"
)

// operations creates previews with these names, about every finding of the organization.
func (o *organization) operations(names ...string) {
	o.t.Helper()
	for _, name := range names {
		o.create(builder.TriageOperation(name, "").In(o.namespace).Spec(func(s *v1alpha1.TriageOperationSpec) {
			s.Select = &v1alpha1.FindingSelection{Severity: []v1alpha1.Level{v1alpha1.LevelHigh, v1alpha1.LevelMedium, v1alpha1.LevelLow}}
		}).Build())
		o.awaitPhase(record{"id": name}, "preview")
	}
}

// operate creates an operation and waits until it has that phase.
func (o *organization) operate(body, phase string) record {
	o.t.Helper()
	made := o.post(operationsPath, body)
	if made.Status != 201 && made.Status != 202 {
		o.t.Fatalf("%s: got %d %s", body, made.Status, made.Body)
	}
	harness.Same(o.t, "the location", operationsPath+"/"+made.object().text("id"), made.Header.Get("Location"))
	return o.awaitPhase(made.object(), phase)
}

// awaitPhase returns the operation once it has that phase. Usually the answer to the request has already
// waited for that.
func (o *organization) awaitPhase(operation record, phase string) record {
	o.t.Helper()
	harness.Eventually(o.t, func(g Gomega) {
		if operation.text("phase") != phase {
			operation = o.get(operationsPath+"/"+operation.text("id")).wants(200, "the operation").object()
		}
		g.Expect(operation).To(HaveKeyWithValue("phase", phase))
	})
	return operation
}

// filterValues holds some values for each filter, for the findings that asked creates.
var filterValues = map[string][]string{
	"status": {"open", "open_muted", "closed"}, "user_status": {"open", "active", "muted"}, "severity": {"high", "medium", "low"},
	"repo_id": {"repo", "none"}, "project_id": {"a", "b", "proj"}, "class": {"CWE-22", "CWE-0"}, "tool": {"trivy", "gosec", "none"},
	"rule": {"G304", "CVE-2019-1549"}, "vulnerability": {"cve-2019-1549", "GHSA-29mw-wpgm-hmr9"},
	"package": {"openssl", "pkg:apk/alpine/openssl", "pkg:apk/alpine/openssl@1.1.1d-r0"}, "owner": {"team-a", "team-b"}, "file": {"Web/", "api/download.go"},
	"category": {"Code", "Package", "Secret"}, "created_since": {"2026-03-02T08:30:00Z", "2026-03-02T08:29:59.5+00:00"},
	"created_until": {"2026-03-03T08:30:00Z", "2026-03-03t08:30:00.1z"}, "updated_since": {"2020-01-01T00:00:00Z"},
	"updated_until": {"2099-01-01T00:00:00Z"}, "min_score": {"5.3", "5.31", "9", "0"}, "stale": {"true", "false"},
	"suppressed": {"true", "false"}, "policy": {"none", "mute-none"}, "text": {"OPENSSL", "cve yarn", "größe"},
}

// A filter means the same for a list and for an operation.
func TestTriageOperations_APreviewMatchesWhatTheListShows(t *testing.T) {
	spec, err := openapi.Load()
	harness.Must(t, err)
	names := slices.Sorted(maps.Keys(filterValues))
	filters := spec.Components.Schemas["TriageOperationFilters"].Value.Properties
	harness.Same(t, "filters with values to try: complete filterValues", slices.Sorted(maps.Keys(filters)), names)
	o := newOrganization(t)
	o.asked()
	o.patch("/v2/findings/f-3", `{"user_status":"muted"}`).wants(200, "a decision")
	o.settled(4)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	matched := 0
	for range 40 {
		given, query := map[string]string{}, url.Values{}
		for range 1 + random.IntN(3) {
			name := names[random.IntN(len(names))]
			given[name] = filterValues[name][random.IntN(len(filterValues[name]))]
			query.Set(name, given[name])
		}
		body := string(harness.JSON(t, map[string]any{"filters": given, "set": map[string]string{"comments": "x"}}))
		want := o.get(with("/v2/findings", query.Encode())).page().Total
		harness.Same(t, body+": matched", float64(want), o.operate(body, "preview")["matched"])
		matched += want
	}
	if matched < 20 {
		t.Errorf("all filters together match %d findings: they say little", matched)
	}
	harness.Same(t, "the comments after previews", "", o.get("/v2/findings/f-1").object()["comments"])
}

func TestTriageOperations_FromPreviewToUndo(t *testing.T) {
	o, other := newOrganization(t), anotherOrganization(t)
	o.findings(4)
	o.patch("/v2/findings/f-001", `{"user_status":"active","comments":"before"}`).wants(200, "a decision")
	o.settled(4)
	preview := o.operate(`{"filters":{"repo_id":"repo"},"set":{"user_status":"muted","reason":"used-in-tests","comments":"c"}}`, "preview")
	path := operationsPath + "/" + preview.text("id")
	wantsShape(t, "a preview", preview, triageOperationShape)
	wantsShape(t, "what it sets", preview.object("set"), triageOperationSetShape)
	wantsShapes(t, "who had decided", preview.records("decided"), triageOperationDeciderShape)
	wantsMembers(t, "the preview", record{"matched": 4.0, "would_change": 4.0, "created_by": "apikey/conformance", "committed_by": ""}, preview)
	for _, request := range []answer{
		other.in(t).get(path), other.in(t).get(path + "/findings"), other.in(t).post(path+"/commit", ""),
	} {
		request.notFound("another organization's")
	}
	reader := o.key("reader", v1alpha1.ScopeFindingsRead)
	reader.get(path).wants(200, "to read")
	reader.post(path+"/commit", "").wantsError(403, "Forbidden", "to commit")
	reader.post(operationsPath, `{}`).wantsError(403, "Forbidden", "to make one")
	// A person decides before the commit.
	o.patch("/v2/findings/f-002", `{"user_status":"active","comments":"mine"}`).wants(200, "a person")
	o.post(path+"/commit", `{"uid":"of-one-before"}`).wantsError(412, "Precondition failed", "another was looked at")
	harness.Same(t, "the phase after it was refused", "preview", o.get(path).object().text("phase"))
	seen := fmt.Sprintf(`{"uid":%q}`, preview.text("uid"))
	done := o.awaitPhase(o.post(path+"/commit", seen).object(), "completed")
	wantsShapes(t, "what was left alone", done.records("conflicts"), triageOperationExampleShape)
	wantsMembers(t, "it came to", record{"changed": 3.0, "conflicted": 1.0, "failed": 0.0, "committed_by": "apikey/conformance"}, done)
	harness.Same(t, "a second commit has changed it",
		done, o.post(path+"/commit", "").wants(200, "committed already").object())
	o.post(path+"/commit", `{"uid":"of-one-before"}`).wantsError(412, "Precondition failed", "another was committed")
	o.triaged(map[string]string{"f-000": "muted c", "f-001": "muted c", "f-002": "active mine", "f-003": "muted c"})
	o.operationsFindings(path)

	undo := o.operate(fmt.Sprintf(`{"undo":%q,"commit":true}`, done.text("id")), "completed")
	if got := o.get(operationsPath + "?undo=op-none," + done.text("id")).page(); got.Total != 1 || len(got.Items) != 1 || got.Items[0].text("id") != undo.text("id") {
		t.Errorf("the operations that undo it are %v", got)
	}
	harness.Same(t, "operations that undo none", 0, o.get(operationsPath+"?undo=,op-none").page().Total)
	o.get(operationsPath + "?undo=op-none,%20" + done.text("id")).badQuery("a blank before an id")
	o.get(operationsPath + "?undo=,").badQuery("no id")
	if undo["changed"] != 3.0 || undo["undo"] != done.text("id") || undo.object("set")["user_status"] != nil {
		t.Errorf("the undo came to %v", undo)
	}
	o.triaged(map[string]string{"f-000": "open ", "f-001": "active before", "f-002": "active mine", "f-003": "open "})
	harness.Same(t, "operations in the list", 2, o.get(operationsPath).page().Total)
	all := o.walk(operationsPath + "?size=1&order=asc")
	wantsShapes(t, "the list", all, triageOperationShape)
	if !sorted(all, "created_at", "asc") {
		t.Errorf("the list is not in its order: %v", all)
	}
}

// triaged expects each finding's user status and comments.
func (o *organization) triaged(want map[string]string) {
	o.t.Helper()
	harness.Eventually(o.t, func(g Gomega) {
		got := map[string]string{}
		for _, item := range o.get("/v2/findings").page().Items {
			got[item.text("id")] = item.text("user_status") + " " + item.text("comments")
		}
		g.Expect(got).To(Equal(want))
	})
}

// operationsFindings reads the operation's findings page by page: three that it has changed and one that it has
// left unchanged.
func (o *organization) operationsFindings(path string) {
	o.t.Helper()
	for query, want := range map[string]string{
		"size=3": "f-000 changed f-001 changed f-002 conflicted f-003 changed ", "outcome=conflicted": "f-002 conflicted ", "outcome=failed": "",
	} {
		got := ""
		for _, item := range o.walk(path + "/findings?" + query) {
			wantsShape(o.t, "a finding of an operation", item, triageOperationFindingShape)
			got += item.text("finding_id") + " " + item.text("outcome") + " "
		}
		harness.Same(o.t, query, want, got)
	}
	for outcome, want := range map[string]int{"changed": 3, "conflicted": 1} {
		if got := o.get(path + "/findings?size=1&outcome=" + outcome).page(); got.Total != want || got.HasMore != (want > 1) {
			o.t.Errorf("of those that are %s the page has total %d, has_more %v", outcome, got.Total, got.HasMore)
		}
	}
}

func TestTriageOperations_InvalidOnesAreRefused(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1"))
	const muted = `"set":{"user_status":"muted"}`
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for body, field := range map[string]string{
		`{` + muted + `}`: "", `{"filters":{},` + muted + `}`: "filters", `{"filters":{"severity":"low","text":" \t"},` + muted + `}`: "filters.text",
		`{"ids":["f-1"],"filters":{"tool":"x"},` + muted + `}`: "", `{"ids":["f-1"],"undo":"op-1",` + muted + `}`: "", `{"undo":""}`: "",
		`{"ids":[],` + muted + `}`: "ids", `{"ids":"f-1",` + muted + `}`: "ids", `{"ids":["f-1",1],` + muted + `}`: "ids", `{"ids":["F 1"],` + muted + `}`: "ids",
		`{"ids":["f-1"]}`: "set", `{"undo":"op-1",` + muted + `}`: "set", `{"ids":["f-1"],"set":{}}`: "set.user_status", `{"ids":["f-1"],"set":null}`: "set",
		`{"ids":["f-1"],"set":{"user_status":"closed"}}`: "set.user_status", `{"ids":["f-1"],"set":{"reason":"duplicate"}}`: "set.user_status",
		`{"ids":["f-1"],"set":{"user_status":"muted","reason":"none"}}`: "set.reason", `{"ids":["f-1"],"set":{"user_status":"open","reason":"duplicate"}}`: "set.reason",
		`{"ids":["f-1"],"set":{"user_status":"muted","expires_at":"none"}}`:                 "set.expires_at",
		`{"ids":["f-1"],"set":{"user_status":"muted","expires_at":"2001-01-01T00:00:00Z"}}`: "set.expires_at",
		`{"ids":["f-1"],"set":{"comments":"x","expires_at":"` + soon + `"}}`:                "set.expires_at",
		`{"ids":["f-1"],"commit":"true",` + muted + `}`:                                     "commit", `{"ids":["f-1"],"comit":true,` + muted + `}`: "",
		`{"filters":{"tools":"gosec"},` + muted + `}`: "", `{"filters":{"severity":"critical"},` + muted + `}`: "filters.severity", `{"filters":{"stale":true},` + muted + `}`: "filters.stale",
		`{"filters":{"min_score":"11"},` + muted + `}`: "filters.min_score", `{"filters":{"repo_id":"No such"},` + muted + `}`: "filters.repo_id",
		`{"filters":{"created_since":"2026-03-02T00:00:00Z","created_until":"2026-03-01T00:00:00Z"},` + muted + `}`: "filters.created_until",
		`{"filters":{"text":"1 2 3 4 5 6 7 8 9"},` + muted + `}`:                                                    "filters.text",
	} {
		harness.Same(t, body+": the field", field, o.post(operationsPath, body).badRequest(body).object()["field"])
	}
	// A script with an unset variable must not decide about every finding.
	for name := range filterValues {
		body := fmt.Sprintf(`{"filters":{"tool":"gosec",%q:""},%s}`, name, muted)
		if name == "tool" {
			body = fmt.Sprintf(`{"filters":{"rule":"G1","tool":""},%s}`, muted)
		}
		problem := o.post(operationsPath, body).badRequest(body).object()
		if want := "filters." + name; problem["field"] != want || !strings.Contains(problem.text("detail"), "leave the member out") {
			t.Errorf("%s: got %v", body, problem)
		}
	}
	harness.Same(t, "the operations that were made", 0, o.get(operationsPath).page().Total)
	undo := o.post(operationsPath, `{"undo":"op-none"}`).badRequest("a failed operation looks like none that is made")
	failed := undo.Header.Get("Location")
	why := o.get(failed).wants(200, "the operation that failed").object().text("detail")
	if detail := undo.object().text("detail"); why == "" || detail != "the operation has failed: "+why {
		t.Errorf("a failed operation does not say why: %q, %q", why, detail)
	}
	o.post(failed+"/commit", "").wants(400, "a failed one cannot be committed")
	before := o.operate(`{"ids":["f-1"],`+muted+`}`, "preview")
	o.patchResource(builder.Organization(o.name).Build(), `{"spec":{"triage":{"requireReason":true}}}`)
	harness.Eventually(t, func(g Gomega) {
		problem := o.post(operationsPath, `{"ids":["f-1"],"set":{"user_status":"muted"}}`).object()
		g.Expect(problem["code"]).To(Equal("reason_required"))
		g.Expect(problem["field"]).To(Equal("set.reason"))
	})
	problem := o.post(operationsPath+"/"+before.text("id")+"/commit", "").badRequest("a preview of before").object()
	if problem["field"] != "set.reason" || !strings.Contains(problem.text("detail"), "set.reason of a new operation") {
		t.Errorf("what is set cannot be changed: got %v", problem)
	}
}
