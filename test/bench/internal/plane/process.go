package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/test/bench/internal/measure"
)

const (
	// readyTimeout is for a machine on which others work, and 100,000 findings.
	readyTimeout = 15 * time.Minute
	// readyInterval is how exactly the time until a process is ready is known.
	readyInterval = 5 * time.Millisecond
	// stopTimeout is what a process gets to end by itself.
	stopTimeout = 45 * time.Second
)

// Process is a part of the operator at work.
type Process struct {
	// Name, for people.
	Name string
	// Address is where it serves, as host:port; of the controllers there is none.
	Address string
	// HealthAddress and MetricsAddress serve /readyz and /metrics.
	HealthAddress, MetricsAddress string
	// Readied is how long it took from the start until it said that it is ready.
	Readied time.Duration

	command *exec.Cmd
	log     *os.File
	// ended is closed once the process is gone, endedBy is set before.
	ended   chan struct{}
	endedBy error
}

// PID of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// Memory that the process takes.
func (p *Process) Memory() (measure.Memory, error) { return measure.MemoryOf(p.PID()) }

// start starts a program and waits until it is ready. Whatever the context, it lives until stop.
func start(ctx context.Context, p *Process, folder, program string, arguments ...string) (*Process, error) {
	var err error
	if p.log, err = os.Create(filepath.Join(folder, p.Name+".log")); err != nil {
		return nil, err
	}
	p.command = exec.CommandContext(context.WithoutCancel(ctx), program, arguments...)
	p.command.Stdout, p.command.Stderr = p.log, p.log
	p.command.SysProcAttr = childAttributes()
	began := time.Now()
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", p.Name, err), p.log.Close())
	}
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		p.endedBy = p.command.Wait()
	}()
	if err := p.waitReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s did not become ready: %w; its log ends:\n%s", p.Name, err, tail(p.log.Name())), p.Stop())
	}
	p.Readied = time.Since(began)
	return p, nil
}

func (p *Process) waitReady(ctx context.Context) error {
	client := &http.Client{Timeout: 5 * time.Second}
	last := errors.New("no answer")
	err := wait.PollUntilContextTimeout(ctx, readyInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			return false, fmt.Errorf("it has ended: %w", p.endedBy)
		default:
			last = checkReady(ctx, client, "http://"+p.HealthAddress+"/readyz")
			return last == nil, nil
		}
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

func checkReady(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// Stop lets the process end by itself, and ends it where it does not.
func (p *Process) Stop() error {
	err := p.command.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		err = errors.Join(err, fmt.Errorf("%s did not end in %s", p.Name, stopTimeout), p.command.Process.Kill())
		<-p.ended
	}
	return errors.Join(err, p.log.Close())
}

// tail is how a file ends.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// freeAddresses are on the loopback interface. All are held until the last is found, so no two are
// the same.
func freeAddresses(ctx context.Context, count int) ([]string, error) {
	addresses := make([]string, 0, count)
	for range count {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close() //nolint:errcheck // nothing was accepted
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}
