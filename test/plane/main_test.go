//go:build plane

package plane

import (
	"bytes"
	"flag"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// sizes configures TestSizes, which is skipped without it.
var sizes = flag.String("sizes", "", "how many findings to measure with, for example 10000,100000")

// patience is how long a condition may take on a busy machine.
const patience = 5 * time.Minute

// workload is the cluster that the operator runs in, backed by etcd, without the kinds.
var workload *testenv.Environment

func TestMain(m *testing.M) { testenv.MainBare(m, &workload) }

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
	command.Dir, command.Env = harness.Root(), s.env
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, output)
	}
	return strings.TrimSpace(string(output))
}

// start runs a block that does not end, with additional arguments, until Stop or the test's end.
func (s *shell) start(t *testing.T, block string, more ...string) *harness.Process {
	t.Helper()
	commands := strings.Join(append([]string{s.page.commands(t, block, s.ports)}, more...), " ")
	p := harness.NewProcess(s.folder, block, "bash", "-e", "-u", "-c", commands)
	// Controllers that lose their Lease on a busy machine exit, and are restarted as a supervisor would
	// do.
	p.Revive = block == "controllers"
	s.begin(t, p)
	return p
}

func (s *shell) begin(t *testing.T, p *harness.Process) {
	t.Helper()
	p.Env, p.Dir = s.env, harness.Root()
	harness.Must(t, p.Start())
	t.Cleanup(func() {
		if err := p.Stop(); err != nil || t.Failed() {
			t.Logf("%s ended with %v; its log ends:\n%s", p.Name, err, p.LogTail())
		}
	})
}

// alive ends the wait for a condition once the process has ended.
func alive(p *harness.Process) {
	if err := p.Err(); err != nil {
		StopTrying(err.Error()).Now()
	}
}

// freePorts returns a different free port for each name.
func freePorts(t *testing.T, names ...string) map[string]string {
	t.Helper()
	addresses, err := harness.FreeAddresses(len(names))
	harness.Must(t, err)
	out := map[string]string{}
	for i, name := range names {
		_, out[name], err = net.SplitHostPort(addresses[i])
		harness.Must(t, err)
	}
	return out
}

// quickly runs a program for a condition, and returns its output.
func (s *shell) quickly(t *testing.T, program string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...) //nolint:gosec // a test's own
	command.Env, command.Dir = s.env, harness.Root()
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	return strings.TrimSpace(out.String()), err
}
