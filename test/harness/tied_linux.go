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

// startTied starts a process that the kernel kills when the test binary ends, whether by a panic,
// the timeout of go test or kill -9. The process does not receive the terminal's Ctrl-C.
func startTied(command *exec.Cmd, user *syscall.Credential) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: user}
	result := make(chan error)
	starter() <- func() { result <- command.Start() }
	return <-result
}
