package held

import (
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/child"
)

// Child has done a job in a separate process, which keeps what it read in memory until Close.
type Child struct {
	*child.Process
	Result
	// Took is the time from the start of the process until the job was done.
	Took time.Duration
}

// Start starts the process and waits until the job is done. The command must call Serve on its standard
// input and output, and ends with its context.
func Start(command *exec.Cmd, job Job) (*Child, error) {
	began := time.Now()
	process, err := child.Start(command)
	if err != nil {
		return nil, err
	}
	c := &Child{Process: process}
	err = process.Ask(job, &c.Result)
	c.Took = time.Since(began)
	if err == nil && c.Error != "" {
		err = errors.New(c.Error)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s all: %w", job.Way, err), c.Close())
	}
	return c, nil
}
