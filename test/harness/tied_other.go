//go:build !linux

package harness

import (
	"os/exec"
	"syscall"
)

// startTied starts a process that stays in the test's process group, and so ends with Ctrl-C. Only
// Linux ties a process to its parent's life.
func startTied(command *exec.Cmd, user *syscall.Credential) error {
	command.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	return command.Start()
}
