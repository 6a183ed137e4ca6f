package main

import "syscall"

// childAttributes put a child into its own process group, out of reach of the terminal's Ctrl-C, and let the kernel
// kill it when the runner dies without stopping it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
