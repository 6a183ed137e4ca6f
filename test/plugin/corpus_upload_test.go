package plugin_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// startedAt is when the scans began.
var startedAt = time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC)

// largeFile is a size in bytes. Of larger files only maxResults results of each run are uploaded, because every import
// writes every finding.
const (
	largeFile  = 1 << 20
	maxResults = 200
)

// beginning returns a file without the results beyond maxResults of each run.
func beginning(t *testing.T, content string) string {
	t.Helper()
	log := harness.Decoded[map[string]any](t, []byte(content))
	for _, run := range log["runs"].([]any) {
		run := run.(map[string]any)
		results := run["results"].([]any)
		run["results"] = results[:min(len(results), maxResults)]
	}
	return string(harness.JSON(t, log))
}

// uploader is an organization with a key that may upload.
type uploader struct {
	*organization
	api apiclient.Client
}

func newUploader(t *testing.T, facade *harness.Component, name string) *uploader {
	t.Helper()
	o := newOrganization(t, name)
	env.Patch(t, builder.Organization(name).Build(), `{"spec":{"rateLimit":{"requestsPerMinute":1000000}}}`)
	harness.Must(t, env.LetUploads(t.Context(), o.namespace))
	token := env.Key(t, builder.APIKey("ci").In(o.namespace).
		Scopes(v1alpha1.ScopeFindingsImport, v1alpha1.ScopeFindingsRead, v1alpha1.ScopeReposRead).Build())
	return &uploader{o, apiclient.Client{Base: "http://" + facade.Address, Token: token}}
}

// sees waits until the facade knows the project, and its repository, which comes by another watch.
func (u *uploader) sees(project string) {
	u.Helper()
	harness.Eventually(u, func(g Gomega) {
		g.Expect(u.do(u.T, http.MethodGet, "/v2/repos/"+project+"/projects/"+project, "").Status).To(Equal(http.StatusOK))
		g.Expect(string(u.do(u.T, http.MethodGet, "/v2/repos?size=100", "").Body)).To(ContainSubstring(`"` + project + `"`))
	})
}

func (u *uploader) do(t *testing.T, method, path, body string, changes ...apiclient.Change) *apiclient.Answer {
	t.Helper()
	answer, err := u.api.Do(t.Context(), method, path, body, changes...)
	harness.Must(t, err)
	return answer
}

// uploads posts a file to a project with that query.
func (u *uploader) uploads(t *testing.T, project, query, content string) *apiclient.Answer {
	t.Helper()
	return u.do(t, http.MethodPost, "/v2/repos/"+project+"/projects/"+project+"/scans?"+query, content,
		apiclient.Header("Content-Type", "application/sarif+json"))
}

// uploadsToGitHub posts a file to a repository in GitHub's shape.
func (u *uploader) uploadsToGitHub(t *testing.T, repository, content string) *apiclient.Answer {
	t.Helper()
	body := harness.JSON(t, map[string]string{
		"commit_sha": commitA, "ref": "refs/heads/main", "started_at": startedAt.Format(time.RFC3339),
		"sarif": base64.StdEncoding.EncodeToString([]byte(apiclient.Gzip(content))),
	})
	return u.do(t, http.MethodPost, "/repos/acme/"+repository+"/code-scanning/sarifs", string(body))
}

// ended returns an upload at its end, which may be later than its first answer.
func (u *uploader) ended(t *testing.T, answer *apiclient.Answer) (upload openapi.Upload) {
	t.Helper()
	if answer.Status != http.StatusOK && answer.Status != http.StatusAccepted {
		t.Fatalf("the upload is answered with %d %.300s", answer.Status, answer.Body)
	}
	harness.Must(t, json.Unmarshal(answer.Body, &upload))
	if answer.Status == http.StatusOK {
		return upload
	}
	harness.Eventually(t, func(g Gomega) {
		now := u.do(t, http.MethodGet, "/v2/uploads/"+upload.Id, "")
		g.Expect(now.Status).To(Equal(http.StatusOK))
		g.Expect(json.Unmarshal(now.Body, &upload)).To(Succeed())
		g.Expect(*upload.Status).NotTo(Equal(openapi.ScanStatusRunning))
	})
	return upload
}

// reviewsItsBase uploads an imported file as a pull request: compared with itself, it has nothing new. If the scanner
// did not finish, the upload is refused.
func (u *uploader) reviewsItsBase(t *testing.T, project string, number int, content string,
	imported openapi.ScanStatus) {
	t.Helper()
	answer := u.uploads(t, project, fmt.Sprintf("pull_request=%d&fail_on=new&commit=%s", number, commitB), content)
	if imported == openapi.ScanStatusFailed {
		harness.Same(t, "the status of a scanner that did not get to its end", http.StatusConflict, answer.Status)
		return
	}
	upload := u.ended(t, answer)
	if len(upload.Reviews) != 1 {
		t.Fatalf("the upload is %+v", upload)
	}
	review := upload.Reviews[0]
	if review.Open != 0 || review.Created != 0 || review.Fixed != 0 || *review.Gate != openapi.GateVerdictPassed {
		t.Errorf("the base itself, as pull request %d, has %+v", number, review)
	}
}

// facts returns the facts of a project's findings, by name, without members that differ between scans.
func (o *organization) facts(t *testing.T, project string) map[string]v1alpha1.FindingSpec {
	t.Helper()
	facts := map[string]v1alpha1.FindingSpec{}
	for name, finding := range o.findingsOf(t, project) {
		finding.Spec.Scan = nil
		facts[name] = finding.Spec
	}
	return facts
}

// scanCounts returns the counts of an upload's scans, by their names.
func scanCounts(upload openapi.Upload) map[string]openapi.ScanCounts {
	counts := map[string]openapi.ScanCounts{}
	for _, s := range upload.Scans {
		summary := importer.Summary{Tool: s.Tool, Category: v1alpha1.FindingCategory(s.Category), Analysis: s.Analysis}
		counts[summary.Name()] = s.Counts
	}
	return counts
}

// isRefused fails the test unless the answer refuses an invalid file with those words.
func isRefused(t *testing.T, answer *apiclient.Answer, words string) {
	t.Helper()
	refusal := harness.Decoded[openapi.Error](t, answer.Body)
	if answer.Status != http.StatusBadRequest || !strings.Contains(refusal.Detail, words) {
		t.Errorf("refused with %d %q, and by the plugin with %q", answer.Status, refusal.Detail, words)
	}
}

// refused holds why malformed files are refused.
var refused = map[string]string{
	"binskim-v1-bom":                `version is "1.0.0"`,
	"binskim-v200-bom":              `version is "2.0.0"`,
	"comprehensive-prerelease-v200": `version is "2.0.0"`,
	"empty-runs":                    "holds no run",
	"invalid-json-controlchar":      "not JSON",
	"malformed-json":                "not JSON",
	"no-runs":                       "runs",
	"sariftool-invalid":             `no member "runs"`,
	"zero-byte":                     "empty",
}

// Each file yields the same findings, under the same names, and the same counts through all ways of importing, and
// nothing is written the second time. A malformed file is refused by all with the same words; of an unusual one each
// entry that is not a finding is counted. As a pull request, a file has no new findings compared with itself as the
// base.
func TestEveryCorpusFileComesInByUploadAsByThePlugin(t *testing.T) {
	files := append(needs.SARIF(t, ""), needs.SARIF(t, "bad")...)
	issueKeys(t)
	// As many files are uploaded at a time as the machine has cores, and none is uploaded again after a refusal.
	_, facade, err := env.Operator(t.Context(), harness.Operator{Folder: t.TempDir()},
		"--uploads=1000", "--uploads-per-organization=1000")
	harness.Must(t, err)
	facade.Run(t)
	uploaded, github := newUploader(t, facade, "corpus-uploaded"), newUploader(t, facade, "corpus-github")
	plugin, whole := newOrganization(t, "corpus-imported"), newOrganization(t, "corpus-whole")
	scanner := plugin.token(testenv.Scanner)
	for _, o := range []*organization{uploaded.organization, github.organization, plugin} {
		o.hasProjects(files)
	}
	for _, file := range files {
		uploaded.sees(projectOf(file))
		github.sees(projectOf(file))
	}
	query := "commit=" + commitA + "&started_at=" + startedAt.Format(time.RFC3339)
	for i, file := range files {
		t.Run(named(file), func(t *testing.T) {
			t.Parallel() // most of the time each of them waits
			project, content := projectOf(file), harness.File(t, file)
			if len(content) > largeFile {
				whole.hasProjects([]string{file})
				whole.importsTwice(t, whole.token(testenv.Scanner), project, content)
				content = beginning(t, content)
			}
			a, b := uploaded.uploads(t, project, query, content), github.uploadsToGitHub(t, project, content)
			_, err := collect(content, importer.Choices{})
			harness.ErrorContains(t, "reading it", err, refused[named(file)])
			if err != nil {
				isRefused(t, a, err.Error())
				isRefused(t, b, err.Error())
				return
			}
			counts := map[string]openapi.ScanCounts{}
			for _, s := range plugin.importsTwice(t, scanner, project, content) {
				counts[s.Name()] = render.ScanCounts(s.Counts())
			}
			upload, facts := uploaded.ended(t, a), plugin.facts(t, project)
			harness.Same(t, "the counts of the upload", counts, scanCounts(upload))
			harness.Same(t, "the counts in GitHub's shape", counts, scanCounts(github.ended(t, b)))
			harness.Same(t, "the findings of the upload", facts, uploaded.facts(t, project))
			harness.Same(t, "the findings in GitHub's shape", facts, github.facts(t, project))
			uploaded.reviewsItsBase(t, project, i+1, content, *upload.Status)
		})
	}
}
