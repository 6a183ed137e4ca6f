package harness

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starter starts processes on one thread that never ends: the kernel kills a process when the
// thread that started it ends, not only when the whole test binary ends.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range work {
			start()
		}
	}()
	return work
})

// ChildAttributes put a child into its own process group, out of reach of the terminal's Ctrl-C, and let the kernel
// kill it when the thread that started it ends, and so when this program ends without stopping it.
func ChildAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// startTied starts a process that the kernel kills when the test binary ends, whether by a panic,
// the timeout of go test or kill -9. The process does not receive the terminal's Ctrl-C.
func startTied(command *exec.Cmd, user *syscall.Credential) error {
	command.SysProcAttr = ChildAttributes()
	command.SysProcAttr.Credential = user
	result := make(chan error)
	starter() <- func() { result <- command.Start() }
	return <-result
}
