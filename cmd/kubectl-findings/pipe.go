package main

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// exitClosedPipe is the exit status when nobody reads the output any more, as after `kubectl findings list | head`:
// that of a program that SIGPIPE has ended.
const exitClosedPipe = 128 + int(syscall.SIGPIPE)

// surviveClosedPipe makes a write to a closed pipe return an error. It would end the program at once, and a preview
// would leave its operation behind. Programs that give credentials would inherit that the signal is ignored, but not
// that it is caught.
func surviveClosedPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// closedPipe are the errors of a write to a pipe that nobody reads: the last two, ERROR_BROKEN_PIPE and ERROR_NO_DATA,
// on Windows.
var closedPipe = []error{syscall.EPIPE, syscall.Errno(109), syscall.Errno(232)}

// isClosedPipe reports whether the error is only that nobody reads the output. Another error beside it, or what to do
// about it, changes the text.
func isClosedPipe(err error) bool {
	written, is := errors.AsType[*fs.PathError](err)
	return is && slices.ContainsFunc(closedPipe, func(code error) bool { return errors.Is(written, code) }) &&
		err.Error() == written.Error()
}
