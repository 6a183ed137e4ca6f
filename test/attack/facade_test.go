package attack

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/test/testenv"
)

// facade is `findings-operator apiserver` in a process of its own.
type facade struct {
	// address of the REST API, and of health and metrics.
	address, health string
	command         *exec.Cmd
	log             lockedBuffer
	ended           chan struct{}
	endedWith       error
}

// startFacade starts one with the rights that it has in a cluster. It believes this machine about
// whom it forwards requests for, so that the tries of one test are not refused for those before.
func (d *deployment) startFacade(arguments ...string) (*facade, error) {
	config, err := d.env.ServiceAccount(context.Background(), testenv.SystemNamespace, testenv.APIServiceAccount)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := d.kubeconfig("facade", config)
	if err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	f := &facade{address: addresses[0], health: addresses[1], ended: make(chan struct{})}
	f.command = exec.Command(filepath.Join(d.folder, "findings-operator"), append([]string{ //nolint:noctx // stop ends it
		"apiserver", "--kubeconfig=" + kubeconfig, "--bind-address=" + f.address, "--health-bind-address=" + f.health,
		"--trusted-proxies=127.0.0.1/32",
	}, arguments...)...)
	f.command.Stdout, f.command.Stderr = &f.log, &f.log
	if err := f.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		f.endedWith = f.command.Wait()
		close(f.ended)
	}()
	d.atEnd(f.stop)
	return f, f.waitUntilReady()
}

func (f *facade) waitUntilReady() error {
	quick := &http.Client{Timeout: time.Second}
	return wait.PollUntilContextTimeout(context.Background(), interval, patience, true, func(context.Context) (bool, error) {
		if !f.alive() {
			return false, fmt.Errorf("the facade ended: %w\n%s", f.endedWith, f.log.last())
		}
		response, err := quick.Get("http://" + f.health + "/readyz")
		if err != nil {
			return false, nil //nolint:nilerr // not listening yet
		}
		response.Body.Close() //nolint:errcheck,gosec // nothing is read from it
		return response.StatusCode == http.StatusOK, nil
	})
}

func (f *facade) alive() bool {
	select {
	case <-f.ended:
		return false
	default:
		return true
	}
}

// stop ends it as a cluster does; that it has ended before, or panicked, is an error.
func (f *facade) stop() error {
	if strings.Contains(f.log.String(), "panic") {
		return fmt.Errorf("the facade panicked:\n%s", f.log.last())
	}
	if !f.alive() {
		return fmt.Errorf("the facade ended under attack: %w\n%s", f.endedWith, f.log.last())
	}
	_ = f.command.Process.Signal(syscall.SIGTERM) // that it ends is looked at below
	select {
	case <-f.ended:
		if f.endedWith != nil {
			return fmt.Errorf("the facade ended: %w\n%s", f.endedWith, f.log.last())
		}
		return nil
	case <-time.After(patience):
		return errors.Join(errors.New("the facade did not end"), f.command.Process.Kill())
	}
}

// tryMemory sums up memoryMetrics.
func (f *facade) tryMemory(ctx context.Context) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.health+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	sum, found := 0.0, 0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if !slices.Contains(memoryMetrics, name) {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, err
		}
		sum, found = sum+value, found+1
	}
	if found != len(memoryMetrics) {
		return 0, fmt.Errorf("found %d of the metrics %v", found, memoryMetrics)
	}
	return sum, nil
}

func (f *facade) memory(t *testing.T) float64 {
	t.Helper()
	sum, err := f.tryMemory(t.Context())
	if err != nil {
		t.Fatalf("ask for metrics: %v\n%s", err, f.log.last())
	}
	return sum
}

// lockedBuffer is a log that may be read while it is written. It keeps the end alone.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// mostLog is how much of a log is kept, in bytes.
const mostLog = 8 << 20

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text.Len() > mostLog {
		_, _ = io.CopyN(io.Discard, &b.text, mostLog/2)
	}
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *lockedBuffer) last() string {
	text := b.String()
	return text[max(0, len(text)-4000):]
}
