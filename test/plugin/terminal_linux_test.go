package plugin_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// openTerminal returns a terminal: the side of the user, and the side of a program.
func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		needs.Missing(t, "no terminal can be opened: %v", err)
	}
	t.Cleanup(func() { _ = user.Close() })
	descriptor := int(user.Fd())
	number, err := unix.IoctlGetInt(descriptor, unix.TIOCGPTN)
	harness.Must(t, err)
	harness.Must(t, unix.IoctlSetPointerInt(descriptor, unix.TIOCSPTLCK, 0))
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	harness.Must(t, err)
	return user, program
}

// onTerminal makes the terminal the command's controlling terminal, so that Ctrl-C sends a signal.
func onTerminal(cmd *exec.Cmd, program *os.File) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}
