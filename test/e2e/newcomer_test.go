package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/needs"
)

// checkNewcomer runs the README's commands that upload the results of a repository that does not exist yet, twice.
func checkNewcomer(t *testing.T, r *run, rest *restClient) {
	needs.Program(t, "curl", "curl")
	needs.Program(t, "jq", "jq")
	// The last command shows the result, and is repeated until the upload is complete.
	commands := blockOfREADME(t, "/repos/acme/payments/code-scanning/sarifs")
	if len(commands) != 3 {
		t.Fatalf("the README has the commands %q; want an upload, its posting, and what came of it", commands)
	}
	folder := t.TempDir()
	shell := func(script string) string { return r.shell(t, folder, script) }
	before := len(rest.list(t, "/v1/findings", 1000))
	var uploaded int64
	for _, want := range []string{`"created":18,"reopened":0,"skipped":0,"unchanged":0`, `"created":0,"reopened":0,"skipped":0,"unchanged":18`} {
		// The order of scans within the same second is undefined, and the README shows the first scan.
		eventually(t, "the next second begins", func() bool { return time.Now().Unix() > uploaded })
		shell(commands[0].command)
		if id := shell(commands[1].command); !strings.HasPrefix(id, "u-") {
			t.Fatalf("the upload's id is %q", id)
		}
		uploaded = time.Now().Unix()
		var shown string
		eventually(t, "the README's upload is complete with "+want, func() bool {
			shown = shell(commands[2].command)
			return strings.Contains(shown, want) && strings.Contains(shown, `"status":"completed"`)
		})
		if name := regexp.MustCompile(`acme-payments-[a-z2-7]{10}`).FindString(shown); name == "" || !strings.Contains(commands[2].output, name) {
			t.Errorf("the README shows another repository than %s", shown)
		}
	}
	eventually(t, "the findings are listed", func() bool { return len(rest.list(t, "/v1/findings", 1000)) == before+18 })
	if repositories := r.kubectl(t, "get", "repositories", "--namespace", r.env["FINDINGS_NAMESPACE"]); strings.Count(repositories, "acme/payments") != 1 {
		t.Errorf("the repositories are\n%s", repositories)
	}
}

// shell runs a script of the README in that folder, with the run's environment and the project's programs.
func (r *run) shell(t *testing.T, folder, script string) string {
	t.Helper()
	script = strings.ReplaceAll(script, ".run/", r.folder+"/")
	command := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script) //nolint:gosec // the README's own
	path := strings.Join([]string{repositoryFile(t, "bin"), repositoryFile(t, "bin", "k8s"), os.Getenv("PATH")}, string(os.PathListSeparator))
	command.Dir, command.Env = folder, append(os.Environ(), "PATH="+path)
	for name, value := range r.env {
		command.Env = append(command.Env, name+"="+value)
	}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}
