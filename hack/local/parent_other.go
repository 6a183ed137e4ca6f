//go:build !linux

package main

import "syscall"

// childAttributes put a child into its own process group, out of reach of the terminal's Ctrl-C.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
