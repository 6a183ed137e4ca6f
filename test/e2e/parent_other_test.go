//go:build !linux

package e2e

import "syscall"

// endWithTest does nothing: only Linux ties a process to its parent's life.
func endWithTest() *syscall.SysProcAttr { return nil }
