// Package targets tests the parts of the make targets: what they check before they build anything,
// how they count, and what they leave behind.
package targets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// patience is how long a condition may take on a busy machine.
const patience = time.Minute

// everywhere are programs that every machine has, and that the scripts rely on.
var everywhere = []string{
	"bash", "make", "awk", "cat", "cut", "date", "dirname", "env", "grep", "head", "id", "kill", "ln", "mkdir", "mktemp", "mv", "readlink", "rm",
	"sed", "setsid", "sh", "sha256sum", "sleep", "sort", "tail", "tr", "uname", "xargs",
}

// machine returns a PATH that contains what every machine has, and the given programs.
func machine(t *testing.T, programs ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range append(programs, everywhere...) {
		found, err := exec.LookPath(name)
		if err != nil {
			needs.Missing(t, "%s is not installed", name)
		}
		harness.Must(t, os.Symlink(found, filepath.Join(folder, name)))
	}
	return folder
}

// program writes a script into the folder, in place of a program with that name.
func program(t *testing.T, folder, name, script string) {
	t.Helper()
	path := filepath.Join(folder, name)
	harness.Must(t, os.RemoveAll(path))
	harness.Must(t, os.WriteFile(path, []byte("#!/bin/bash\n"+script+"\n"), 0o700)) //nolint:gosec // to be run
}

// decided are the variables that these tests set themselves, whatever make or .ci/run has set.
var decided = []string{"PATH", "CC", "CGO_ENABLED", "REQUIRE_ALL", "PORT", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"}

// surroundings returns the environment without the decided variables; Go's caches and proxies stay.
func surroundings() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(decided, name)
	})
}

// run runs a program in the repository's folder.
func run(t *testing.T, environment []string, name string, arguments ...string) (output string, code int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = harness.Root()
	command.Env = append(surroundings(), environment...)
	out := harness.Run(t, command)
	return out.Stdout + out.Stderr, out.Code
}

// all are the targets that build or run something.
var all = []string{
	"attack", "bench", "bench-go", "build", "chart", "controlplane", "e2e", "etcdcost", "faults", "generate", "helm", "image", "kine", "licenses",
	"lint", "pictures", "plane", "release", "run", "test", "verify", "verify-console", "verify-openapi", "vulncheck",
}

func TestEveryTargetNamesWhatIsMissingAndStops(t *testing.T) {
	bare := machine(t)
	for _, target := range all {
		t.Run(target, func(t *testing.T) {
			out, code := run(t, []string{"PATH=" + bare}, "make", target)
			if code == 0 || !strings.Contains(out, "cannot run here: not found: ") || !strings.Contains(out, "apt-get install golang") {
				t.Errorf("exit status %d, want a failure that names go and its package:\n%s", code, out)
			}
		})
	}
}

func TestMakeHelpListsEveryTarget(t *testing.T) {
	out, _ := run(t, []string{"PATH=" + machine(t)}, "make", "help")
	for _, target := range all {
		if !strings.Contains(out, "m"+target+" ") {
			t.Errorf("%s is not listed:\n%s", target, out)
		}
	}
}

func TestAllThatIsMissingIsNamedAtOnce(t *testing.T) {
	bare := machine(t)
	cases := []struct {
		target string
		want   []string
	}{
		{"run", []string{"go", "git"}},
		{"faults", []string{"redis-server"}},
		{"test", []string{"gcc", "openssl", "redis-server", "chromium"}},
		{"plane", []string{"psql", "openssl", "postgresql-client"}},
		{"e2e", []string{
			"containerd", "ctr", "runc", "iptables", "ip", "openssl", "unshare", "nsenter", "redis-server",
			"containernetworking-plugins", "iproute2",
		}},
	}
	for _, c := range cases {
		out, code := run(t, []string{"PATH=" + bare}, "hack/check.sh", c.target)
		for _, name := range c.want {
			// The machine's own plugins are in a fixed place.
			if _, err := os.Stat("/usr/lib/cni/bridge"); err == nil && name == "containernetworking-plugins" {
				continue
			}
			if code == 0 || !strings.Contains(out, " "+name) {
				t.Errorf("%s: exit status %d, want a failure that names %s:\n%s", c.target, code, name, out)
			}
		}
	}
}

// Missing programs are reported before minutes are spent on building.
func TestNothingIsBuiltBeforeTheCheck(t *testing.T) {
	for _, target := range []string{"e2e", "faults", "plane"} {
		t.Run(target, func(t *testing.T) {
			folder := machine(t)
			called := filepath.Join(t.TempDir(), "called")
			program(t, folder, "git", "exit 0")
			program(t, folder, "go", `echo "$@" >>`+called)
			out, code := run(t, []string{"PATH=" + folder}, "make", target)
			if code == 0 {
				t.Errorf("went on:\n%s", out)
			}
			if content, err := os.ReadFile(called); !os.IsNotExist(err) { //nolint:gosec // the test's own file
				t.Errorf("go was called (%v):\n%s", err, content)
			}
		})
	}
}

func TestMakeRunNamesASettingThatCannotBe(t *testing.T) {
	for _, setting := range []string{"PORT=none", "PORT=0", "PORT=65536", "SAMPLES=no", "RUN_DIR=README.md", "RUN_DIR=docs"} {
		name, _, _ := strings.Cut(setting, "=")
		if out, code := run(t, []string{"PATH=" + os.Getenv("PATH"), setting}, "hack/check.sh", "run"); code == 0 || !strings.Contains(out, name+" is ") {
			t.Errorf("%s: exit status %d:\n%s", setting, code, out)
		}
	}
}

// Whoever runs `make e2e` is root.
func TestOnlyTheFolderOfANodeIsEmptied(t *testing.T) {
	path, bare := "PATH="+os.Getenv("PATH"), machine(t, "touch")
	folder := t.TempDir()
	precious, file := filepath.Join(folder, "precious"), filepath.Join(t.TempDir(), "file")
	for _, name := range []string{precious, file} {
		harness.Must(t, os.WriteFile(name, nil, 0o600))
	}
	application := t.TempDir()
	for _, name := range []string{"state", "images"} {
		harness.Must(t, os.Mkdir(filepath.Join(application, name), 0o700))
	}
	for dir, want := range map[string]string{folder: "contains precious", application: "contains images", file: "is a file"} {
		want = fmt.Sprintf("the folder of the node is %q, which %s", dir, want)
		if out, code := run(t, []string{path, "NODE_DIR=" + dir}, "hack/check.sh", "e2e"); code == 0 || !strings.Contains(out, want) {
			t.Errorf("check.sh, %s: exit status %d:\n%s", dir, code, out)
		}
		if out, code := run(t, []string{path}, "hack/node/clear.sh", dir); code == 0 || !strings.Contains(out, want) {
			t.Errorf("clear.sh, %s: exit status %d:\n%s", dir, code, out)
		}
		for _, script := range []string{"build.sh", "up.sh"} { // what they mark may be emptied
			out, code := run(t, []string{"PATH=" + bare, "KUBEBUILDER_ASSETS=/nowhere"}, "hack/node/"+script, dir)
			if code == 0 || !strings.Contains(out, want) {
				t.Errorf("%s, %s: exit status %d:\n%s", script, dir, code, out)
			}
		}
	}
	all, err := filepath.Glob(filepath.Join(folder, "*"))
	harness.Must(t, err)
	harness.Same(t, "what is in another's folder", []string{precious}, all)

	node, built, older := filepath.Join(t.TempDir(), "node"), t.TempDir(), t.TempDir()
	if out, code := run(t, []string{path, "KUBEBUILDER_ASSETS=/nowhere"}, "hack/node/build.sh", built); code == 0 {
		t.Errorf("build.sh built without its programs:\n%s", out)
	}
	for _, name := range []string{"state", "pki"} {
		harness.Must(t, os.Mkdir(filepath.Join(older, name), 0o700))
	}
	harness.Must(t, os.WriteFile(filepath.Join(older, "pki", "admin.kubeconfig"), nil, 0o600))
	for _, dir := range []string{node, node, built, older, older} { // a new one, one that was used, one from before the marker
		if out, code := run(t, []string{path}, "hack/node/clear.sh", dir); code != 0 {
			t.Fatalf("%s: exit status %d:\n%s", dir, code, out)
		}
		left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		harness.Must(t, err)
		harness.Same(t, "what is left of the last node", 0, len(left))
		harness.Must(t, os.Rename(filepath.Join(dir, "images"), filepath.Join(dir, "logs"))) // as if a removal was interrupted
		harness.Must(t, os.WriteFile(filepath.Join(dir, "logs", "etcd"), nil, 0o600))
	}

	for _, process := range []string{"init", "unshare"} { // the latter alone while the node is being started
		out, code := run(t, []string{path}, "bash", "-c", `. hack/node/processes.sh
mkdir "$0/state"; record "$0/state/$1" $$; hack/node/clear.sh "$0"`, node, process)
		if code == 0 || !strings.Contains(out, "end it with hack/node/down.sh "+node) {
			t.Errorf("clear.sh of a node with the process %s: exit status %d:\n%s", process, code, out)
		}
		harness.Must(t, os.RemoveAll(filepath.Join(node, "state")))
	}
}

func TestTheFolderOfTheControlPlaneMustExist(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "nowhere")
	out, code := run(t, []string{"PATH=" + os.Getenv("PATH"), "KUBEBUILDER_ASSETS=" + missing}, "hack/controlplane/build.sh")
	if code == 0 || !strings.Contains(out, missing+`": give a folder`) {
		t.Errorf("exit status %d:\n%s", code, out)
	}
}

// A build that was killed must not keep later ones waiting, whatever process has its pid now.
func TestABuildOfTheControlPlaneWaitsForNoOther(t *testing.T) {
	folder, root, cache := machine(t, "chmod"), t.TempDir(), t.TempDir()
	program(t, folder, "go", `case "$1" in
  env) echo "$2" ;;
  build) while [ "$1" != -o ]; do shift; done; echo "$3" >"$2"; chmod +x "$2" ;;
esac`)
	script := filepath.Join(root, "hack", "controlplane", "build.sh")
	hack := filepath.Join(harness.Root(), "hack")
	harness.Must(t, os.CopyFS(filepath.Dir(script), os.DirFS(filepath.Join(hack, "controlplane"))))
	cached := []byte(harness.File(t, filepath.Join(hack, "cached.sh")))
	harness.Must(t, os.WriteFile(filepath.Join(root, "hack", "cached.sh"), cached, 0o600))
	key, code := run(t, []string{"PATH=" + os.Getenv("PATH")}, "bash", "-c", "cat hack/controlplane/go.mod hack/controlplane/go.sum | sha256sum | cut -c1-16")
	harness.Same(t, "exit status", 0, code)
	kept := filepath.Join(cache, "findings-operator", "controlplane", "GOOS-GOARCH-"+strings.TrimSpace(key))
	harness.Must(t, os.MkdirAll(filepath.Join(kept, "lock"), 0o700))
	harness.Must(t, os.WriteFile(filepath.Join(kept, "lock", "pid"), []byte(strconv.Itoa(os.Getpid())), 0o600))

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, script)
	command.Env = append(surroundings(), "PATH="+folder, "XDG_CACHE_HOME="+cache, "KUBEBUILDER_ASSETS=")
	command.WaitDelay = time.Second
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	harness.Same(t, "bin/k8s/etcd", "go.etcd.io/etcd/server/v3\n", harness.File(t, filepath.Join(root, "bin", "k8s", "etcd")))
}

// recorded runs `make test` with a go that only records how the programs would be built and the tests run.
func recorded(t *testing.T, environment ...string) (arguments, output string) {
	t.Helper()
	folder, record := machine(t, "git"), filepath.Join(t.TempDir(), "arguments")
	goCommand, err := exec.LookPath("go")
	harness.Must(t, err)
	program(t, folder, "go", `case "$*" in
  *gotestsum* | *./cmd/...*) echo "$*" >>`+record+` ;;
  *./hack/local*) ;;
  *) exec `+goCommand+` "$@" ;;
esac`)
	output, code := run(t, append([]string{"PATH=" + folder + ":" + os.Getenv("PATH")}, environment...), "make", "test")
	if code != 0 {
		t.Fatalf("make test: exit status %d\n%s", code, output)
	}
	return harness.File(t, record), output
}

func TestMakeTestRunsWithoutTheRaceDetectorWhereThereIsNoCCompiler(t *testing.T) {
	for _, environment := range []string{"CGO_ENABLED=0", "CC=/nonexistent"} {
		arguments, output := recorded(t, environment)
		harness.Lacks(t, environment, arguments, "-race")
		harness.Contains(t, environment, output, "WITHOUT the race detector")
		// FINDINGS_BUILT spares the tests to build.
		built, tested := strings.Index(arguments, "-o bin/ ./cmd/..."), strings.Index(arguments, "gotestsum")
		if built < 0 || built > tested {
			t.Errorf("%s: the programs are not built before the tests: go %s", environment, arguments)
		}
	}
	needs.Program(t, "gcc", "gcc")
	if arguments, output := recorded(t); !strings.Contains(arguments, " -race ") {
		t.Errorf("with a C compiler: go %s\n%s", arguments, output)
	}
}

// calls holds what testCalls has recorded; hack/test.sh asks go for all packages, which takes seconds.
var calls []string

// testCalls returns the arguments of each `go test` by which `hack/test.sh -race` runs the tests, with the folder in
// front.
func testCalls(t *testing.T) []string {
	t.Helper()
	if calls != nil {
		return calls
	}
	folder, record := machine(t, "git"), filepath.Join(t.TempDir(), "calls")
	goCommand, err := exec.LookPath("go")
	harness.Must(t, err)
	program(t, folder, "go", `case "$1" in
  test) echo "$PWD: $*" >>`+record+` ;;
  *) exec `+goCommand+` "$@" ;;
esac`)
	if out, code := run(t, []string{"PATH=" + folder}, "hack/test.sh", "-race"); code != 0 {
		t.Fatalf("exit status %d:\n%s", code, out)
	}
	calls = strings.Split(strings.TrimSpace(harness.File(t, record)), "\n")
	return calls
}

func TestEachPackageIsTestedOnce(t *testing.T) {
	var tested []string
	for _, call := range testCalls(t) {
		if strings.HasPrefix(call, harness.Root()+": ") && !strings.Contains(call, " -run=") {
			tested = append(tested, slices.DeleteFunc(strings.Fields(call), func(word string) bool {
				return !strings.HasPrefix(word, "github.com/appsec-dev/findings-operator")
			})...)
		}
	}
	out, code := run(t, []string{"PATH=" + os.Getenv("PATH")}, "go", "list", "./...")
	harness.Same(t, "exit status", 0, code)
	want := strings.Fields(out)
	slices.Sort(want)
	slices.Sort(tested)
	harness.Same(t, "the packages", want, tested)
}

func TestWhatRunsConcurrentlyIsTestedWithTheRaceDetector(t *testing.T) {
	calls := testCalls(t)
	for path, want := range map[string]bool{
		"apiserver/readmodel": true, "apiserver/ratelimit": true, "apiserver/uploads": true, "controllers/finding": true,
		"controllers/internal/watch": true, "scanimport/importer": true, "internal/findingstate": false,
	} {
		// The heavy tests of some are called by folder, and without the detector.
		at := slices.IndexFunc(calls, func(call string) bool {
			return strings.Contains(call+" ", " github.com/appsec-dev/findings-operator/"+path+" ")
		})
		if at < 0 {
			t.Errorf("%s is not tested", path)
			continue
		}
		harness.Same(t, path+" is tested with the race detector", want, strings.Contains(calls[at], " -race "))
	}
}

// Go's cache of results does not see changes of programs, of scripts, of what a child process reads, and of other modules.
func TestResultsThatTheCacheWouldKeepTooLongAreNotCached(t *testing.T) {
	for _, changesUnseen := range []string{
		"/test/architecture ", "/test/console ", "/test/e2e ", "/test/image ", "/test/targets ",
		"/bench: ", "/test/faults: ", "/test/alerts: ", "/hack/image: ",
	} {
		tested := false
		for _, call := range testCalls(t) {
			if !strings.Contains(call+" ", changesUnseen) {
				continue
			}
			tested = true
			if strings.Contains(call, " -race ") || !strings.Contains(call, " -count=1 ") {
				t.Errorf("without -count=1, or with the race detector: %s", call)
			}
		}
		if !tested {
			t.Errorf("no call tests %s", changesUnseen)
		}
	}
}

func TestRequireAllWantsTheRaceDetector(t *testing.T) {
	environment := []string{"PATH=" + os.Getenv("PATH"), "CGO_ENABLED=0", "REQUIRE_ALL=1"}
	if out, code := run(t, environment, "hack/check.sh", "test"); code == 0 || !strings.Contains(out, "race detector") {
		t.Errorf("exit status %d:\n%s", code, out)
	}
}

func TestTheCountIsOfTests(t *testing.T) {
	cases := []struct {
		reason                         string
		total, failed, skipped, errors int
		want                           string
	}{
		{"all passed", 12, 0, 0, 0, "12 passed, 0 failed"},
		{"one failed", 12, 1, 0, 0, "11 passed, 1 failed"},
		{"some were not run", 12, 1, 2, 0, "9 passed, 1 failed, 2 not run"},
		{"what all need did not start", 0, 1, 0, 0, "0 passed, 1 failed"},
		{"the tests do not compile", 0, 0, 0, 1, "0 passed, 1 failed"},
	}
	for _, c := range cases {
		out, _ := run(t, []string{
			"PATH=" + os.Getenv("PATH"), "TESTS_TOTAL=" + strconv.Itoa(c.total), "TESTS_FAILED=" + strconv.Itoa(c.failed),
			"TESTS_SKIPPED=" + strconv.Itoa(c.skipped), "TESTS_ERRORS=" + strconv.Itoa(c.errors),
		}, "hack/count.sh")
		harness.Same(t, c.reason, c.want, strings.TrimSpace(out))
	}
}

// node is a copy of the node's scripts, with names of a link and of control groups that no real node
// uses, and another process in place of the node.
type node struct {
	scripts, dir string
	process      *exec.Cmd
	ended        chan struct{}
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{scripts: t.TempDir(), dir: t.TempDir(), process: exec.CommandContext(t.Context(), "sleep", "3600"), ended: make(chan struct{})}
	for _, name := range []string{"addresses.sh", "processes.sh", "down.sh", "with.sh"} {
		content := harness.RepositoryFile(t, "hack", "node", name)
		own := strings.NewReplacer("link=findings-host", "link=findings-none", "group=findings-node", "group=findings-none").Replace(content)
		harness.Must(t, os.WriteFile(filepath.Join(n.scripts, name), []byte(own), 0o700)) //nolint:gosec // to be run
	}
	harness.Must(t, errors.Join(n.process.Start(), os.Mkdir(filepath.Join(n.dir, "state"), 0o700)))
	go func() { _ = n.process.Wait(); close(n.ended) }()
	path := []string{"PATH=" + os.Getenv("PATH")}
	out, code := run(t, path, "bash", "-c", `source "$0" && record "$@"`, filepath.Join(n.scripts, "processes.sh"),
		n.state("unshare"), strconv.Itoa(n.process.Process.Pid))
	if code != 0 {
		t.Fatalf("record the node: exit status %d\n%s", code, out)
	}
	return n
}

func (n *node) state(name string) string { return filepath.Join(n.dir, "state", name) }

// with returns a command that runs beside the node.
func (n *node) with(t *testing.T, command string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), filepath.Join(n.scripts, "with.sh"), n.dir, "bash", "-c", command) //nolint:gosec // a test names its own
}

func (n *node) mustHaveEnded(t *testing.T) {
	t.Helper()
	select {
	case <-n.ended:
	default:
		t.Error("the node goes on")
	}
}

// After a restart of the machine, a recorded pid may be another process's.
func TestTheEndOfTheNodeSparesAnotherProcessWithItsPid(t *testing.T) {
	n := newNode(t)
	harness.Must(t, os.WriteFile(n.state("unshare.started"), []byte("1\n"), 0o600))
	if out, code := run(t, []string{"PATH=" + os.Getenv("PATH")}, filepath.Join(n.scripts, "down.sh"), n.dir); code != 0 {
		t.Fatalf("exit status %d:\n%s", code, out)
	}
	select {
	case <-n.ended:
		t.Error("it was killed")
	default:
	}
	left, err := os.ReadDir(n.state(""))
	harness.Must(t, err)
	if len(left) > 0 {
		t.Errorf("still recorded: %v", left)
	}
}

func TestTheNodeGetsNewCertificatesBeforeItsOwnExpire(t *testing.T) {
	needs.Program(t, "openssl", "openssl")
	dir, path := t.TempDir(), []string{"PATH=" + os.Getenv("PATH")}
	stored := func() string {
		t.Helper()
		return harness.File(t, filepath.Join(dir, "pki", "ca.crt"))
	}
	authority := func() string {
		t.Helper()
		if out, code := run(t, path, "hack/node/pki.sh", dir); code != 0 {
			t.Fatalf("exit status %d:\n%s", code, out)
		}
		return stored()
	}
	first := authority()
	if authority() != first {
		t.Error("a second start made new certificates: those of the first are good for a month")
	}
	if out, code := run(t, path, "openssl", "req", "-x509", "-key", filepath.Join(dir, "pki", "ca.key"), "-days", "1",
		"-subj", "/CN=findings-node", "-out", filepath.Join(dir, "pki", "ca.crt")); code != 0 {
		t.Fatalf("exit status %d:\n%s", code, out)
	}
	expiring := stored()
	openssl, err := exec.LookPath("openssl")
	harness.Must(t, err)
	cut := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n[ $1 != genrsa ] && exec %s \"$@\"\n", openssl)
	harness.Must(t, os.WriteFile(filepath.Join(cut, "openssl"), []byte(script), 0o700)) //nolint:gosec // to be run
	if out, code := run(t, []string{"PATH=" + cut + ":" + os.Getenv("PATH")}, "hack/node/pki.sh", dir); code == 0 {
		t.Fatalf("it was not cut off:\n%s", out)
	}
	half := stored()
	if half == expiring {
		t.Error("certificates on their last day were kept")
	}
	if authority() == half {
		t.Error("what a start that was cut off has made was kept")
	}
}

func TestTheNodeEndsWithTheCommandHoweverThatEnds(t *testing.T) {
	for reason, c := range map[string]struct {
		command string
		code    int
	}{
		"it succeeds": {"true", 0}, "it fails": {"exit 3", 3}, "it is killed": {"kill -9 $$", 137},
	} {
		t.Run(reason, func(t *testing.T) {
			n := newNode(t)
			command := n.with(t, c.command)
			if out, err := command.CombinedOutput(); command.ProcessState.ExitCode() != c.code {
				t.Errorf("%v, want exit status %d:\n%s", err, c.code, out)
			}
			n.mustHaveEnded(t)
		})
	}
}

func TestTheNodeAndTheCommandEndOnASignal(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			n := newNode(t)
			started := filepath.Join(n.dir, "started")
			// Processes that the command has started survive it unless they are ended too.
			command := n.with(t, "sleep 3600 & echo $! >"+started+".new; mv "+started+".new "+started+"; wait")
			harness.Must(t, command.Start())
			g := NewWithT(t)
			g.Eventually(func() error { _, err := os.Stat(started); return err }).WithTimeout(patience).Should(Succeed())
			harness.Must(t, command.Process.Signal(signal))
			if err := command.Wait(); err == nil {
				t.Error("it succeeds, although it was interrupted")
			}
			n.mustHaveEnded(t)
			content := harness.File(t, started)
			pid, err := strconv.Atoi(strings.TrimSpace(content))
			harness.Must(t, err)
			g.Eventually(func() error { return syscall.Kill(pid, 0) }).WithTimeout(patience).Should(MatchError(syscall.ESRCH))
		})
	}
}
