package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Until a person has withdrawn them again, replicas would accept leaked keys, send to removed endpoints, and remove
// findings by former settings.
func TestTheRestoreOfAStoreInTheDocsStartsNothingBeforeKeysAreDisabled(t *testing.T) {
	rest := harness.RepositoryFile(t, "docs", "backup.md")
	for _, want := range []string{
		"kubectl scale --replicas=0 -n findings-system deployment/findings-api deployment/findings-controller\n",
		`"retention":{"closedFindings":null,`,
		"Disable the API keys",
		"delete the Secrets", // only the controllers replace what they hold, and the REST API accepts it until then
		"kubectl scale --replicas=2 -n findings-system deployment/findings-controller\n",
		"kubectl scale --replicas=2 -n findings-system deployment/findings-api\n",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("docs/backup.md lacks %q, or has it too early", want)
		}
		rest = after
	}
}

// After a restore these numbers and times are used again: receivers and clients would ignore new changes.
func TestTheRestoreOfAStoreInTheDocsNamesWhatReceiversAndClientsMustForget(t *testing.T) {
	_, store, _ := strings.Cut(harness.RepositoryFile(t, "docs", "backup.md"), "\n## The store\n")
	store, _, _ = strings.Cut(store, "\n## ")
	for _, want := range []string{"`webhook-id`", "`seq`", "`updated_since`", "`reset`"} {
		if !strings.Contains(store, want) {
			t.Errorf("\"The store\" of docs/backup.md does not name %s", want)
		}
	}
}

// An API server that does not answer, or has lost the objects, must neither cost the last backup nor pass for a finished
// restore.
func TestCommandsOfABackupNoticeAnAPIServerThatDoesNotAnswerOrLostTheObjects(t *testing.T) {
	for reason, tc := range map[string]struct {
		block string
		// kubectl is a script that runs in place of kubectl: its call number n.
		kubectl string
		calls   int
		// prints is what the commands print, errors included, and objects the content of objects.yaml afterwards.
		prints, objects string
	}{
		"a save":                 {"save", "echo '- apiVersion'", 4, "", "- apiVersion\n"},
		"a save that fails":      {"save", "echo '- apiVersion'; test $n != 2", 2, "", "old\n"},
		"a save after a loss":    {"save", "echo 'items: []'", 4, "no objects: the last backup is kept\n", "old\n"},
		"a list fails":           {"projects", "case $n in 1) ;; 2) exit 1 ;; 3) echo ProjectNotFound ;; *) echo Ready ;; esac", 4, "ready\n", "old\n"},
		"projects do not settle": {"projects", "exit 1", 1, "", "old\n"},
		"an adoption":            {"namespace", "echo uid", 2, "uid\n", "old\n"},
		// Its namespace would get an empty UID, and lose the one that it has.
		"no Organization to adopt": {"namespace", "exit 1", 1, "", "old\n"},
		"a suspension":             {"suspend retention", "test $n = 1 || echo patched", 2, "patched\n", "old\n"},
		"settings are not saved":   {"suspend retention", "exit 1", 1, "", "old\n"},
	} {
		t.Run(reason, func(t *testing.T) {
			folder := kubectlThat(t, tc.kubectl)
			harness.Must(t, os.WriteFile(filepath.Join(folder, "objects.yaml"), []byte("old\n"), 0o600))
			ran := shellIn(t, folder, "/bin/sh", harness.Commands(t, "backup.md", tc.block))
			calls := harness.File(t, filepath.Join(folder, "calls"))
			harness.Same(t, "the calls of kubectl", tc.calls, strings.Count(calls, "\n"))
			if annotated := strings.Contains(calls, "annotate namespace org-acme --overwrite appsec.dev/organization-uid=uid\n"); annotated != (reason == "an adoption") {
				t.Errorf("the namespace gets the UID: %t; calls:\n%s", annotated, calls)
			}
			harness.Same(t, "what the commands print", tc.prints, ran.Stdout+ran.Stderr)
			harness.Same(t, "objects.yaml", tc.objects, harness.File(t, filepath.Join(folder, "objects.yaml")))
		})
	}
}

// kubectlThat returns a folder with a kubectl and a helm that run these commands as call number n of both, and a sleep
// that does not.
func kubectlThat(t *testing.T, commands string) string {
	t.Helper()
	folder := t.TempDir()
	script := "#!/bin/sh\ncall=\"${0##*/} $*\"\necho \"$call\" >> calls\nn=$(wc -l < calls)\n" + commands + "\n"
	for name, content := range map[string]string{"kubectl": script, "helm": script, "sleep": "#!/bin/sh\n"} {
		harness.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o700)) //nolint:gosec // programs
	}
	return folder
}

// shellIn runs the commands in the folder, with the programs in it.
func shellIn(t *testing.T, folder, shell, commands string) *harness.Outcome {
	t.Helper()
	command := exec.CommandContext(t.Context(), shell, "-c", commands)
	command.Dir, command.Env = folder, append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	return harness.Run(t, command)
}
