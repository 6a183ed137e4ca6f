package e2e

import "syscall"

// endWithTest has the kernel interrupt the runner when the test binary is killed, for example
// by its own timeout: no cleanup runs then.
func endWithTest() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT} }
