package harness

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starter starts processes on one thread that never ends: the kernel kills a process when the
// thread that has started it ends, and not only when the whole test binary does.
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

// startTied starts a process that the kernel kills when the test binary ends: by a panic, by the
// timeout of go test, by kill -9. It stays out of the terminal's Ctrl-C.
func startTied(command *exec.Cmd, user *syscall.Credential) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: user}
	result := make(chan error)
	starter() <- func() { result <- command.Start() }
	return <-result
}
