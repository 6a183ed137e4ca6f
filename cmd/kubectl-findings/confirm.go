package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var errInterrupted = errors.New("interrupted; nothing was written")

// confirm asks whether to do what is described; any answer but yes means no. Without a terminal it refuses, so that no
// pipeline changes thousands of objects by mistake.
func confirm(ctx context.Context, streams genericiooptions.IOStreams, yes bool, what string) (bool, error) {
	if yes {
		return true, nil
	}
	if !isTerminal(streams.In) {
		return false, fmt.Errorf("refusing to %s: there is no terminal to ask for confirmation; see what it would do with --dry-run, then give --yes", what)
	}
	_, err := fmt.Fprintf(streams.ErrOut, "%s%s? [y/N] ", strings.ToUpper(what[:1]), what[1:])
	if err != nil {
		return false, err // nobody sees the question
	}
	answered := make(chan string, 1)
	go func() { // a read of a terminal cannot be canceled; it ends with the process
		line, _ := bufio.NewReader(streams.In).ReadString('\n')
		answered <- line
	}()
	select {
	case line := <-answered:
		return isYes(line), nil
	case <-ctx.Done():
		fmt.Fprintln(streams.ErrOut)
		return false, errInterrupted
	}
}

func isYes(line string) bool {
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a descriptor is small
}
