package api_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/uploads"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const uploadPath = "/v2/repos/repo/projects/proj/scans"

// sarif returns a file with these problems.
var sarif = builder.Problems

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("problem%d", i)
	}
	return out
}

// uploader returns an organization with a key that may import.
func uploader(t *testing.T) (*organization, *caller) {
	t.Helper()
	o := newOrganization(t)
	harness.Must(t, env.LetUploads(t.Context(), o.namespace))
	c := o.key("ci", v1alpha1.ScopeFindingsImport, v1alpha1.ScopeFindingsRead, v1alpha1.ScopeReposRead)
	harness.Eventually(t, func(g Gomega) { g.Expect(c.get("/v2/repos/repo/projects/proj").status).To(Equal(http.StatusOK)) })
	return o, c
}

var asSARIF = header("Content-Type", "application/sarif+json")

func (c *caller) upload(query, body string, changes ...change) answer {
	c.t.Helper()
	return c.do(http.MethodPost, uploadPath+query, body, append([]change{asSARIF}, changes...)...)
}

// uploaded returns an upload as the facade shows it later.
func (c *caller) uploaded(id string) openapi.Upload {
	c.t.Helper()
	return decoded[openapi.Upload](c.get("/v2/uploads/"+id).wants(http.StatusOK, "the upload"))
}

// everything returns the organization's findings from the API server.
func (o *organization) everything() []v1alpha1.Finding {
	o.t.Helper()
	return testenv.List(o.t, NewWithT(o.t), env, &v1alpha1.FindingList{}, client.InNamespace(o.namespace)).Items
}

func TestADryRunSaysThatTheScannerDidNotFinish(t *testing.T) {
	o, c := uploader(t)
	crashed := `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":null}]}`
	upload := decoded[openapi.Upload](c.upload("?dry_run=true", crashed).wants(http.StatusOK, "a dry run of a scanner that crashed"))
	harness.Contains(t, "the warnings", strings.Join(upload.Warnings, "\n"), "would be recorded as failed")
	harness.Contains(t, "the scan's message", upload.Scans[0].Message, "nothing was closed")
	scans := testenv.List(t, NewWithT(t), env, &v1alpha1.ScanList{}, client.InNamespace(o.namespace))
	harness.Same(t, "the scans that are recorded", 0, len(scans.Items))
}

// What a file does not report, a key without the scope to read it gets as numbers: an empty file would show it everything.
func TestADryRunNamesOnlyWhatTheKeyMayRead(t *testing.T) {
	o, reader := uploader(t)
	reader.upload("", sarif("secret")).wants(http.StatusOK, "a finding")
	reader.upload("?pull_request=5&commit="+headCommit, sarif("hidden")).wants(http.StatusOK, "an issue")
	blind := o.key("blind", v1alpha1.ScopeFindingsImport)
	reviewer := o.key("reviewer", v1alpha1.ScopeFindingsImport, v1alpha1.ScopeReviewsRead)
	renamed := builder.SARIF("lint2", builder.Result{Rule: "R1", Message: "mine", Path: "src/mine.go", Line: 7})
	moved := strings.Replace(sarif("secret"), "src/", "probe/", 1)
	review := "&pull_request=5&commit=" + strings.Repeat("b", 40)
	for name, tc := range map[string]struct {
		by          *caller
		query, body string
		want        []string
		unlisted    int32
	}{
		"an import":                    {by: reader, body: sarif("mine"), want: []string{"close secret", "create mine"}},
		"an import, unread":            {by: blind, body: sarif("mine"), want: []string{"create mine"}, unlisted: 1},
		"an import, other scope":       {by: reviewer, body: sarif("mine"), want: []string{"create mine"}, unlisted: 1},
		"the tool's other name":        {by: blind, query: "&formerly=lint", body: renamed, want: []string{"create mine"}, unlisted: 1},
		"a finding that is reported":   {by: reader, body: moved, want: []string{"update secret recognised by file moved"}},
		"one that may not be read":     {by: blind, body: moved, want: []string{"update secret"}},
		"a review":                     {by: reviewer, query: review, body: sarif(), want: []string{"resolve hidden"}},
		"a review, unread":             {by: blind, query: review, body: sarif(), want: []string{}, unlisted: 1},
		"a review, other scope":        {by: reader, query: review, body: sarif(), want: []string{}, unlisted: 1},
		"an issue that is still there": {by: blind, query: review, body: sarif("hidden"), want: []string{"see hidden"}},
	} {
		upload := decoded[openapi.Upload](tc.by.upload("?dry_run=true&force=true"+tc.query, tc.body).wants(http.StatusOK, name))
		got := []string{}
		for _, change := range upload.Changes {
			why, _, _ := strings.Cut(change.Because, ":")
			got = append(got, strings.TrimSpace(change.Action+" "+change.Title+" "+why))
		}
		slices.Sort(got)
		harness.Same(t, name+": changes", tc.want, got)
		harness.Same(t, name+": unlisted changes", tc.unlisted, upload.UnlistedChanges)
	}
}

func TestAFileThatIsNotSARIFIsRefused(t *testing.T) {
	o, c := uploader(t)
	for name, tc := range map[string]struct {
		query, body, want string
		changes           []change
	}{
		"not JSON":               {body: "<sarif/>", want: "not JSON"},
		"no tool":                {body: `{"version":"2.1.0","runs":[{"results":[]}]}`, want: "it names no tool (tool.driver.name): name it with --tool (over REST tool)"},
		"not compressed":         {body: sarif(), changes: []change{header("Content-Encoding", "gzip")}, want: "not gzip"},
		"compressed and cut off": {body: apiclient.Gzip(sarif("one"))[:40], changes: []change{header("Content-Encoding", "X-GZIP")}, want: "damaged"},
		"its checksum cut off":   {body: apiclient.Gzip(sarif("one"))[:len(apiclient.Gzip(sarif("one")))-4], changes: []change{header("Content-Encoding", "gzip")}, want: `"field":"content-encoding"`},
		"another coding":         {body: sarif(), changes: []change{header("Content-Encoding", "br")}, want: "Content-Encoding must be gzip"},
		"another media type":     {body: sarif(), changes: []change{header("Content-Type", "application/json")}, want: "application/sarif+json"},
		"started in the future":  {query: "?started_at=2999-01-01T00:00:00Z", body: sarif(), want: `"field":"started_at"`},
	} {
		c.upload(tc.query, tc.body, tc.changes...).wants(http.StatusBadRequest, name).says(tc.want)
	}
	harness.Same(t, "the findings that are stored", 0, len(o.everything()))
}

// A refused upload leaves a failed Scan: it shows the refusal to those who did not see the response.
func TestAnUploadIsRefusedInThePluginsWords(t *testing.T) {
	_, c := uploader(t)
	c.upload("", sarif(numbered(30)...)).wants(http.StatusOK, "the first")
	c.upload("", sarif("other")).wants(http.StatusConflict, "most would be closed").
		says("it would close 30 of 30 open findings").says("with a key that has findings:read")
	c.upload("?started_at=2020-01-01T00:00:00Z", sarif("other")).wants(http.StatusConflict, "older than the last")
	dry := decoded[openapi.Upload](c.upload("?dry_run=true&started_at=2020-01-01T00:00:00Z", sarif("other")).
		wants(http.StatusOK, "the advised dry run"))
	harness.Same(t, "the changes", 31, len(dry.Changes))
	said := strings.Join(dry.Warnings, "\n")
	harness.Contains(t, "the warnings of the dry run", said, "would be refused: it would close 30 of 30", "would be refused: the scan started at")
	harness.Eventually(t, func(g Gomega) {
		failed := decoded[openapi.ScanList](c.get("/v2/scans?status=failed")).Items
		g.Expect(failed).To(ConsistOf(
			HaveField("Message", ContainSubstring("it would close 30 of 30 open findings")),
			HaveField("Message", ContainSubstring("before the last completed one")),
		))
		g.Expect(failed).To(HaveEach(HaveField("Progress", openapi.ScanProgress{})), "nothing was to be written")
	})
	c.upload("?force=true", sarif("other")).wants(http.StatusOK, "forced")
}

// The tests of isolation upload with dry_run.
func TestAnUploadReachesItsOwnOrganizationAlone(t *testing.T) {
	o, c := uploader(t)
	other := newOrganization(t)
	other.create(builder.Repository("theirs").In(other.namespace).Build())
	other.create(builder.Project("theirs").In(other.namespace).Repository("theirs").Build())
	post := func(path string) answer { return c.do(http.MethodPost, path, sarif("one"), asSARIF) }
	foreign := post("/v2/repos/theirs/projects/theirs/scans").wants(http.StatusNotFound, "another organization's")
	absent := post("/v2/repos/none/projects/none/scans").wants(http.StatusNotFound, "nobody's")
	harness.Same(t, "the body", string(absent.body), string(foreign.body))
	harness.Same(t, "the findings that are stored", 0, len(o.everything())+len(other.everything()))
}

// A pipeline may upload as soon as it has created a project or a repository, to a replica that has not observed it yet.
func TestAnUploadReachesWhatTheModelLacks(t *testing.T) {
	o, c := uploader(t)
	o.create(builder.Repository("other").In(o.namespace).Build())
	behind := c.on(ownServer(t, apiserver.Options{}, func(config *rest.Config) {
		harness.Between(config, func(next http.RoundTripper, request *http.Request) (*http.Response, error) {
			late := strings.HasSuffix(request.URL.Path, "/projects") || strings.HasSuffix(request.URL.Path, "/repositories")
			if late && request.URL.Query().Get("watch") != "" {
				<-request.Context().Done()
				return nil, request.Context().Err()
			}
			return next.RoundTrip(request)
		})
	}))
	harness.Must(t, behind.server.waitUntilReady(t.Context()))
	o.create(builder.Project("late").In(o.namespace).Build())
	behind.get("/v2/repos/repo/projects/late").wants(http.StatusNotFound, "the model lacks it")
	post := func(repository, project string) answer {
		path := "/v2/repos/" + repository + "/projects/" + project + "/scans"
		return behind.do(http.MethodPost, path, sarif("one"), asSARIF)
	}
	post("other", "late").wants(http.StatusNotFound, "another repository's")
	post("repo", "none").wants(http.StatusNotFound, "nobody's")
	post("repo", "late").wants(http.StatusOK, "the late project")

	repository := builder.Repository("late").In(o.namespace).Build()
	repository.Spec.DefaultBranch = "main"
	o.create(repository)
	o.create(builder.Project("whole").In(o.namespace).Repository("late").Build())
	submit := func(fullName string, more ...string) answer {
		return behind.postAsGitHub(fullName, forGitHub(sarif("one"), more...))
	}
	submit("acme/none").wants(http.StatusNotFound, "nobody's repository")
	behind.wantsComplete(behind.follow(submit("Acme/Late").wants(http.StatusAccepted, "the late repository")))

	twin := builder.Repository("twin").In(o.namespace).Build()
	twin.Spec.DefaultBranch, twin.Spec.FullName, twin.Spec.URL = "main", "Acme/Repo", "https://ghe.example.com/Acme/Repo"
	o.create(twin)
	o.create(builder.Project("theirs").In(o.namespace).Repository("twin").Build())
	submit("acme/repo").wants(http.StatusConflict, "one of two with the name").says("repo, twin")
	ofTwin := submit("acme/repo", `"checkout_uri":"`+twin.Spec.URL+`"`).wants(http.StatusAccepted, "the late one by its host")
	behind.wantsComplete(behind.follow(ofTwin))
	env.Patch(t, builder.Repository("repo").In(o.namespace).Build(), `{"spec":{"fullName":"acme/renamed","url":"https://github.com/acme/renamed"}}`)
	behind.wantsComplete(behind.follow(submit("acme/repo").wants(http.StatusAccepted, "the only one with the name")))
	harness.Same(t, "open findings", map[string]int{"late": 1, "whole": 1, "theirs": 1}, o.open())
	odd := fmt.Sprintf(`{"apiVersion":"%s","kind":"Repository","metadata":{"name":"twin","namespace":"%s","uid":"%s",`+
		`"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"fullName":7}}`, v1alpha1.GroupVersion, o.namespace, twin.UID)
	harness.Must(t, env.PutIntoEtcd(t.Context(), "repositories", o.namespace, "twin", []byte(odd)))
	submit("acme/repo").wants(http.StatusConflict, "one that cannot be read").says("repository twin cannot be read")
	submit("acme/none").wants(http.StatusConflict, "the only one that may have the name").says("repository twin cannot be read")
	behind.wantsComplete(behind.follow(ofTwin))
	o.remove(twin)
	submit("acme/repo").wants(http.StatusNotFound, "none has the name")
}

// bounded returns an uploader at a separate facade with narrow limits.
func bounded(t *testing.T, limits uploads.Limits) (*organization, *caller) {
	t.Helper()
	o, c := uploader(t)
	narrow := ownServer(t, apiserver.Options{Uploads: limits})
	harness.Must(t, narrow.waitUntilReady(t.Context()))
	return o, c.on(narrow)
}

func TestABombIsRefusedAndItsMemoryGivenBack(t *testing.T) {
	_, c := bounded(t, uploads.Limits{Total: 1, PerOrganization: 1, Bytes: 2 << 20})
	bomb := apiclient.Gzip(`{"version":"2.1.0","x":"` + strings.Repeat(" ", 2<<20) + `"`)
	for range 3 {
		c.upload("", bomb, header("Content-Encoding", "gzip")).wants(http.StatusBadRequest, "a bomb").says("larger than 1 MiB")
	}
	c.upload("", sarif("one")).wants(http.StatusOK, "what follows")
}

func TestUploadsOverTheLimitGet429(t *testing.T) {
	_, c := bounded(t, uploads.Limits{Total: 1, PerOrganization: 1, Bytes: 2 << 20})
	// The server asks for the body once it has admitted the upload.
	rest, first := c.hold(http.MethodPost, uploadPath, asSARIF)
	refused := c.upload("", sarif("two")).wants(http.StatusTooManyRequests, "the second")
	harness.Same(t, "retry-after", "10", refused.header.Get("Retry-After"))
	counted := c.server.ofUploads(t)[`findings_uploads_refused_total{reason="organization_limit"}`]
	harness.Same(t, "the refused uploads that are counted", 1., counted)
	_, err := io.WriteString(rest, sarif("one"))
	harness.Must(t, err)
	harness.Must(t, rest.Close())
	(<-first).wants(http.StatusOK, "the first")
	harness.Eventually(t, func(g Gomega) { g.Expect(c.upload("", sarif("one", "two")).status).To(Equal(http.StatusOK)) })
}

func TestAFacadeThatStopsLeavesNoImportUnderWay(t *testing.T) {
	const results = 300 // storing them takes long enough to observe that the import has begun
	o, c := uploader(t)
	stopping := ownServer(t, apiserver.Options{})
	harness.Must(t, stopping.waitUntilReady(t.Context()))
	mine := c.on(stopping)
	answered := make(chan answer, 1)
	go func() {
		a, err := mine.try(http.MethodPost, uploadPath, sarif(numbered(results)...), asSARIF)
		harness.NoError(t, "the upload", err)
		answered <- a
	}()
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.List(t, g, env, &v1alpha1.ScanList{}, client.InNamespace(o.namespace)).Items).To(HaveLen(1))
	})
	harness.Must(t, stopping.stop())
	scans := testenv.List(t, NewWithT(t), env, &v1alpha1.ScanList{}, client.InNamespace(o.namespace))
	if spec := scans.Items[0].Spec; spec.CompletedAt == nil || spec.Outcome == v1alpha1.ScanSucceeded && len(o.everything()) != results {
		t.Errorf("%d findings are stored, and the scan is %+v", len(o.everything()), spec)
	}
	if a := <-answered; a.status != http.StatusOK && a.status != http.StatusAccepted {
		t.Errorf("the upload is answered with %d %s", a.status, a.body)
	}
	c.upload("", sarif(numbered(results)...)).wants(http.StatusOK, "again")
}
