package rig

import "syscall"

// endWithTest has the kernel kill a process when the test binary ends, however that ends.
func endWithTest() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
