package postgres

import "syscall"

// childAttributes put a child into its own process group, which does not receive the terminal's
// Ctrl-C, and make the kernel kill the child when this process ends without stopping it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
