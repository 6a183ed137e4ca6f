package e2e

import "syscall"

// endWithTest makes the kernel interrupt the runner when the test binary is killed, for example by
// its own timeout, because then no cleanup runs.
func endWithTest() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT} }
