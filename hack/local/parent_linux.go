package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill this process when its parent ends, however that ends.
func dieWithParent() error {
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// childAttributes put a child into its own process group, out of the terminal's Ctrl-C, and
// let the kernel kill it when the runner ends without a chance to stop it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
