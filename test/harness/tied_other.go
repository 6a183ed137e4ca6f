//go:build !linux

package harness

import (
	"os/exec"
	"syscall"
)

// ChildAttributes put a child into its own process group, out of reach of the terminal's Ctrl-C.
func ChildAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// startTied starts a process that stays in the test's process group, so it ends with Ctrl-C. Only
// Linux can tie a process to the life of its parent.
func startTied(command *exec.Cmd, user *syscall.Credential) error {
	command.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	return command.Start()
}
