package main

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
)

// exitClosedPipe is the exit status when nobody reads the output any more, as after `kubectl findings list | head`:
// that of a program that SIGPIPE has ended.
const exitClosedPipe = 128 + int(syscall.SIGPIPE)

// surviveClosedPipe makes a write to a closed pipe return an error. It would end the program at once, and a preview
// would leave its operation behind. Programs that give credentials would inherit that the signal is ignored, but not
// that it is caught.
func surviveClosedPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// isClosedPipe reports whether the error is only that nobody reads the output. Another error beside it, or what to do
// about it, changes the text.
func isClosedPipe(err error) bool {
	written, is := errors.AsType[*fs.PathError](err)
	return is && errors.Is(written, syscall.EPIPE) && err.Error() == written.Error()
}
