package conformance

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// npmTimeout bounds each step of the test; the first fetches packages.
const npmTimeout = 3 * time.Minute

// A client that a third-party generator makes from the served contract lists, pages and patches, and GitHub's own
// client uploads.
func TestGeneratedClient_TypeScriptListsPagesAndPatches(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			lacksTool(t, tool+" is not installed")
		}
	}
	o := newOrganization(t)
	o.findings(5)
	o.create(builder.Repository("another").In(o.namespace).Build(),
		builder.Review("rv-1").Reviewed("sha-1", firstReviewAt).In(o.namespace).Build(),
		builder.Review("rv-2").PullRequest("repo", 2).Reviewed("sha-1", firstReviewAt).In(o.namespace).Build())
	o.patchResource(builder.Repository("repo").In(o.namespace).Build(), `{"spec":{"fullName":"Acme/octokit","defaultBranch":"main"}}`)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(o.get("/v2/repos/repo").object()["full_name"]).To(Equal("Acme/octokit"))
		g.Expect(o.get("/v2/repos?size=1").page().Total).To(Equal(2))
		g.Expect(o.get("/v1/reviews?custom=reviewed").page().Total).To(Equal(2))
	})

	folder := t.TempDir()
	harness.Must(t, os.CopyFS(folder, os.DirFS(filepath.Join(harness.Root(), "test", "client-typescript"))))
	npm := func(arguments ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), npmTimeout)
		defer cancel()
		command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
		command.Dir = folder
		command.Env = append(os.Environ(), "FINDINGS_URL="+*baseURL, "FINDINGS_API_KEY="+o.Token, "FINDINGS_ID=f-002",
			"FINDINGS_REPOSITORY=acme/octokit")
		output, err := command.CombinedOutput()
		return string(output), err
	}
	if output, err := npm("npm", "ci", "--no-audit", "--no-fund"); err != nil {
		lacksTool(t, "npm cannot fetch the packages: "+output)
	}
	for _, step := range [][]string{
		{"npm", "run", "generate", "--", strings.TrimSuffix(*baseURL, "/") + "/openapi.json", "--output", "schema.d.ts"},
		{"npm", "run", "build"},
		{"node", "build/main.js"},
		{"node", "build/octokit.js"}, // which is written for GitHub
	} {
		output, err := npm(step...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(step, " "), err, output)
		}
		t.Log(output)
	}
}

// lacksTool skips a test because an optional tool is missing. Unlike other tests, it may be skipped
// even if the suite has started the deployment.
func lacksTool(t *testing.T, reason string) {
	t.Helper()
	ledger.note(t.Name(), reason, false)
	if toolsRequired {
		t.Fatal("cannot run: " + reason)
	}
	t.Skip(reason)
}
