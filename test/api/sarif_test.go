package api_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/uploads"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const sarifsPath = "/repos/acme/payments/code-scanning/sarifs"

// named returns an organization whose repository is acme/payments with the branch main, and a key that may
// import.
func named(t *testing.T) (*organization, *caller) {
	t.Helper()
	o, c := uploader(t)
	o.rename(c, "repo", "Acme/payments")
	return o, c
}

// rename sets a repository's full name and the branch main, and waits until it is found by that
// name.
func (o *organization) rename(c *caller, repository, fullName string) {
	o.t.Helper()
	env.Patch(o.t, builder.Repository(repository).In(o.namespace).Build(), `{"spec":{"defaultBranch":"main","fullName":"`+fullName+`"}}`)
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(string(c.get("/v2/repos/" + repository).body)).To(ContainSubstring(`"full_name":"` + fullName + `"`))
	})
}

// projects assigns the folders to the repository's projects, and creates the missing ones.
func (o *organization) projects(folders map[string]string) {
	o.t.Helper()
	for name, folder := range folders {
		project := builder.Project(name).In(o.namespace).Build()
		harness.Must(o.t, client.IgnoreAlreadyExists(env.Client.Create(o.t.Context(), project.DeepCopy())))
		env.Patch(o.t, project, `{"spec":{"relativePath":"`+folder+`"}}`)
	}
}

// forGitHub returns the body of an upload of a file to GitHub.
func forGitHub(document string, more ...string) string {
	members := append([]string{`"commit_sha":"abc"`, `"ref":"refs/heads/main"`,
		`"sarif":"` + base64.StdEncoding.EncodeToString([]byte(apiclient.Gzip(document))) + `"`}, more...)
	return "{" + strings.Join(members, ",") + "}"
}

// postAsGitHub posts a body to a repository's path in GitHub's form.
func (c *caller) postAsGitHub(fullName, body string, changes ...change) answer {
	c.t.Helper()
	return c.do(http.MethodPost, "/repos/"+fullName+"/code-scanning/sarifs", body, changes...)
}

// submit posts a body about acme/payments, and follows the upload to its end.
func (c *caller) submit(body string) openapi.SarifStatus {
	c.t.Helper()
	return c.submitTo("acme/payments", body)
}

// submitTo posts a body about a repository, and follows the upload to its end.
func (c *caller) submitTo(fullName, body string) openapi.SarifStatus {
	c.t.Helper()
	return c.follow(c.postAsGitHub(fullName, body).wants(http.StatusAccepted, "an upload"))
}

func (c *caller) follow(a answer) openapi.SarifStatus {
	c.t.Helper()
	receipt := decoded[openapi.SarifReceipt](a)
	var status openapi.SarifStatus
	harness.Within(c.t, 2*time.Minute, func(g Gomega) {
		status = decoded[openapi.SarifStatus](c.get(strings.TrimPrefix(receipt.Url, c.server.url(""))).wants(http.StatusOK, "the upload"))
		g.Expect(status.ProcessingStatus).NotTo(Equal(openapi.SarifStatusProcessingStatusPending))
	})
	return status
}

// wantsFailed fails the test unless the upload failed with one error that contains the text.
func (c *caller) wantsFailed(status openapi.SarifStatus, want string) {
	c.t.Helper()
	if status.ProcessingStatus != openapi.SarifStatusProcessingStatusFailed || status.Errors == nil || len(*status.Errors) != 1 ||
		!strings.HasPrefix((*status.Errors)[0], "rejecting SARIF") || !strings.Contains((*status.Errors)[0], want) {
		c.t.Errorf("the upload is %s, %v; want it failed with %q", status.ProcessingStatus, status.Errors, want)
	}
}

func (c *caller) wantsComplete(status openapi.SarifStatus) {
	c.t.Helper()
	if status.ProcessingStatus != openapi.SarifStatusProcessingStatusComplete || status.Errors != nil {
		c.t.Errorf("the upload is %s, %v", status.ProcessingStatus, status.Errors)
	}
}

// open counts the open findings of each project.
func (o *organization) open() map[string]int {
	out := map[string]int{}
	for _, finding := range o.everything() {
		if finding.Spec.Closed == nil {
			out[string(finding.Spec.ProjectRef.Name)]++
		}
	}
	return out
}

func TestAnInvalidUploadInGitHubsFormIsRejected(t *testing.T) {
	o, c := named(t)
	with := func(content string) string {
		return `{"commit_sha":"abc","ref":"refs/heads/main","sarif":"` + base64.StdEncoding.EncodeToString([]byte(content)) + `"}`
	}
	pull := func(number, commit string) string {
		return strings.NewReplacer("heads/main", "pull/"+number+"/merge", `"abc"`, `"`+commit+`"`).Replace(forGitHub(sarif("one")))
	}
	for name, tc := range map[string]struct {
		body, want, field string
		changes           []change
	}{
		"cut off":                {body: forGitHub(sarif("one"))[:150], want: "rejecting SARIF"},
		"a member twice":         {body: forGitHub(sarif("one"), `"ref":"refs/heads/other"`), want: "given twice"},
		"not compressed":         {body: with(sarif("one")), want: "not gzip", field: "sarif"},
		"compressed and cut off": {body: with(apiclient.Gzip(sarif("one"))[:60]), want: "damaged"},
		"started in the future":  {body: forGitHub(sarif(), `"started_at":"2999-01-01T00:00:00Z"`), want: "in the future", field: "started_at"},
		"a pull request 0":       {body: pull("0", "8f3e1c2d"), want: "its number must be at least 1", field: "ref"},
		"a commit that is none":  {body: pull("7", "main"), want: "commit_sha must be the hash", field: "commit_sha"},
		"not SARIF":              {body: forGitHub(`{}`), want: "not SARIF 2.1.0"},
		"a compressed request":   {body: apiclient.Gzip(forGitHub(sarif())), changes: []change{header("Content-Encoding", "gzip")}, want: "must not be compressed"},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.postAsGitHub("acme/payments", tc.body, tc.changes...).wants(http.StatusBadRequest, name)
			said := harness.Decoded[struct{ Message, Error, Detail, Field string }](t, a.body)
			if !strings.HasPrefix(said.Message, "rejecting SARIF: ") || !strings.Contains(said.Message, tc.want) || said.Error != "Invalid request body" || said.Detail == "" {
				t.Errorf("the answer is %s, want %q in its message", a.body, tc.want)
			}
			if tc.field != "" && said.Field != tc.field {
				t.Errorf("the wrong member is %q, want %q", said.Field, tc.field)
			}
		})
	}
	harness.Same(t, "the findings that are stored", 0, len(o.everything()))
	long := forGitHub(sarif(), `"x":"`+strings.Repeat("a", 100_000)+`"`)
	c.postAsGitHub("acme/payments", long).wants(http.StatusRequestEntityTooLarge, "too long").says(`"message":"rejecting SARIF: `)
}

func TestOnlyAnUploadOfItsBranchIsTaken(t *testing.T) {
	o, c := named(t)
	for ref, want := range map[string]string{
		"refs/heads/feature": "is not the branch main", "refs/tags/main": "is not a branch, and the project has the findings of the branch main: upload", "refs/pull/7/files": "is not a branch",
		"refs/heads/refs/heads/main": "is not a branch", "HEAD": "is not a branch, and the project",
	} {
		status := c.submit(strings.Replace(forGitHub(sarif("one")), "refs/heads/main", ref, 1))
		c.wantsFailed(status, ref+" "+want)
	}
	harness.Same(t, "the findings that are stored", 0, len(o.everything()))
	byName := strings.Replace(forGitHub(sarif("one")), "refs/heads/main", "main", 1)
	a := c.postAsGitHub("acme/payments", byName, header("Content-Type", "application/x-www-form-urlencoded")) // as curl sends it
	c.wantsComplete(c.follow(a.wants(http.StatusAccepted, "the branch's name")))
	env.Patch(t, builder.Repository("repo").In(o.namespace).Build(), `{"spec":{"scanBranch":"HEAD"}}`)
	c.wantsFailed(c.submit(forGitHub(sarif("one"))), "spec.scanBranch (or without one spec.defaultBranch) is HEAD, which is not a branch: set spec.scanBranch")
}

func TestAPullRequestIsReviewedInGitHubsShape(t *testing.T) {
	for name, folders := range map[string]map[string]string{
		"of one project": {"proj": ""}, "of two projects": {"proj": "src", "other": "lib"},
	} {
		t.Run(name, func(t *testing.T) {
			o, c := named(t)
			o.projects(folders)
			c.wantsComplete(c.submit(forGitHub(sarif("one", "two"))))
			body := strings.NewReplacer("refs/heads/main", "refs/pull/7/merge", `"abc"`, `"8f3e1c2d"`).Replace(forGitHub(sarif("one", "three")))
			a := c.postAsGitHub("acme/payments", body).wants(http.StatusAccepted, "a pull request")
			c.wantsComplete(c.follow(a))
			upload := c.uploaded(decoded[openapi.SarifReceipt](a).Id)
			if len(upload.Reviews) != 1 || upload.Reviews[0].PrNumber != 7 || upload.Reviews[0].Created != 1 || upload.Reviews[0].Known != 1 {
				t.Errorf("the reviews are %+v", upload.Reviews)
			}
			harness.Same(t, "open findings", map[string]int{"proj": 2}, o.open())
		})
	}
}

func TestEachResultGoesToTheProjectThatHoldsItsFile(t *testing.T) {
	o, c := named(t)
	o.projects(map[string]string{"proj": "src", "deep": "./src/one.go/", "other": "lib"})
	document := sarif("one", "two")
	a := c.postAsGitHub("acme/payments", forGitHub(document)).wants(http.StatusAccepted, "two projects")
	c.wantsComplete(c.follow(a))
	harness.Same(t, "open findings", map[string]int{"deep": 1, "proj": 1}, o.open())
	upload := c.uploaded(decoded[openapi.SarifReceipt](a).Id)
	if len(upload.Scans) != 2 || upload.ScanCount != 2 || upload.ProjectId != "" || upload.RepoId != "repo" {
		t.Errorf("the upload is %+v", upload)
	}
	// The findings of a project without results stay open, unless the tool reports that it scanned the project.
	c.wantsComplete(c.submit(forGitHub(sarif("one"))))
	harness.Same(t, "open findings after a scan of one project", map[string]int{"deep": 1, "proj": 1}, o.open())
	looked := strings.Replace(sarif("one"), `"results"`, `"artifacts":[{"location":{"uri":"src/two.go"},"roles":["analysisTarget"]}],"results"`, 1)
	c.wantsComplete(c.submit(forGitHub(looked)))
	harness.Same(t, "open findings after a scan of both", map[string]int{"deep": 1}, o.open())
}

func TestAnUploadThatNoProjectTakesFailsAndNamesThem(t *testing.T) {
	o, c := named(t)
	o.projects(map[string]string{"proj": "services/api", "web": "services/web"})
	c.wantsFailed(c.submit(forGitHub(sarif("one"))), "no project holds 1 of the results (src/one.go): the repository has the projects proj (services/api), web (services/web)")
	c.wantsFailed(c.submit(forGitHub(sarif())), "which of the projects")
	o.projects(map[string]string{"proj": "src", "web": "src"})
	c.wantsFailed(c.submit(forGitHub(sarif("one"))), "proj, web have the same spec.relativePath")
	harness.Same(t, "the findings that are stored", 0, len(o.everything()))
}

// The job of a deleted project still runs. Its uploads close nothing of the only project that is left.
func TestTheJobOfADeletedProjectClosesNothing(t *testing.T) {
	o, c := named(t)
	o.projects(map[string]string{"proj": "services/api", "web": "services/web"})
	in := func(folder, document string) string { return strings.ReplaceAll(document, "src/", folder+"/") }
	c.wantsComplete(c.submit(forGitHub(in("services/api", sarif("one", "two")))))
	web := builder.Project("web").In(o.namespace).Build()
	env.Patch(t, web, `{"metadata":{"finalizers":["test.example/kept"]}}`)
	harness.Must(t, env.Client.Delete(t.Context(), web))
	for _, document := range []string{sarif(), in("services/web", sarif("one"))} {
		c.wantsFailed(c.submit(forGitHub(document)), "project web is being deleted: stop its jobs, and upload again when it is gone")
	}
	env.Patch(t, web, `{"metadata":{"finalizers":null}}`)
	c.wantsFailed(c.submit(forGitHub(in("services/web", sarif("one", "three")))), "lies in services/api, the folder of the only project proj, but it would close")
	harness.Same(t, "open findings", map[string]int{"proj": 2}, o.open())
	c.wantsComplete(c.submit(forGitHub(in("services/api", sarif("one")))))
	harness.Same(t, "open findings after its own job", map[string]int{"proj": 1}, o.open())
	c.wantsComplete(c.submit(forGitHub(sarif())))
	harness.Same(t, "open findings after a scan that found nothing", map[string]int{}, o.open())
}

// A tool may scan the whole repository although its only project is a folder. A folder may hold one of its own name.
func TestAScanOfMoreThanTheFolderClosesTheLastFindingInTheFolder(t *testing.T) {
	for folder, inside := range map[string]string{"services/api": "services/api/a.py", "shop": "shop/settings.py"} {
		o, c := named(t)
		o.projects(map[string]string{"proj": folder})
		at := func(paths ...string) string {
			results := make([]builder.Result, len(paths))
			for i, path := range paths {
				results[i] = builder.Result{Rule: "R1", Message: "about " + path, Path: path, Line: 7}
			}
			return forGitHub(builder.SARIF("lint", results...))
		}
		c.wantsComplete(c.submit(at(inside, "manage.py")))
		c.wantsComplete(c.submit(at("manage.py", "new.py")))
		harness.Same(t, folder+": open findings", map[string]int{"proj": 2}, o.open())
		for _, finding := range o.everything() {
			harness.Same(t, finding.Spec.Details.Place().FilePath+" is closed", finding.Spec.Details.Place().FilePath == inside,
				finding.Spec.Closed != nil)
		}
	}
}

// A tool that runs in the project's folder may report paths from there.
func TestPathsMayBeginAtTheFolderOfTheOnlyProject(t *testing.T) {
	o, c := named(t)
	o.projects(map[string]string{"proj": "services/api"})
	for _, problems := range [][]string{{"one", "two"}, {"one"}, {"three"}, {}} {
		c.wantsComplete(c.submit(forGitHub(sarif(problems...))))
		harness.Same(t, "open findings", len(problems), o.open()["proj"])
	}
}

func TestWhatIsRefusedForOneProjectIsImportedIntoNone(t *testing.T) {
	o, c := named(t)
	c.wantsComplete(c.submit(forGitHub(sarif(numbered(30)...))))
	o.projects(map[string]string{"proj": "src", "other": "lib"})
	both := strings.Replace(sarif("one", "two"), "src/two.go", "lib/two.go", 1)
	refused := c.submit(forGitHub(both))
	c.wantsFailed(refused, "it would close 30 of 30 open findings")
	c.wantsFailed(refused, "This route cannot force an import: if force is right, upload the results of that project alone to POST /v2/repos/repo/projects/{project_id}/scans?force=true, then")
	harness.Same(t, "open findings", map[string]int{"proj": 30}, o.open())
}

func TestARepositoryIsFoundByItsFullName(t *testing.T) {
	o, c := named(t)
	post := func(fullName string) answer { return c.postAsGitHub(fullName, forGitHub(sarif("one"))) }
	post("ACME/Payments").wants(http.StatusAccepted, "in another case")
	for _, fullName := range []string{"acme/other", "acme%2Fpayments/x", "acme/payments.git", "acme/..", "../payments", "%2e%2e/payments", "acme/paymentſ", "acme/payments%20", strings.Repeat("a", 200) + "/" + strings.Repeat("b", 200)} {
		post(fullName).wants(http.StatusNotFound, fullName)
	}
	post("acme/"+strings.Repeat("b", 254)).wants(http.StatusBadRequest, "a long name")
	o.create(builder.Repository("another").In(o.namespace).Build()) // the later one is the first by name
	o.rename(c, "another", "acme/Payments")
	post("acme/payments").wants(http.StatusConflict, "two of one name").
		says(`"message":"rejecting SARIF: several repositories have the full name \"acme/payments\": another, repo: give each`, "if they are one repository, keep the one that has the decisions")
	o.rename(c, "another", "acme/group/Payments")
	o.create(builder.Project("theirs").In(o.namespace).Repository("another").Build())
	post("acme%2Fgroup/payments").wants(http.StatusAccepted, "a group in a group")
	for _, fullName := range []string{"acme/.github", "acme/pay ments"} { // an import would not create the latter
		o.rename(c, "another", fullName)
		post(strings.ReplaceAll(fullName, " ", "%20")).wants(http.StatusAccepted, fullName)
	}
}

// The host in the file, or in checkout_uri, is compared with the repository's: results of a repository on another
// host are refused.
func TestTheHostTellsRepositoriesOfOneNameApart(t *testing.T) {
	o, c := named(t)
	at := func(repository, url string) {
		env.Patch(t, builder.Repository(repository).In(o.namespace).Build(), `{"spec":{"url":"`+url+`"}}`)
	}
	post := func(root string) answer {
		return c.postAsGitHub("acme/payments", forGitHub(sarif("one"), `"checkout_uri":"`+root+`"`))
	}
	at("repo", "https://github.com/acme/payments")
	for _, root := range []string{"file:///home/runner/work/payments", "https://github.com/acme/payments.git", "https://ghe.example.com/acme/fork"} {
		c.wantsComplete(c.follow(post(root).wants(http.StatusAccepted, root)))
	}
	const elsewhere = "https://ghe.example.com/acme/payments"
	post(elsewhere).wants(http.StatusConflict, "another host").says("the repository repo with that full name has another URL: set its spec.url to the address of its page, set its spec.cloneURL to the URL")
	o.create(builder.Repository("second").In(o.namespace).Build())
	o.create(builder.Project("theirs").In(o.namespace).Repository("second").Build())
	at("second", elsewhere)
	o.rename(c, "second", "acme/payments")
	c.wantsComplete(c.follow(post(elsewhere).wants(http.StatusAccepted, "the other of two")))
	harness.Same(t, "open findings", map[string]int{"proj": 1, "theirs": 1}, o.open())
	post("file:///src").wants(http.StatusConflict, "either of two").says("repo, second")
}

func TestAnUploadIsReadWithItsRepositoryAlone(t *testing.T) {
	o, c := named(t)
	o.create(builder.Repository("second").In(o.namespace).Build())
	o.rename(c, "second", "acme/second")
	id := decoded[openapi.SarifReceipt](c.postAsGitHub("acme/payments", forGitHub(sarif("one"))).wants(http.StatusAccepted, "an upload")).Id
	c.get("/repos/acme/second/code-scanning/sarifs/"+id).wants(http.StatusNotFound, "another repository")
	c.get("/repos/acme/none/code-scanning/sarifs/"+id).wants(http.StatusNotFound, "no repository")
	c.get(sarifsPath+"/u-none").wants(http.StatusNotFound, "no upload")
	other, stranger := named(t)
	stranger.get(sarifsPath+"/"+id).wants(http.StatusNotFound, "another organization")
	harness.Same(t, "the findings of another organization", 0, len(other.everything()))
}

func TestABombInGitHubsShapeIsRefused(t *testing.T) {
	o, c := bounded(t, uploads.Limits{Total: 1, PerOrganization: 1, Bytes: 2 << 20})
	o.rename(c, "repo", "acme/payments")
	bomb := forGitHub(`{"version":"2.1.0","x":"` + strings.Repeat(" ", 2<<20) + `"`)
	for range 3 {
		c.postAsGitHub("acme/payments", bomb).wants(http.StatusRequestEntityTooLarge, "a bomb").says("larger than 1 MiB")
	}
	harness.Within(t, time.Minute, func(g Gomega) {
		g.Expect(c.postAsGitHub("acme/payments", forGitHub(sarif("one"))).status).To(Equal(http.StatusAccepted))
	})
}

func TestAToolThatDidNotRunToItsEndIsAnUnsuccessfulExecution(t *testing.T) {
	o, c := named(t)
	document := strings.Replace(sarif("one"), `"results"`, `"invocations":[{"executionSuccessful":false}],"results"`, 1)
	status := c.submit(forGitHub(document))
	if status.Errors == nil || len(*status.Errors) != 1 || !strings.HasPrefix((*status.Errors)[0], "unsuccessful execution") {
		t.Errorf("the upload is %+v", status)
	}
	harness.Same(t, "open findings", map[string]int{"proj": 1}, o.open())
}
