package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	scanned "github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

const startedAt = "2026-03-01T08:30:00Z"

// imported returns the importer's result for a file in a project. The plugin uses the same
// importer.
func (o *organization) imported(t *testing.T, repository, project string, content []byte) (map[string]openapi.ScanCounts, error) {
	t.Helper()
	log, err := scanned.Parse(bytes.NewReader(content), scanned.Options{})
	if err != nil {
		return nil, err
	}
	at, err := time.Parse(time.RFC3339, startedAt)
	harness.Must(t, err)
	batches, err := importer.Collect([]importer.File{{Name: "the file", Log: log}}, importer.Choices{Commit: "abc", StartedAt: at}, time.Now())
	if err != nil {
		return nil, err
	}
	c, err := importer.NewClient(env.Config)
	harness.Must(t, err)
	summaries, err := importer.New(c, importer.Target{Namespace: o.namespace, Repository: repository, Project: project}, importer.Options{}).Import(t.Context(), batches)
	harness.Must(t, err)
	counts := map[string]openapi.ScanCounts{}
	for _, s := range summaries {
		counts[s.Name()] = render.ScanCounts(s.Counts())
	}
	return counts, nil
}

// largeFile is a size in bytes. Of larger files only mostResults results of each run are used, because every import
// writes every finding. test/import imports them in full.
const (
	largeFile   = 1 << 20
	mostResults = 200
)

// beginning returns a file without the results beyond mostResults of each run.
func beginning(t *testing.T, content []byte) []byte {
	t.Helper()
	var log map[string]any
	harness.Must(t, json.Unmarshal(content, &log))
	for _, run := range log["runs"].([]any) {
		run := run.(map[string]any)
		results := run["results"].([]any)
		run["results"] = results[:min(len(results), mostResults)]
	}
	return harness.JSON(t, log)
}

// facts returns the facts of a project's findings, by name, without members that differ between
// scans.
func (o *organization) facts(project string) map[string]v1alpha1.FindingSpec {
	o.t.Helper()
	list := &v1alpha1.FindingList{}
	harness.Must(o.t, env.Client.List(o.t.Context(), list, client.InNamespace(o.namespace), client.MatchingFields{"spec.projectRef.name": project}))
	facts := map[string]v1alpha1.FindingSpec{}
	for _, finding := range list.Items {
		finding.Spec.Scan = nil
		facts[finding.Name] = finding.Spec
	}
	return facts
}

// ended returns an upload at its end, which on a busy machine may be later than its first answer.
func (c *caller) ended(a answer) openapi.Upload {
	c.t.Helper()
	if a.status != http.StatusAccepted {
		return decoded[openapi.Upload](a.wants(http.StatusOK, "an upload"))
	}
	var upload openapi.Upload
	harness.Within(c.t, 2*time.Minute, func(g Gomega) {
		upload = decoded[openapi.Upload](c.get(a.header.Get("Location")).wants(http.StatusOK, "an upload that was acknowledged"))
		g.Expect(*upload.Status).To(Equal(openapi.ScanStatusCompleted))
	})
	return upload
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
func isRefused(t *testing.T, a answer, words string) {
	t.Helper()
	var refusal openapi.Error
	harness.Must(t, json.Unmarshal(a.wants(http.StatusBadRequest, "a bad file").body, &refusal))
	if !strings.Contains(refusal.Detail, words) {
		t.Errorf("refused with %q, and by the plugin with %q", refusal.Detail, words)
	}
}

// Each file yields the same findings, under the same names, and the same counts through all ways of importing; a
// file that one refuses is refused by all with the same words. As a pull request, a file has no new findings
// compared with itself as the base.
func TestEveryCorpusFileComesInByUploadAsByThePlugin(t *testing.T) {
	uploaded, c := uploader(t)
	plugin := newOrganization(t)
	github, g := uploader(t)
	for i, file := range append(needs.SARIF(t, ""), needs.SARIF(t, "bad")...) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sarif"), func(t *testing.T) {
			repository, project := fmt.Sprintf("r-%d", i), fmt.Sprintf("p-%d", i)
			for _, o := range []*organization{uploaded, plugin, github} {
				named := builder.Repository(repository).In(o.namespace).Build()
				named.Spec.FullName, named.Spec.DefaultBranch = "acme/"+repository, "main"
				o.create(named)
				o.create(builder.Project(project).In(o.namespace).Repository(repository).Build())
			}
			uploaded.eventually(func(is Gomega) {
				for _, reader := range []*caller{c, g} {
					is.Expect(reader.get("/v2/repos/" + repository + "/projects/" + project).status).To(Equal(http.StatusOK))
					// The repository comes by another watch.
					is.Expect(string(reader.get("/v2/repos?size=10").body)).To(ContainSubstring(`"` + repository + `"`))
				}
			})
			content := []byte(harness.File(t, file))
			if len(content) > largeFile {
				content = beginning(t, content)
			}
			a := c.do(http.MethodPost, "/v2/repos/"+repository+"/projects/"+project+"/scans?commit=abc&started_at="+startedAt, string(content),
				header("Content-Type", "application/sarif+json"))
			b := g.do(http.MethodPost, "/repos/acme/"+repository+"/code-scanning/sarifs", forGitHub(string(content), `"started_at":"`+startedAt+`"`))
			want, err := plugin.imported(t, repository, project, content)
			if err != nil {
				isRefused(t, a, err.Error())
				isRefused(t, b, err.Error())
				return
			}
			upload, facts := c.ended(a), plugin.facts(project)
			g.follow(b.wants(http.StatusAccepted, "an upload in GitHub's shape"))
			shaped := decoded[openapi.Upload](g.get("/v2/uploads/" + decoded[openapi.SarifReceipt](b).Id))
			harness.Same(t, "the counts of the upload", want, scanCounts(upload))
			harness.Same(t, "the counts in GitHub's shape", want, scanCounts(shaped))
			harness.Same(t, "the findings of the upload", facts, uploaded.facts(project))
			harness.Same(t, "the findings in GitHub's shape", facts, github.facts(project))
			c.reviewsItsBase(repository, project, i+1, string(content), *upload.Status)
		})
	}
}
