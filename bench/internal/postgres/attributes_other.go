//go:build !linux

package postgres

import "syscall"

// childAttributes put a child into its own process group, which does not receive the terminal's
// Ctrl-C.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
