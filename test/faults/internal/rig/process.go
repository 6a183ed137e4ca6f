package rig

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// reviveAfter is how long a process that has ended by itself stays away, as a kubelet would have it.
const reviveAfter = time.Second

// Process is a program that is killed, frozen and started again with the same arguments, and so
// over the same data. It is safe for concurrent use.
type Process struct {
	// Name for messages; its log is named after it.
	Name string
	// Revive has the program started again where it ends by itself.
	Revive bool

	path      string
	arguments []string
	log       string

	mutex   sync.Mutex
	command *exec.Cmd
	ended   chan struct{}
	wanted  bool
	starts  int
	// strays are how it ended when nobody had killed it.
	strays []string
}

// NewProcess describes a program; it does not start it. Its output is appended to the log.
func NewProcess(name, path, log string, arguments ...string) *Process {
	return &Process{Name: name, path: path, log: log, arguments: arguments}
}

// Start starts the program. It must not run already.
func (p *Process) Start() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.wanted = true
	return p.spawn()
}

// spawn needs the mutex.
func (p *Process) spawn() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	command := exec.Command(p.path, p.arguments...) //nolint:gosec,noctx // a test starts the project's own binaries, and ends them itself
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = endWithTest()
	err = command.Start()
	// The program has a descriptor of its own.
	if closed := log.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	ended := make(chan struct{})
	p.command, p.ended = command, ended
	p.starts++
	go p.follow(command, ended)
	return nil
}

// follow waits for the end, and sees to it that one that nobody wanted is told of.
func (p *Process) follow(command *exec.Cmd, ended chan struct{}) {
	err := command.Wait()
	close(ended)
	p.mutex.Lock()
	stray := p.wanted && p.command == command
	if stray {
		p.strays = append(p.strays, fmt.Sprintf("%s ended by itself: %v", p.Name, err))
	}
	p.mutex.Unlock()
	if !stray || !p.Revive {
		return
	}
	time.AfterFunc(reviveAfter, func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		if !p.wanted || p.command != command {
			return
		}
		if err := p.spawn(); err != nil {
			p.strays = append(p.strays, err.Error())
		}
	})
}

// Kill ends the program at once, as kill -9 does, and returns when it has ended.
func (p *Process) Kill() {
	p.mutex.Lock()
	p.wanted = false
	command, ended := p.command, p.ended
	p.mutex.Unlock()
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

// Freeze stops the program where it is: its connections stay, and nothing answers.
func (p *Process) Freeze() error { return p.signal(syscall.SIGSTOP) }

// Thaw lets a frozen program go on.
func (p *Process) Thaw() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(which os.Signal) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.command.Process.Signal(which)
}

// Starts is how often the program was started.
func (p *Process) Starts() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.starts
}

// Running reports whether the program runs, as far as is known.
func (p *Process) Running() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
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

// Strays tell how often, and how, the program ended when nobody had killed it.
func (p *Process) Strays() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return append([]string{}, p.strays...)
}
