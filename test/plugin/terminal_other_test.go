//go:build !linux

package plugin_test

import (
	"os"
	"os/exec"
	"testing"
)

func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	t.Skip("not run: terminals are opened on Linux alone")
	return nil, nil
}

func onTerminal(*exec.Cmd, *os.File) {}
