package harness

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// Outcome is the result of a command.
type Outcome struct {
	t              testing.TB
	command        string
	Stdout, Stderr string
	Code           int
}

// Run runs the command to its end. An exit code other than 0 does not fail the test.
func Run(t testing.TB, command *exec.Cmd) *Outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return &Outcome{t, strings.Join(command.Args, " "), stdout.String(), stderr.String(), command.ProcessState.ExitCode()}
}

// Wants expects exit code 0 and output that contains all of these texts.
func (o *Outcome) Wants(texts ...string) *Outcome {
	o.t.Helper()
	return o.exits(0).Says(texts...)
}

// Fails expects exit code 1 and output that contains all of these texts.
func (o *Outcome) Fails(texts ...string) *Outcome {
	o.t.Helper()
	return o.exits(1).Says(texts...)
}

func (o *Outcome) exits(code int) *Outcome {
	o.t.Helper()
	if o.Code != code {
		o.t.Errorf("%s\nexit code %d, want %d:\n%s%s", o.command, o.Code, code, o.Stdout, o.Stderr)
	}
	return o
}

// Says expects output that contains all of these texts.
func (o *Outcome) Says(texts ...string) *Outcome {
	o.t.Helper()
	Contains(o.t, o.command, o.Stdout+o.Stderr, texts...)
	return o
}

// Omits expects output that contains none of these texts.
func (o *Outcome) Omits(texts ...string) *Outcome {
	o.t.Helper()
	Lacks(o.t, o.command, o.Stdout+o.Stderr, texts...)
	return o
}
