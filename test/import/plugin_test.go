package import_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// pluginFolder builds the plugin once and returns its folder.
var pluginFolder = sync.OnceValues(func() (string, error) { return harness.Build(context.Background()) })

// kubectl returns a command of `kubectl findings`, as a scanner runs it.
func kubectl(t testing.TB, command string, arguments ...string) *exec.Cmd {
	t.Helper()
	folder, err := pluginFolder()
	harness.Must(t, err)
	all := append([]string{"findings", command, "--kubeconfig", testenv.WriteKubeconfig(t, scanner, namespace)}, arguments...)
	cmd := exec.CommandContext(t.Context(), testenv.Binary(t, "kubectl"), all...)
	cmd.Env = append(os.Environ(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// direct lets a command of `kubectl findings` run the plugin itself, so that kubectl does not receive a signal.
func direct(t testing.TB, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	folder, err := pluginFolder()
	harness.Must(t, err)
	cmd.Path = filepath.Join(folder, "kubectl-findings")
	cmd.Args = append([]string{cmd.Path}, cmd.Args[2:]...)
	return cmd
}

// kubectl returns the command `kubectl findings import` for a file.
func (p *project) kubectl(file string, arguments ...string) *exec.Cmd {
	p.Helper()
	return kubectl(p, "import", append([]string{file, "--repository", repositoryName, "--project", p.name}, arguments...)...)
}

func sarifFile(t testing.TB, document string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.sarif")
	harness.Must(t, os.WriteFile(path, []byte(document), 0o600))
	return path
}

func TestThePluginImports(t *testing.T) {
	p := newProject(t)
	file := sarifFile(p, document(numbered(3)...))

	planned := harness.Run(t, p.kubectl(file, "--dry-run")).Wants()
	harness.Same(t, "findings that a dry run would create", 3, strings.Count(planned.Stdout+planned.Stderr, "create "))
	harness.Same(t, "objects that a dry run writes", 0, len(p.findings())+len(p.scans()))
	harness.Run(t, p.kubectl(file, "--dry-run", "-o", "json")).Wants(`"finished": false`)
	harness.Run(t, p.kubectl(file, "--commit", commitA)).Wants("3 results = 3 created + 0 updated + 0 reopened + 0 unchanged + 0 skipped; 0 closed")
	stdin := p.kubectl("-", "-o", "json")
	stdin.Stdin = strings.NewReader(document(numbered(3)...))
	out := harness.Run(t, stdin).Wants()
	var summaries []importer.Summary
	if err := json.Unmarshal([]byte(out.Stdout), &summaries); err != nil || len(summaries) != 1 || summaries[0].Unchanged != 3 {
		t.Errorf("import from standard input: error %v:\n%s", err, out.Stdout)
	}
	quiet := harness.Run(t, p.kubectl(file, "--quiet")).Wants()
	harness.Same(t, "a quiet import says", "", quiet.Stdout+quiet.Stderr)
}

// A job must not pass if its scanner crashed, though what was reported is imported.
func TestThePluginFailsIfTheScannerCrashed(t *testing.T) {
	p := newProject(t)
	crashed := strings.Replace(document(numbered(2)...), `"results"`, `"invocations":[{"executionSuccessful":false}],"results"`, 1)
	for _, flag := range []string{"--dry-run", "--quiet"} {
		out := harness.Run(t, p.kubectl(sarifFile(p, crashed), flag)).Fails()
		if !strings.Contains(out.Stderr, "recorded as Failed") || !strings.Contains(out.Stderr, "if a result cannot be read, fix") ||
			strings.Contains(out.Stderr, "and closes nothing: ") != (flag == "--quiet") { // the summary, if there is one, has the reason
			t.Errorf("%s: it says:\n%s", flag, out.Stderr)
		}
	}
	if scans := p.scans(); len(p.findings()) != 2 || len(scans) != 1 || scans[0].Spec.Outcome != v1alpha1.ScanFailed {
		t.Errorf("%d findings and %d scans, want what was reported and one that failed", len(p.findings()), len(scans))
	}
}

// If the results of one tool are refused, those of another are imported nevertheless, and the summary says so.
func TestOnlyTheScanThatFailedIsNotFinished(t *testing.T) {
	p := newProject(t)
	results := numbered(3)
	p.imports(builder.SARIF("second", results[1:]...), commitA)
	refuse(t, "false", p.titled(results[1].Message).Name, p.titled(results[2].Message).Name)
	results[1].Level, results[2].Level = "note", "note"
	first, second := sarifFile(p, builder.SARIF("first", results[0])), sarifFile(p, builder.SARIF("second", results[1:]...))
	harness.Run(t, p.kubectl(first, second)).Fails("refuses every change",
		"first (Code): 1 result ", "second (Code), not finished: 2 results ")
}

// Nobody records states here: the import is complete nevertheless, and says so.
func TestTheWaitEndsWithItsTimeout(t *testing.T) {
	t.Parallel() // it mostly waits
	p := newProject(t)
	out := harness.Run(t, p.kubectl(sarifFile(p, document(numbered(2)...)), "--wait", "--timeout", "1s"))
	scan := p.scans()[0]
	out.Fails("kubectl wait --for=condition=Settled scan/" + scan.Name).Omits("not finished")
	harness.Same(t, "the scan's outcome", v1alpha1.ScanSucceeded, scan.Spec.Outcome)
	if finding, known := p.findings()[scan.Spec.LastChange.Finding]; !known ||
		finding.ResourceVersion != scan.Spec.LastChange.ResourceVersion || p.latest() != finding.ResourceVersion {
		t.Errorf("the last change is %+v, and the latest version %s", scan.Spec.LastChange, p.latest())
	}
}

// latest returns the latest resource version of the project's findings.
func (p *project) latest() string {
	latest := 0
	for _, version := range p.versions() {
		number, err := strconv.Atoi(version)
		harness.Must(p, err)
		latest = max(latest, number)
	}
	return strconv.Itoa(latest)
}

// lastOfEach keeps only the last occurrence of a repeated flag, which the plugin would refuse.
func lastOfEach(arguments []string, flags ...string) []string {
	for _, flag := range flags {
		first := slices.Index(arguments, flag)
		if first >= 0 && slices.Contains(arguments[first+1:], flag) {
			arguments = slices.Delete(arguments, first, first+2)
		}
	}
	return arguments
}

func TestThePluginSaysWhatToDoNext(t *testing.T) {
	p := newProject(t)
	good := sarifFile(p, document(numbered(1)...))
	for _, tc := range []struct{ reason, flag, value, want string }{
		{"a tag is no branch", "--branch", "refs/tags/v1", "name the branch that was scanned"},
		{"a role in one namespace is none in another", "--namespace", "org-other", "forbidden"},
		{"nothing would show it", "--namespace", "default", "error: namespace default belongs to no organization"},
	} {
		out := harness.Run(t, p.kubectl(good, tc.flag, tc.value)).Fails(tc.want)
		harness.Same(t, tc.reason+": it prints", "", out.Stdout)
	}
	harness.Same(t, "objects written", 0, len(p.findings())+len(p.scans()))
}

// begin starts an import and returns once it has written some findings.
func (p *project) begin(file string, written int, arguments ...string) (*exec.Cmd, *bytes.Buffer) {
	p.Helper()
	var out bytes.Buffer
	cmd := direct(p, p.kubectl(file, append([]string{"--concurrency", "1"}, arguments...)...)) // one by one, to last long enough
	cmd.Stdout, cmd.Stderr = &out, &out
	before := len(p.findings())
	harness.Must(p, cmd.Start())
	gomega.NewWithT(p).Eventually(func() int { return len(p.findings()) }, time.Minute, 40*time.Millisecond).
		Should(gomega.BeNumerically(">=", before+written))
	return cmd, &out
}

func TestAnInterruptedImportEndsInGoodOrder(t *testing.T) {
	p := newProject(t)
	old := document(builder.Result{Rule: "old", Path: "old.go", Message: "old", Line: 1})
	p.imports(old, commitA)
	const reported = 250
	file := sarifFile(p, document(numbered(reported)...))
	cmd, out := p.begin(file, 20)
	harness.Must(p, cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err == nil {
		t.Fatalf("an interrupted import succeeded:\n%s", out)
	}
	harness.Contains(t, "it says that it was interrupted", out.String(), "interrupt", "not finished")
	if f := p.titled("old"); f.Spec.Closed != nil {
		t.Error("it closed a finding although the import did not finish")
	}
	wantOneFailed(t, p.scans(), "interrupt")
	// The Lease is released immediately.
	harness.Run(t, p.kubectl(file)).Wants().Omits("waiting")
	harness.Same(t, "findings after the next import", reported+1, len(p.findings()))
}
