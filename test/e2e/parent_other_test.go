//go:build !linux

package e2e

import "syscall"

// endWithTest does nothing: only Linux can tie a process to the life of its parent.
func endWithTest() *syscall.SysProcAttr { return nil }
