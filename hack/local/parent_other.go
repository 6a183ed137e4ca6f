//go:build !linux

package main

import "syscall"

// dieWithParent does nothing: only Linux ties a process to its parent's life.
func dieWithParent() error { return nil }

// childAttributes put a child into its own process group, out of the terminal's Ctrl-C.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
