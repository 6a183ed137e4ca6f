package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/appsec-dev/findings-operator/bench/internal/child"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
)

// Client sends requests from another process, so that its cost is not part of what is measured in
// this one. It does one job at a time.
type Client struct{ *child.Process }

// result is the answer to a job.
type result struct {
	Sample measure.Sample
	// Error is why the run is invalid.
	Error string
}

// Start starts the process. The command must call Serve on its standard input and output.
func Start(command *exec.Cmd) (*Client, error) {
	process, err := child.Start(command)
	if err != nil {
		return nil, fmt.Errorf("start the client: %w", err)
	}
	return &Client{process}, nil
}

// Run does the job in the other process.
func (c *Client) Run(job Job) (measure.Sample, error) {
	var r result
	if err := c.Ask(job, &r); err != nil {
		return r.Sample, fmt.Errorf("ask the client: %w", err)
	}
	if r.Error != "" {
		return r.Sample, errors.New(r.Error)
	}
	return r.Sample, nil
}

// Serve does the jobs that it reads, and answers each with its result, until the input ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	jobs, results := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var job Job
		if err := jobs.Decode(&job); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var r result
		var err error
		if r.Sample, err = Run(ctx, job); err != nil {
			r.Error = err.Error()
		}
		if err := results.Encode(r); err != nil {
			return err
		}
	}
}
