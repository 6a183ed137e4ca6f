package rivals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/child"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// answerTimeout bounds requests to a rival that are not part of a measurement.
const answerTimeout = 30 * time.Second

// Child is a rival in a separate process.
type Child struct {
	*child.Process
	// Address it serves at, as host:port.
	Address string
}

// Start starts a rival. The command must call Serve on its standard input and output.
func Start(command *exec.Cmd) (*Child, error) {
	var said bytes.Buffer
	command.Stderr = &said
	process, err := child.Start(command)
	if err != nil {
		return nil, err
	}
	c := &Child{Process: process}
	if err := process.Read(&c.Address); err != nil {
		return nil, errors.Join(fmt.Errorf("the rival ended: %w", err), process.Close(), errors.New(said.String()))
	}
	return c, nil
}

// Put sets the content that a ceiling answers with at /<name>.
func (c *Child) Put(ctx context.Context, name string, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+c.Address+"/"+name, bytes.NewReader(content))
	if err != nil {
		return err
	}
	status, _, err := harness.Answer(nil, request)
	if err == nil && status != http.StatusNoContent {
		err = fmt.Errorf("PUT %s: %d", name, status)
	}
	return err
}
