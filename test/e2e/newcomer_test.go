package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/needs"
)

// consoleBlock is a block of commands with what they print.
var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// checkNewcomer runs the README's commands that upload the results of a repository that nobody has written down, twice.
func checkNewcomer(t *testing.T, r *run, rest *restClient) {
	needs.Program(t, "curl", "curl")
	needs.Program(t, "jq", "jq")
	page, err := os.ReadFile(repositoryFile(t, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var block string
	for _, found := range consoleBlock.FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(found[1], "/repos/acme/payments/code-scanning/sarifs") {
			block = found[1]
		}
	}
	// The last command shows what came of it, and is asked again until it is over.
	var commands []string
	for _, line := range strings.Split(block, "\n") {
		if command, is := strings.CutPrefix(line, "$ "); is {
			commands = append(commands, strings.ReplaceAll(command, ".run/", r.folder+"/"))
		}
	}
	if len(commands) != 3 {
		t.Fatalf("the README has the commands %q; want an upload, its posting, and what came of it", commands)
	}
	folder := t.TempDir()
	shell := func(script string) string {
		command := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script) //nolint:gosec // the README's own
		command.Dir, command.Env = folder, os.Environ()
		for name, value := range r.env {
			command.Env = append(command.Env, name+"="+value)
		}
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	before := len(rest.list(t, "/v1/findings", 1000))
	for _, want := range []string{`"created":18,"reopened":0,"skipped":0,"unchanged":0`, `"created":0,"reopened":0,"skipped":0,"unchanged":18`} {
		shell(commands[0])
		if id := shell(commands[1]); !strings.HasPrefix(id, "u-") {
			t.Fatalf("the upload's id is %q", id)
		}
		var shown string
		eventually(t, "the README's upload is complete with "+want, func() bool {
			shown = shell(commands[2])
			return strings.Contains(shown, want) && strings.Contains(shown, `"status":"completed"`)
		})
		if name := regexp.MustCompile(`acme-payments-[a-z2-7]{10}`).FindString(shown); name == "" || !strings.Contains(block, name) {
			t.Errorf("the README shows another repository than %s", shown)
		}
	}
	eventually(t, "the findings are listed", func() bool { return len(rest.list(t, "/v1/findings", 1000)) == before+18 })
	if repositories := r.kubectl(t, "get", "repositories", "--namespace", r.env["FINDINGS_NAMESPACE"]); strings.Count(repositories, "acme/payments") != 1 {
		t.Errorf("the repositories are\n%s", repositories)
	}
}
