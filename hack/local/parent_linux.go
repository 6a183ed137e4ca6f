package main

import "syscall"

// childAttributes put a child into its own process group, out of the terminal's Ctrl-C, and
// let the kernel kill it when the runner ends without a chance to stop it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
