// Package harness runs programs for tests: it builds them, finds addresses and writes kubeconfigs
// for them, starts and stops them, and waits until they are ready. Programs that it starts end with
// the test binary, however the test binary ends.
package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// reviveAfter is the delay before a process is revived, as with a kubelet.
	reviveAfter = time.Second
	// stopTimeout is how long a process may take to end after it was asked to.
	stopTimeout = 2 * time.Minute
	// logTail is how many of a log's last bytes are shown.
	logTail = 6000
)

// Process is a program that can be stopped, killed, frozen and started again with the same
// arguments, and therefore with the same data. Its exported fields are set before the first start.
// It is safe for concurrent use.
type Process struct {
	// Name appears in messages and in the log's file name.
	Name string
	// Path of the program.
	Path string
	// Arguments of the program.
	Arguments []string
	// Log is the file that the output of every start is appended to.
	Log string
	// Env is the environment; nil uses that of the test.
	Env []string
	// Dir is the working directory; empty uses that of the test.
	Dir string
	// User is the user that runs the program; nil uses that of the test.
	User *syscall.Credential
	// StopSignal asks the program to end; 0 for SIGTERM.
	StopSignal syscall.Signal
	// Revive restarts the program if it ends by itself.
	Revive bool
	// ReadyWithin is how long the program may take to become ready; 0 for Patience.
	ReadyWithin time.Duration

	mutex   sync.Mutex
	command *exec.Cmd
	ended   chan struct{}
	wanted  bool
	starts  int
	// strays describe each end of the program that no call had requested.
	strays []string
}

// NewProcess describes a program whose log is in the folder, without starting it.
func NewProcess(folder, name, path string, arguments ...string) *Process {
	return &Process{Name: name, Path: path, Arguments: arguments, Log: filepath.Join(folder, name+".log")}
}

// Start starts the program, which must not be running.
func (p *Process) Start() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.wanted = true
	return p.spawn()
}

// spawn requires the mutex to be held.
func (p *Process) spawn() error {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	command := exec.Command(p.Path, p.Arguments...) //nolint:gosec,noctx // a test names its own programs; Stop and Kill end them
	command.Stdout, command.Stderr, command.Env, command.Dir = log, log, p.Env, p.Dir
	err = startTied(command, p.User)
	// The program has its own descriptor.
	if closed := log.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.command, p.ended = command, make(chan struct{})
	p.starts++
	go p.follow(command, p.ended)
	return nil
}

// follow waits for the process to end and records an end that no call requested.
func (p *Process) follow(command *exec.Cmd, ended chan struct{}) {
	err := command.Wait()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	defer close(ended)
	if !p.wanted {
		return
	}
	p.strays = append(p.strays, fmt.Sprintf("%s ended by itself: %s", p.Name, EndOf(err)))
	if p.Revive {
		time.AfterFunc(reviveAfter, func() { p.revive(command) })
	}
}

// Runs reports whether a process runs. A zombie does not count.
func Runs(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// EndOf describes how a process ended, given the result of waiting for it.
func EndOf(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

func (p *Process) revive(ended *exec.Cmd) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.wanted || p.command != ended {
		return
	}
	if err := p.spawn(); err != nil {
		p.strays = append(p.strays, err.Error())
	}
}

// Stop asks the program to end, and kills it if it does not. It returns an error if the program had
// to be killed, fails, or had ended by itself without being revived.
func (p *Process) Stop() error {
	signal := cmp.Or(p.StopSignal, syscall.SIGTERM)
	command, ended, stray := p.release()
	if command == nil {
		return nil
	}
	if stray != nil {
		return fmt.Errorf("%w; its log ends:\n%s", stray, p.LogTail())
	}
	_ = command.Process.Signal(signal) // it may have ended
	select {
	case <-ended:
	case <-time.After(stopTimeout):
		_ = command.Process.Kill()
		<-ended
		return fmt.Errorf("%s did not end within %s; its log ends:\n%s", p.Name, stopTimeout, p.LogTail())
	}
	if state := command.ProcessState; !state.Success() && state.Sys().(syscall.WaitStatus).Signal() != signal {
		return fmt.Errorf("%s ended with %s; its log ends:\n%s", p.Name, state, p.LogTail())
	}
	return nil
}

// Run starts the program and stops it when the test ends. The test fails if the program fails.
func (p *Process) Run(t testing.TB) {
	t.Helper()
	Must(t, p.Start())
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		} else if t.Failed() {
			t.Logf("the log of %s ends:\n%s", p.Name, p.LogTail())
		}
	})
}

// release marks the process as no longer wanted. It returns the running command, nil if the process
// was not wanted, and an error if it has ended by itself.
func (p *Process) release() (command *exec.Cmd, ended chan struct{}, stray error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.wanted {
		return nil, nil, nil
	}
	stray = p.stray()
	p.wanted = false
	return p.command, p.ended, stray
}

// Kill ends the program at once, as kill -9 does, and returns when it has ended.
func (p *Process) Kill() {
	command, ended, _ := p.release()
	if command == nil {
		return
	}
	_ = command.Process.Kill() // it may have ended
	<-ended
}

// Restart kills the program and starts it again at once.
func (p *Process) Restart() error {
	p.Kill()
	return p.Start()
}

// Freeze suspends the program: its connections stay open, but it does not answer.
func (p *Process) Freeze() error { return p.signal(syscall.SIGSTOP) }

// Thaw resumes a frozen program.
func (p *Process) Thaw() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(which os.Signal) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.command.Process.Signal(which)
}

// PID returns the process ID of the latest start.
func (p *Process) PID() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.command.Process.Pid
}

// Starts returns how often the program was started.
func (p *Process) Starts() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.starts
}

// Running reports whether the program is known to run.
func (p *Process) Running() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.runs()
}

// runs requires the mutex to be held.
func (p *Process) runs() bool {
	if p.command == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Strays describes each end of the program that no call had requested.
func (p *Process) Strays() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.strays)
}

// Err returns an error if the program has ended by itself and is not revived.
func (p *Process) Err() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.stray()
}

// stray requires the mutex to be held.
func (p *Process) stray() error {
	if !p.wanted || p.Revive || p.runs() || len(p.strays) == 0 {
		return nil
	}
	return errors.New(p.strays[len(p.strays)-1])
}

// AwaitReady returns when the URL answers 200. It returns an error with the end of the log if the
// program ends or ReadyWithin passes first.
func (p *Process) AwaitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.ReadyWithin, Patience))
	defer cancel()
	if err := awaitAnswer(ctx, nil, url, p.Err); err != nil {
		return fmt.Errorf("%s does not become ready: %w; its log ends:\n%s", p.Name, err, p.LogTail())
	}
	return nil
}

// LogTail returns the end of the log.
func (p *Process) LogTail() string {
	content, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(content[max(0, len(content)-logTail):]))
}
