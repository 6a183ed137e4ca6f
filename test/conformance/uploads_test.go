package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Uploads and scans are additions to the contract.

// sarifOf returns a file with one run per tool, each of which reports the problem.
func sarifOf(problem string, tools ...string) string {
	return builder.SARIFRuns(tools, builder.Result{Rule: "R1", Message: problem, Path: "src/a.go", Line: 7})
}

func (c *caller) upload(path, body string) answer {
	return c.post(path, body, apiclient.Header("Content-Type", "application/sarif+json"))
}

// uploadTarget returns an organization with a project, and the path for uploads to it.
func uploadTarget(t *testing.T) (o *organization, path string) {
	t.Helper()
	o = newOrganization(t)
	harness.Eventually(t, func(g Gomega) { g.Expect(o.get(projectPath("repo", "proj")).Status).To(Equal(http.StatusOK)) })
	return o, projectPath("repo", "proj") + "/scans"
}

func TestUploads_AFileOfTwoToolsIsTwoScansOfOneUpload(t *testing.T) {
	o, path := uploadTarget(t)
	upload := o.upload(path+"?commit=8f3e1c2d", sarifOf("one", "alpha", "beta")).wants(200, "an upload").object()
	wantsShape(t, "an upload", upload, uploadShape)
	scans := upload.records("scans")
	wantsShapes(t, "its scans", scans, scanShape)
	if len(scans) != 2 || upload["status"] != "completed" || upload["scan_count"] != 2.0 {
		t.Fatalf("the upload is %v", upload)
	}
	first := scans[0]
	wantsShape(t, "its progress", first.object("progress"), scanProgressShape)
	wantsShape(t, "its counts", first.object("counts"), scanCountsShape)
	want := record{"imported_by": "apikey/conformance", "commit_hash": "8f3e1c2d", "tool": "alpha"}
	wantsMembers(t, "the first scan", want, first)
	wantsMembers(t, "its counts", record{"created": 1.0}, first.object("counts"))
	harness.Within(t, replicaDelay, func(g Gomega) {
		g.Expect(cmp.Diff(upload, o.get("/v2/uploads/"+upload.text("id")).wants(200, "read again").object())).To(BeEmpty())
	})
	harness.Eventually(t, func(g Gomega) {
		g.Expect(o.get(with("/v2/scans", "upload_id="+upload.text("id"))).page().Total).To(Equal(2))
		g.Expect(o.get("/v2/scans/" + first.text("id")).object()).To(Equal(first))
		g.Expect(o.get("/v1/findings").page().Total).To(Equal(2))
		finding := o.get("/v1/findings").page().Items[0]
		history := o.get("/v2/findings/" + finding.text("id") + "/history").object().list("transitions")
		g.Expect(history).NotTo(BeEmpty())
		g.Expect(history[0]).To(HaveKeyWithValue("imported_by", first["imported_by"]), "the key that imported it")
	})
}

func TestUploads_APullRequestShowsWhatTheBaseDoesNotHave(t *testing.T) {
	o, path := uploadTarget(t)
	o.upload(path, sarifOf("one", "alpha")).wants(200, "the base")
	harness.Eventually(t, func(g Gomega) { g.Expect(o.get("/v1/findings").page().Total).To(Equal(1)) })
	base := o.get("/v1/findings").page().ids()
	same := o.upload(path+"?ref=refs/pull/7/head&fail_on=new&commit=8f3e1c2d", sarifOf("one", "alpha")).wants(200, "the base itself").object()
	review := same.records("reviews")[0]
	wantsShape(t, "a review", review, uploadReviewShape)
	wantsMembers(t, "the base itself", record{"gate": "passed", "open": 0.0, "known": 1.0, "base_never_scanned_with": []any{}}, review)
	wantsMembers(t, "its scan", record{"created": 0.0, "unchanged": 1.0}, same.records("scans")[0].object("counts"))
	moved := strings.ReplaceAll(sarifOf("two", "alpha"), "R1", "R2")
	query := "?pull_request=7&fail_on=high&commit=9e8d7c6b&pr_title=Refunds&pr_author=jo"
	upload := o.upload(path+query, moved).wants(200, "the next commit").object()
	wantsShape(t, "an upload", upload, uploadShape)
	wantsShapes(t, "its scans", upload.records("scans"), scanShape)
	wantsMembers(t, "its scan", record{"created": 1.0, "unchanged": 0.0}, upload.records("scans")[0].object("counts"))
	review = upload.records("reviews")[0]
	wantsShapes(t, "its issues", review.records("issues"), uploadReviewIssueShape)
	wantsMembers(t, "the next commit", record{
		"pr_number": 7.0, "commit_hash": "9e8d7c6b", "created": 1.0, "known": 0.0, "fixed": 1.0, "open": 1.0, "open_high": 1.0,
		"fail_on": "high", "gate": "failed", "gate_reason": "1 open issue of high severity that the base does not have.",
	}, review)
	wantsMembers(t, "its issue", record{"severity": "high", "title": "two", "place": "src/a.go:7", "new": true}, review.records("issues")[0])
	harness.Contains(t, "the comment", review.text("markdown"), "**Failed**")
	harness.Within(t, replicaDelay, func(g Gomega) {
		g.Expect(cmp.Diff(upload, o.get("/v2/uploads/"+upload.text("id")).wants(200, "read again").object())).To(BeEmpty())
	})
	issue := review.records("issues")[0].text("issue_id")
	harness.Eventually(t, func(g Gomega) {
		g.Expect(o.get("/v2/issues/" + issue).object()["review_id"]).To(Equal(review["review_id"]))
		g.Expect(o.get("/v2/reviews/" + review.text("review_id")).object()).
			To(And(HaveKeyWithValue("pr_title", "Refunds"), HaveKeyWithValue("pr_author", "jo")))
		g.Expect(o.get("/v1/findings").page().ids()).To(Equal(base))
	})
}

func TestUploads_ARefThatCannotBeComparedIsRefused(t *testing.T) {
	o, path := uploadTarget(t)
	repository := builder.Repository("repo").In(o.namespace).Build()
	o.patchResource(repository, `{"spec":{"defaultBranch":null,"scanBranch":null}}`)
	o.upload(path+"?ref=refs/heads/main", sarifOf("one", "alpha")).badQuery("no branch is named")
	o.patchResource(repository, `{"spec":{"defaultBranch":"main"}}`)
	for _, ref := range []string{"refs/heads/feature", "feature"} {
		o.upload(path+"?ref="+ref, sarifOf("one", "alpha")).badQuery("another branch")
	}
	o.upload(path+"?ref=refs/pull/7/merge", sarifOf("one", "alpha")).wants(400, "a pull request without a commit")
	for _, ref := range []string{"refs/heads/main", "main"} {
		o.upload(path+"?ref="+ref, sarifOf("one", "alpha")).wants(200, "the branch")
	}
}

func TestUploads_WhatIsSkippedIsCountedByReason(t *testing.T) {
	o, path := uploadTarget(t)
	suppressed := strings.Replace(sarifOf("one", "alpha"), `"ruleId"`, `"suppressions":[{"kind":"inSource"}],"ruleId"`, 1)
	upload := o.upload(path, suppressed).wants(200, "a result that its source suppresses").object()
	scan := upload.records("scans")[0]
	reasons := scan.records("skipped_because")
	wantsShapes(t, "the reasons", reasons, scanSkipShape)
	if len(reasons) != 1 || reasons[0]["count"] != 1.0 || scan.object("counts")["skipped"] != 1.0 {
		t.Errorf("the scan is %v", scan)
	}
}

func TestUploads_ADryRunHasTheChangesAndStoresNothing(t *testing.T) {
	o, path := uploadTarget(t)
	upload := o.upload(path+"?dry_run=true", sarifOf("one", "alpha")).wants(200, "a dry run").object()
	wantsShape(t, "a dry run", upload, uploadShape)
	wantsShapes(t, "its scans", upload.records("scans"), scanShape)
	wantsShapes(t, "its changes", upload.records("changes"), uploadChangeShape)
	wantsMembers(t, "the answer", record{"id": "", "status": nil, "dry_run": true}, upload)
	wantsMembers(t, "counts", record{"created": 1.0}, upload.records("scans")[0].object("counts"))
	// Another tool's file, which closes nothing of the first one's, is all that is ever shown.
	other := strings.ReplaceAll(sarifOf("one", "beta"), "src/a.go", "src/b.go")
	scan := o.upload(path, other).wants(200, "an upload").object().records("scans")[0]
	harness.Eventually(t, func(g Gomega) {
		g.Expect(o.get("/v2/scans").page().ids()).To(Equal([]string{scan.id()}))
		findings := o.get("/v1/findings").page().Items
		g.Expect(findings).To(HaveLen(1))
		g.Expect(findings[0].object("location")).To(HaveKeyWithValue("file_path", "src/b.go"))
	})
}

func TestUploads_WhatIsNotTakenIsRefused(t *testing.T) {
	o, path := uploadTarget(t)
	var tools []string
	for i := range 33 {
		tools = append(tools, fmt.Sprintf("tool-%d", i))
	}
	for reason, tc := range map[string]struct{ query, body string }{
		"not SARIF":                  {"", `{}`},
		"no run":                     {"", `{"version":"2.1.0","runs":[]}`},
		"an unknown category":        {"?category=code", sarifOf("one", "alpha")},
		"a dry run that is none":     {"?dry_run=yes", sarifOf("one", "alpha")},
		"a dry run that is misspelt": {"?dryrun=true", sarifOf("one", "alpha")},
		"a tool that is long":        {"?tool=" + strings.Repeat("a", 129), sarifOf("one", "alpha")},
	} {
		o.upload(path+tc.query, tc.body).wants(400, reason)
	}
	o.upload(path, sarifOf("one", tools...)).badRequest("33 scans")
	o.post(path, sarifOf("one", "alpha")).wants(400, "the media type application/json")
	o.upload(projectPath("repo", "none")+"/scans", sarifOf("one", "alpha")).notFound("no such project")
	o.upload(projectPath("none", "proj")+"/scans", sarifOf("one", "alpha")).notFound("no such repository")
	o.get("/v2/uploads/u-none").notFound("no such upload")
	o.get("/v2/scans/s-none").notFound("no such scan")
	first := o.upload(path+"?started_at=2026-01-02T00:00:00Z", sarifOf("one", "alpha")).wants(200, "the first").object()
	taken := first.records("scans")[0].id()
	var shown []string
	harness.Eventually(t, func(g Gomega) {
		shown = o.get("/v2/scans").page().ids()
		g.Expect(shown).To(ContainElement(taken))
	})
	harness.Same(t, "scans, with any that was recorded before this one", []string{taken}, shown)
	a := o.upload(path+"?started_at=2026-01-01T00:00:00Z", sarifOf("one", "alpha")).wants(409, "an older scan")
	refusal := harness.Decoded[struct{ Detail, Code string }](t, a.Body)
	if refusal.Code != "refused" || !strings.Contains(refusal.Detail, "before the last completed one") {
		t.Errorf("the refusal is %s", a.Body)
	}
}

// A key that lists no scopes has only those that existed before this scope.
func TestUploads_NeedTheScopeListed(t *testing.T) {
	o, path := uploadTarget(t)
	o.key("none").upload(path, sarifOf("one", "alpha")).wants(403, "no scope listed")
	o.key("triage", v1alpha1.ScopeFindingsRead, v1alpha1.ScopeFindingsTriage).upload(path, sarifOf("one", "alpha")).wants(403, "other scopes")
	o.key("import", v1alpha1.ScopeFindingsImport).upload(path, sarifOf("one", "alpha")).wants(200, "the scope alone")
}
