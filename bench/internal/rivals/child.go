package rivals

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// answerTimeout bounds requests to a rival that are not part of a measurement.
const answerTimeout = 30 * time.Second

// Child is a rival in a separate process.
type Child struct {
	// Address it serves at, as host:port.
	Address string

	process *exec.Cmd
	in      io.Closer
}

// Start starts a rival. The command must call Serve on its standard input and output.
func Start(command *exec.Cmd) (*Child, error) {
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the rival ended: %w", err), in.Close(), command.Wait(), errors.New(said.String()))
	}
	return &Child{Address: strings.TrimSpace(line), process: command, in: in}, nil
}

// PID returns the process ID.
func (c *Child) PID() int { return c.process.Process.Pid }

// Put sets the content that a ceiling answers with at /<name>.
func (c *Child) Put(ctx context.Context, name string, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+c.Address+"/"+name, bytes.NewReader(content))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("PUT %s: %s", name, response.Status)
	}
	return nil
}

// Close ends the process.
func (c *Child) Close() error { return errors.Join(c.in.Close(), c.process.Wait()) }
