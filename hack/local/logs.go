package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// reporter prints one line for the user at the terminal. It may be called concurrently.
type reporter func(format string, arguments ...any)

func newReporter(out io.Writer) reporter {
	var mutex sync.Mutex
	return func(format string, arguments ...any) {
		mutex.Lock()
		defer mutex.Unlock()
		fmt.Fprintf(out, format+"\n", arguments...)
	}
}

// endOfLog bounds how much of a log is searched for its last line.
const endOfLog = 4 << 10

// lastLine returns the last line of a file; empty if it cannot be read.
func lastLine(path string) string {
	file, err := os.Open(path) //nolint:gosec // a log of ours
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // it was only read
	if info, err := file.Stat(); err == nil && info.Size() > endOfLog {
		if _, err := file.Seek(-endOfLog, io.SeekEnd); err != nil {
			return ""
		}
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return ""
	}
	text := strings.TrimSpace(string(content))
	return text[strings.LastIndex(text, "\n")+1:]
}

// openLog creates a child's log file and keeps the previous run's log beside it.
func openLog(o options, name string) (*os.File, error) {
	path := o.state("logs", name+".log")
	if err := os.Rename(path, path+".before"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("put the old log aside: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	return file, nil
}
