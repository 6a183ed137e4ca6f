//go:build plane

package plane

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/test/testenv"
)

// sizes are for TestSizes, which is not run without.
var sizes = flag.String("sizes", "", "how many findings to measure with, for example 10000,100000")

const (
	// patience is how long a condition may take on a busy machine.
	patience = 5 * time.Minute
	interval = 200 * time.Millisecond
	// stopTimeout is what a process gets to end by itself.
	stopTimeout = time.Minute
)

// workload is the cluster that the operator runs in, over etcd, with nothing of the kinds in it.
var workload *testenv.Environment

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	testenv.MainBare(m, &workload)
}

// shell runs the page's commands with the variables of a run.
type shell struct {
	page   page
	ports  map[string]string
	folder string
	env    []string
}

// run runs a block to its end.
func (s *shell) run(t *testing.T, block string) string {
	t.Helper()
	return s.command(t, block, s.page.commands(t, block, s.ports))
}

func (s *shell) command(t *testing.T, what, commands string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-e", "-u", "-o", "pipefail", "-c", commands) //nolint:gosec // the page's own
	command.Dir, command.Env = testenv.RepositoryRoot(), s.env
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, output)
	}
	return strings.TrimSpace(string(output))
}

// process is one that goes on.
type process struct {
	name, log string
	// again says that it is started again when it ends, as whatever keeps processes running does:
	// controllers that lose their Lease on a busy machine end.
	again bool
	// make is how to run it.
	make func() *exec.Cmd
	// ended is closed once it has ended for good, endedBy is set before.
	ended   chan struct{}
	endedBy error

	mu      sync.Mutex
	command *exec.Cmd
	stopped bool
}

// start runs a block that goes on, with more arguments, until stop or the test's end.
func (s *shell) start(t *testing.T, block string, more ...string) *process {
	t.Helper()
	commands := strings.Join(append([]string{s.page.commands(t, block, s.ports)}, more...), " ")
	return s.begin(t, &process{name: block, again: block == "controllers", make: func() *exec.Cmd {
		command := exec.Command("bash", "-e", "-u", "-c", commands) //nolint:gosec,noctx // the page's own; stop ends it
		command.Env, command.SysProcAttr = s.env, &syscall.SysProcAttr{}
		return command
	}})
}

func (s *shell) begin(t *testing.T, p *process) *process {
	t.Helper()
	p.log, p.ended = filepath.Join(s.folder, p.name+".log"), make(chan struct{})
	must(t, p.launch())
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			content, _ := os.ReadFile(p.log)
			t.Logf("%s said last:\n%s", p.name, content[max(0, len(content)-3000):])
		}
	})
	return p
}

// launch starts the process, and again once it has ended, where that is wanted.
func (p *process) launch() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return errStopped
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the process has its own
	command := p.make()
	command.Dir, command.Stdout, command.Stderr = testenv.RepositoryRoot(), log, log
	command.SysProcAttr.Setpgid = true // out of the terminal's Ctrl-C: the test ends it
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := command.Start(); err != nil {
		return err
	}
	p.command = command
	go func() {
		ended := command.Wait()
		if !p.again || p.launch() != nil {
			p.endedBy = ended
			close(p.ended)
		}
	}()
	return nil
}

// errStopped says that a process is not to be started again.
var errStopped = errors.New("stopped")

// pid is the process's number.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.command.Process.Pid
}

// signal asks the process to end for good; false: it has been asked before.
func (p *process) signal(signal os.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	p.stopped = true
	_ = p.command.Process.Signal(signal) // it may have ended
	return true
}

// stop ends the process as an init system does.
func (p *process) stop(t *testing.T) {
	t.Helper()
	end := syscall.SIGTERM
	if p.name == "postgresql" {
		end = syscall.SIGINT // a fast shutdown: SIGTERM waits for its clients
	}
	if !p.signal(end) {
		return
	}
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		t.Errorf("%s does not end", p.name)
		_ = p.command.Process.Kill()
	}
}

// alive fails the assertion once the process has ended.
func (p *process) alive() {
	select {
	case <-p.ended:
		StopTrying(fmt.Sprintf("%s has ended: %v", p.name, p.endedBy)).Now()
	default:
	}
}

// freePorts are as many as the page names, and no two are the same.
func freePorts(t *testing.T, names ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range names {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		must(t, err)
		defer listener.Close() //nolint:errcheck,revive // open until all are known
		_, out[name], err = net.SplitHostPort(listener.Addr().String())
		must(t, err)
	}
	return out
}

func eventually(t *testing.T, assertions func(g Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(assertions).WithContext(t.Context()).WithTimeout(patience).WithPolling(interval).Should(Succeed())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// quickly runs a program for a condition, and returns what it said.
func (s *shell) quickly(t *testing.T, program string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...) //nolint:gosec // a test's own
	command.Env, command.Dir = s.env, testenv.RepositoryRoot()
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	return strings.TrimSpace(out.String()), err
}
