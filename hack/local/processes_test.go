package main

import (
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// newRunFolder returns options with a new run folder.
func newRunFolder(t *testing.T) options {
	t.Helper()
	o := options{root: t.TempDir(), runDir: t.TempDir(), port: 8080}
	lock, err := lockRunDir(o)
	harness.Must(t, err)
	t.Cleanup(func() {
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func TestAKilledChildIsStartedAgainAndSaidSo(t *testing.T) {
	g := NewWithT(t)
	o := newRunFolder(t)
	said := &harness.Buffer{}
	s := &supervisor{options: o, say: newReporter(said)}
	g.Expect(s.start(t.Context(), command{name: "sleeper", path: "/bin/sh", arguments: []string{"-c", "exec sleep 1000"}})).To(Succeed())
	first := readPID(g, o, "sleeper")

	g.Expect(syscall.Kill(first, syscall.SIGKILL)).To(Succeed())
	g.Eventually(func() int { return readPID(g, o, "sleeper") }).WithTimeout(settleTimeout).ShouldNot(Equal(first))
	g.Expect(said.String()).To(ContainSubstring("sleeper has ended (signal: killed)"))

	second := readPID(g, o, "sleeper")
	g.Expect(s.stopAll()).To(Succeed())
	g.Expect(syscall.Kill(second, 0)).To(MatchError(syscall.ESRCH), "a stopped child is gone and not started again")
}

func TestAChildThatDoesNotStartIsGivenUp(t *testing.T) {
	g := NewWithT(t)
	o := newRunFolder(t)
	said := &harness.Buffer{}
	ctx, giveUp := context.WithCancelCause(t.Context())
	s := &supervisor{options: o, say: newReporter(said), giveUp: giveUp}
	script := command{name: "broken", path: "/bin/sh", arguments: []string{"-c", "echo error: unknown flag >&2; exit 1"}}
	g.Expect(s.start(ctx, script)).To(Succeed())
	g.Eventually(ctx.Done()).WithTimeout(settleTimeout).Should(BeClosed())
	g.Expect(whyStopped(t.Context(), ctx)).To(MatchError(And(ContainSubstring("times right after its start"), ContainSubstring("error: unknown flag"))))
	g.Expect(said.String()).To(ContainSubstring("exit status 1"), "each end is reported")
	g.Expect(said.String()).To(ContainSubstring("error: unknown flag"), "with the end of the log")
	g.Expect(s.stopAll()).To(Succeed())
}

func TestRecordedChildrenAreKilledWithTheirGroup(t *testing.T) {
	g := NewWithT(t)
	o := newRunFolder(t)
	s := &supervisor{options: o, say: newReporter(io.Discard)}
	g.Expect(s.start(t.Context(), command{name: "sleeper", path: "/bin/sh", arguments: []string{"-c", "sleep 1000; :"}})).To(Succeed())
	first := readPID(g, o, "sleeper")
	g.Expect(killRecorded(o.state("pids"))).To(Succeed())
	g.Eventually(func() int { return readPID(g, o, "sleeper") }).WithTimeout(settleTimeout).ShouldNot(Equal(first), "it was killed, and started again")
	g.Expect(s.stopAll()).To(Succeed())
	g.Expect(killRecorded(o.state("pids"))).To(Succeed(), "processes that are gone are no error")
}

func TestChildrenAreStoppedLastStartedFirst(t *testing.T) {
	g := NewWithT(t)
	o := newRunFolder(t)
	s := &supervisor{options: o, say: newReporter(io.Discard)}
	// Each child records its name when it is asked to end.
	script := `trap 'echo $0 >>"$1"; exit 0' TERM; echo ready; while :; do sleep 0.01; done`
	ends := o.state("ends")
	for _, name := range []string{"first", "second", "third"} {
		g.Expect(s.start(t.Context(), command{name: name, path: "/bin/sh", arguments: []string{"-c", script, name, ends}})).To(Succeed())
		g.Eventually(func() string { return lastLine(o.state("logs", name+".log")) }).WithTimeout(settleTimeout).Should(Equal("ready"))
	}
	g.Expect(s.stopAll()).To(Succeed())
	g.Expect(strings.Fields(harness.File(t, ends))).To(Equal([]string{"third", "second", "first"}))
}

func TestAFolderIsRunByOneProcessAtATime(t *testing.T) {
	g := NewWithT(t)
	o := newRunFolder(t)
	_, err := lockRunDir(o)
	g.Expect(err).To(MatchError(And(ContainSubstring(strconv.Itoa(os.Getpid())), ContainSubstring("RUN_DIR="))))
}

func TestAFolderWithOtherFilesIsRefused(t *testing.T) {
	o := options{runDir: t.TempDir()}
	harness.Must(t, os.WriteFile(o.state("env"), nil, 0o600))
	_, err := lockRunDir(o)
	harness.ErrorContains(t, "a folder with a file", err, "contains env: set RUN_DIR to a new or empty folder")
	left, err := os.ReadDir(o.runDir)
	harness.Must(t, err)
	harness.Same(t, "its files", 1, len(left))
}

func readPID(g Gomega, o options, name string) int {
	content, err := os.ReadFile(o.state("pids", name))
	g.Expect(err).NotTo(HaveOccurred())
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	g.Expect(err).NotTo(HaveOccurred())
	return pid
}
