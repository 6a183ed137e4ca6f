// Package child runs processes that are asked on their standard input and answer on their standard output, in JSON.
package child

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"sync"
)

// Process is a running process.
type Process struct {
	command *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
	// asking is held until the answer has come.
	asking sync.Mutex
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
	return &Process{command: command, in: in, answers: json.NewDecoder(out)}, command.Start()
}

// Ask sends a question, and decodes the answer. The process is asked one question at a time.
func (p *Process) Ask(question, answer any) error {
	p.asking.Lock()
	defer p.asking.Unlock()
	return errors.Join(json.NewEncoder(p.in).Encode(question), p.Read(answer))
}

// Read decodes what the process says next.
func (p *Process) Read(answer any) error { return p.answers.Decode(answer) }

// PID returns the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Close ends the process.
func (p *Process) Close() error { return errors.Join(p.in.Close(), p.command.Wait()) }
