package postgres

import "syscall"

// childAttributes put a child into its own process group, out of the terminal's Ctrl-C, and have
// the kernel end it when we end without a chance to.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
