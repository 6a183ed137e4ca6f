package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	// stopGrace is how long a child may take to end by itself; the REST API completes running requests.
	stopGrace = 45 * time.Second
	// steadyAfter is how long a child must have run so that its next end does not count as a repeated failure.
	steadyAfter = 30 * time.Second
	// A child that has ended maxEnds times in a row within atOnce of its start is given up, unless it has ever been
	// steady: most likely its flags are wrong.
	atOnce  = time.Second
	maxEnds = 4
)

// command is what a child runs.
type command struct {
	name, path string
	arguments  []string
}

// supervisor keeps children running until it is stopped.
type supervisor struct {
	options options
	say     reporter
	// giveUp is called with the reason if a child does not start.
	giveUp   context.CancelCauseFunc
	children []*child
}

// child is a process that is restarted, with growing pauses, whenever it ends.
type child struct {
	command command
	log     *os.File
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

// start starts a child. It runs until stopAll, even if the context ends: the order in which children end matters. An
// error means that the first start failed.
func (s *supervisor) start(ctx context.Context, what command) error {
	log, err := openLog(s.options, what.name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &child{command: what, log: log, stop: cancel}
	process, err := s.spawn(ctx, c)
	if err != nil {
		cancel()
		return errors.Join(err, log.Close())
	}
	s.children = append(s.children, c)
	c.ended.Go(func() { s.keep(ctx, c, process) })
	return nil
}

// spawn starts a process that gets SIGTERM when the context ends, and SIGKILL after stopGrace.
func (s *supervisor) spawn(ctx context.Context, c *child) (*exec.Cmd, error) {
	process := exec.CommandContext(ctx, c.command.path, c.command.arguments...)
	process.Stdout, process.Stderr = c.log, c.log
	process.SysProcAttr = harness.ChildAttributes()
	process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
	process.WaitDelay = stopGrace
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.command.name, err)
	}
	if err := writePID(s.options.state("pids"), c.command.name, process.Process.Pid); err != nil {
		return nil, errors.Join(fmt.Errorf("record the pid of %s: %w", c.command.name, err), process.Process.Kill(),
			process.Wait())
	}
	return process, nil
}

// keep waits for the process, and for each that is started in its place.
func (s *supervisor) keep(ctx context.Context, c *child, process *exec.Cmd) {
	soFar := record{pause: newPause()}
	for process != nil {
		started := time.Now()
		err := process.Wait()
		if ctx.Err() != nil {
			return
		}
		if soFar.noteEnd(time.Since(started)) {
			s.giveUp(fmt.Errorf("%s ended %d times right after its start (%s); its log (%s) ends:\n  %s",
				c.command.name, maxEnds, harness.EndOf(err), c.log.Name(), lastLine(c.log.Name())))
			return
		}
		process = s.restart(ctx, c, &soFar.pause, err)
	}
}

// record is how a child has run so far.
type record struct {
	// pause before its next start.
	pause wait.Backoff
	// steady means that it has ever run for longer than steadyAfter.
	steady bool
	// ends is how many times in a row it has ended within atOnce.
	ends int
}

// noteEnd notes that the child ended after that time, and reports whether to give it up.
func (r *record) noteEnd(ran time.Duration) bool {
	switch {
	case ran > steadyAfter:
		*r = record{pause: newPause(), steady: true}
	case ran > atOnce:
		r.ends = 0
	default:
		r.ends++
	}
	return r.ends == maxEnds && !r.steady
}

// restart starts the child, which ended with err, after a pause, and after a longer one each time that fails. It
// returns nil once ctx ends.
func (s *supervisor) restart(ctx context.Context, c *child, pause *wait.Backoff, err error) *exec.Cmd {
	for {
		next := pause.Step()
		s.say("%s has ended (%s); starting it again in %s; its log (%s) ends:\n  %s",
			c.command.name, harness.EndOf(err), next.Round(time.Millisecond), c.log.Name(), lastLine(c.log.Name()))
		if !harness.Pause(ctx, next) {
			return nil
		}
		var process *exec.Cmd
		if process, err = s.spawn(ctx, c); err == nil {
			return process
		}
	}
}

// stopAll stops the children, the last started first, and returns when all have ended.
func (s *supervisor) stopAll() error {
	var err error
	for i := len(s.children) - 1; i >= 0; i-- {
		c := s.children[i]
		c.stop()
		c.ended.Wait()
		err = errors.Join(err, c.log.Close())
	}
	s.children = nil
	return err
}

func newPause() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 100, Cap: 10 * time.Second}
}
