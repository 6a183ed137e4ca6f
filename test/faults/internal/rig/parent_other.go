//go:build !linux

package rig

import "syscall"

// endWithTest does nothing: only Linux ties a process to its parent's life.
func endWithTest() *syscall.SysProcAttr { return nil }
