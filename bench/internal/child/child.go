// Package child runs processes that are asked on their standard input and answer on their standard output.
package child

import (
	"errors"
	"io"
	"os/exec"
)

// Process is a running process.
type Process struct {
	In  io.WriteCloser
	Out io.Reader

	command *exec.Cmd
}

// Start starts the process. The command must end when its standard input ends.
func Start(command *exec.Cmd) (*Process, error) {
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &Process{In: in, Out: out, command: command}, command.Start()
}

// PID returns the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Close ends the process.
func (p *Process) Close() error { return errors.Join(p.In.Close(), p.command.Wait()) }
