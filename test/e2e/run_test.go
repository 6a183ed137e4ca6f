// Package e2e tests the real binaries as people start them: through the program behind `make run`,
// with its own control plane, folder and port.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	// startTimeout allows for a machine that tests other packages at the same time, and builds
	// gosec.
	startTimeout = 10 * time.Minute
	stopTimeout  = 2 * time.Minute
	// settleTimeout bounds each wait for a condition.
	settleTimeout = 3 * time.Minute
	checkInterval = 20 * time.Millisecond
)

// run is a running `make run`.
type run struct {
	folder string
	port   int
	// env is the content of the run's env file.
	env map[string]string

	process *exec.Cmd
	output  *harness.Buffer
	ended   chan struct{}
}

// start starts a run over a folder, with additional environment variables if given, and returns once it answers. It
// is killed at the end of the test unless the test has stopped it.
func start(t *testing.T, folder string, environment ...string) *run {
	t.Helper()
	r := launch(t, folder, freePort(t), environment...)
	err := wait.PollUntilContextTimeout(t.Context(), checkInterval, startTimeout, true, func(context.Context) (bool, error) {
		select {
		case <-r.ended:
			return false, errors.New("it has ended")
		default:
			_, err := os.Stat(r.path("env"))
			return err == nil, nil
		}
	})
	if err != nil {
		t.Fatalf("wait for the run to answer: %v\n%s", err, r.output)
	}
	r.env = readEnvironment(t, r.path("env"))
	return r
}

// launch starts a run without waiting for it.
func launch(t *testing.T, folder string, port int, environment ...string) *run {
	t.Helper()
	binary := repositoryFile(t, "bin", "findings-local")
	r := &run{folder: folder, port: port, output: &harness.Buffer{}, ended: make(chan struct{})}
	// Do not use the test's context: its end would kill the process, and the tests choose how a run
	// ends.
	r.process = exec.Command(binary)
	r.process.Dir = harness.Root()
	r.process.Env = append(append(harness.CollectLess(), "RUN_DIR="+folder, "PORT="+strconv.Itoa(port)), environment...)
	r.process.SysProcAttr = endWithTest()
	r.process.Stdout, r.process.Stderr = r.output, r.output
	harness.Must(t, r.process.Start())
	go func() {
		defer close(r.ended)
		r.process.Wait() //nolint:errcheck // the exit code is read from ProcessState
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the run said:\n%s\n%s", r.output, r.logs())
		}
		r.kill()
	})
	return r
}

// interrupt does the same as Ctrl-C, waits for the end and returns the exit code.
func (r *run) interrupt(t *testing.T) int {
	t.Helper()
	harness.Must(t, r.process.Process.Signal(os.Interrupt))
	return r.waitForEnd(t)
}

func (r *run) waitForEnd(t *testing.T) int {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(stopTimeout):
		t.Fatalf("the run did not end in %s:\n%s", stopTimeout, r.output)
	}
	return r.process.ProcessState.ExitCode()
}

// kill ends the runner without giving it a chance to stop its children.
func (r *run) kill() {
	r.process.Process.Kill() //nolint:errcheck // it may have ended
	<-r.ended
}

func (r *run) path(parts ...string) string {
	return filepath.Join(append([]string{r.folder}, parts...)...)
}

// importer returns the path of the kubectl plugin.
func (r *run) importer() string {
	return filepath.Join(harness.Root(), "bin", "kubectl-findings")
}

// pids returns the process IDs of the run's children by name.
func (r *run) pids(t *testing.T) map[string]int {
	t.Helper()
	files, err := filepath.Glob(r.path("pids", "*"))
	harness.Must(t, err)
	pids := map[string]int{}
	for _, file := range files {
		pids[filepath.Base(file)] = r.pid(t, filepath.Base(file))
	}
	return pids
}

func (r *run) pid(t *testing.T, name string) int {
	t.Helper()
	content := harness.File(t, r.path("pids", name))
	pid, err := strconv.Atoi(strings.TrimSpace(content))
	if err != nil {
		t.Fatalf("the pid of %s: %v", name, err)
	}
	return pid
}

// kubectl runs kubectl with the run's own kubeconfig.
func (r *run) kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := r.command(t.Context(), testenv.Binary(t, "kubectl"), arguments...)
	harness.Must(t, err)
	return out
}

// admin returns a client with the rights of the run's own kubeconfig.
func (r *run) admin(t *testing.T) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", r.env["KUBECONFIG"])
	harness.Must(t, err)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: testenv.NewScheme()})
	harness.Must(t, err)
	return c
}

func (r *run) apply(t *testing.T, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	harness.Must(t, os.WriteFile(file, []byte(manifest), 0o600))
	r.kubectl(t, "apply", "--filename", file)
}

// command runs a program with the environment of the run's env file.
func (r *run) command(ctx context.Context, path string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, path, arguments...)
	command.Env = os.Environ()
	for name, value := range r.env {
		command.Env = append(command.Env, name+"="+value)
	}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(path), strings.Join(arguments, " "), err, out, stderr.String())
	}
	return string(out), nil
}

// logs returns the end of each child's log.
func (r *run) logs() string {
	files, _ := filepath.Glob(r.path("logs", "*.log"))
	var out strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			content = []byte(err.Error())
		}
		lines := strings.Split(strings.TrimSpace(string(content)), "\n")
		fmt.Fprintf(&out, "--- %s\n%s\n", filepath.Base(file), strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	return out.String()
}

// checkGone fails the test unless the run's children have ended, as well as every other process
// that was given the run's folder: a process that was started at the moment of a kill has no pid
// file yet.
func (r *run) checkGone(t *testing.T, pids map[string]int) {
	t.Helper()
	var left []string
	err := wait.PollUntilContextTimeout(t.Context(), checkInterval, settleTimeout, true, func(context.Context) (bool, error) {
		left = processesWith(r.folder)
		for name, pid := range pids {
			if harness.Runs(pid) {
				left = append(left, fmt.Sprintf("%s (process %d)", name, pid))
			}
		}
		return len(left) == 0, nil
	})
	if err != nil {
		t.Errorf("the run has ended, and these have not: %s", strings.Join(left, "; "))
	}
}

// processesWith returns the command lines that contain a text, on systems that have /proc.
func processesWith(text string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, file := range files {
		// The process may have ended since.
		content, _ := os.ReadFile(file)
		if line := strings.ReplaceAll(string(content), "\x00", " "); strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func readEnvironment(t *testing.T, path string) map[string]string {
	t.Helper()
	content := harness.File(t, path)
	env := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(content)); lines.Scan(); {
		assignment, isExport := strings.CutPrefix(lines.Text(), "export ")
		name, value, isAssignment := strings.Cut(assignment, "=")
		if !isExport || !isAssignment {
			t.Fatalf("%s holds the line %q; a shell must be able to source it", path, lines.Text())
		}
		env[name] = strings.Trim(value, "'")
	}
	return env
}

func repositoryFile(t *testing.T, parts ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{harness.Root()}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run `make build controlplane` first", err)
	}
	return path
}

func freePort(t *testing.T) int {
	t.Helper()
	return int(netip.MustParseAddrPort(harness.FreeAddress(t)).Port())
}
