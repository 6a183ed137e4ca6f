package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"

	"github.com/appsec-dev/findings-operator/bench/internal/child"
)

// Client sends requests from another process, so that its cost is not part of what is measured in
// this one.
type Client struct {
	*child.Process
	results *bufio.Scanner
	busy    sync.Mutex
}

// maxAnswer is more than the size of a Result, in bytes.
const maxAnswer = 1 << 20

// Start starts the process. The command must call Serve on its standard input and output.
func Start(command *exec.Cmd) (*Client, error) {
	process, err := child.Start(command)
	if err != nil {
		return nil, fmt.Errorf("start the client: %w", err)
	}
	scanner := bufio.NewScanner(process.Out)
	scanner.Buffer(nil, maxAnswer)
	return &Client{Process: process, results: scanner}, nil
}

// Run does the job in the other process, one job at a time.
func (c *Client) Run(_ context.Context, job Job) Result {
	c.busy.Lock()
	defer c.busy.Unlock()
	if err := json.NewEncoder(c.In).Encode(job); err != nil {
		return Result{Error: fmt.Sprintf("ask the client: %v", err)}
	}
	if !c.results.Scan() {
		return Result{Error: fmt.Sprintf("the client has ended: %v", c.results.Err())}
	}
	var result Result
	if err := json.Unmarshal(c.results.Bytes(), &result); err != nil {
		return Result{Error: err.Error()}
	}
	return result
}

// Serve does the jobs that it reads, one per line, and answers each with its result, until the
// input ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	jobs, results := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var job Job
		if err := jobs.Decode(&job); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := results.Encode(Run(ctx, job)); err != nil {
			return err
		}
	}
}
