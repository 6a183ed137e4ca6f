package testenv

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// StartControllerManager runs kube-controller-manager with the named controllers until the
// test ends: without it no namespace ever goes and nothing follows its owner.
func (e *Environment) StartControllerManager(t testing.TB, controllers ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, Binary(t, "kube-controller-manager"),
		"--kubeconfig", WriteKubeconfig(t, e.Config, "default"),
		"--controllers", strings.Join(controllers, ","),
		"--leader-elect=false",
		"--bind-address=127.0.0.1", "--secure-port=0",
	) //nolint:gosec // the project's own binary
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	if err := command.Start(); err != nil {
		cancel()
		t.Fatalf("start kube-controller-manager: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		_ = command.Wait() // it ends by our signal
		if t.Failed() {
			text := output.String()
			t.Logf("kube-controller-manager said last:\n%s", text[max(0, len(text)-4000):])
		}
	})
}
