package harness_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// panics is the environment variable that makes TestAPanicLeavesNoProcessBehind start processes and panic.
const panics = "HARNESS_PANICS"

func TestAPanicLeavesNoProcessBehind(t *testing.T) {
	if runtime.GOOS != "linux" {
		needs.Missing(t, "Linux, whose kernel ends a process with its parent")
	}
	if os.Getenv(panics) != "" {
		startAndPanic(t)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), panics+"=1", "TMPDIR="+t.TempDir())
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: on purpose") {
		t.Fatalf("the child ended with %v and not with its panic:\n%s", err, out)
	}
	var pids []int
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), "pid "); found {
			pid, err := strconv.Atoi(text)
			harness.Must(t, err)
			pids = append(pids, pid)
		}
	}
	if len(pids) != 2 {
		t.Fatalf("the child named the processes %v, want two:\n%s", pids, out)
	}
	harness.Eventually(t, func(g Gomega) {
		for _, pid := range pids {
			g.Expect(harness.Runs(pid)).To(BeFalse(), "process %d runs", pid)
		}
	})
}

func startAndPanic(t *testing.T) {
	t.Helper()
	for range 2 {
		p := shell(t, "exec sleep 600")
		harness.Must(t, p.Start())
		fmt.Fprintf(os.Stdout, "\npid %d\n", p.PID())
	}
	panic("on purpose")
}

func shell(t *testing.T, script string) *harness.Process {
	t.Helper()
	return harness.NewProcess(t.TempDir(), "script", "/bin/sh", "-c", script)
}

func TestStopReportsHowAProcessEnds(t *testing.T) {
	for _, c := range []struct{ script, want, reason string }{
		{"echo ready; exec sleep 600", "", "SIGTERM is how it was asked to end"},
		{"trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done", "", "it ends by itself, in order"},
		{"trap 'echo cause; exit 3' TERM; echo ready; while :; do sleep 0.01; done", "exit status 3; its log ends:\nready\ncause", "it fails on the way out"},
	} {
		p := shell(t, c.script)
		harness.Must(t, p.Start())
		harness.Eventually(t, func(g Gomega) { g.Expect(p.LogTail()).To(Equal("ready")) })
		harness.ErrorContains(t, c.script+" ("+c.reason+")", p.Stop(), c.want)
		if p.Running() {
			t.Errorf("%q runs after Stop", c.script)
		}
	}
}

func TestAnEndThatNobodyAskedForIsAnError(t *testing.T) {
	p := shell(t, "echo cause; exit 3")
	harness.Must(t, p.Start())
	err := p.AwaitReady(t.Context(), "http://127.0.0.1:1/readyz")
	harness.ErrorContains(t, "AwaitReady, which reports the end and the log", err, "script ended by itself: exit status 3", "cause")
	harness.ErrorContains(t, "Stop, which says that the process had ended before", p.Stop(), "ended by itself")
	harness.NoError(t, "a second Stop", p.Stop())
}

func TestARevivedProcessComesBack(t *testing.T) {
	p := shell(t, "echo ready; exec sleep 600")
	p.Revive = true
	harness.Must(t, p.Start())
	harness.Must(t, syscall.Kill(p.PID(), syscall.SIGKILL))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(p.Starts()).To(Equal(2))
		g.Expect(p.Running()).To(BeTrue())
	})
	if strays := p.Strays(); len(strays) != 1 || !strings.Contains(strays[0], "signal: killed") {
		t.Errorf("the strays are %q, want the one kill", strays)
	}
	harness.Must(t, p.Restart())
	if p.Starts() != 3 || len(p.Strays()) != 1 {
		t.Errorf("after Restart there were %d starts and the strays %q; want 3, and Restart to be none", p.Starts(), p.Strays())
	}
	harness.Must(t, p.Stop())
}
