// Command local is the program behind `make run`: a control plane, the controllers, the REST
// API and a sample organization on this machine, until Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	// Without a sink controller-runtime prints a stack trace after half a minute.
	ctrllog.SetLogger(logr.Discard())

	if help, err := readArguments(os.Args[1:]); err != nil {
		fail(err)
	} else if help {
		fmt.Fprint(os.Stdout, usage)
		return
	}
	options, err := optionsFromEnvironment()
	if err != nil {
		fail(err)
	}
	ctx, forget := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second Ctrl-C ends the runner and its children at once.
	context.AfterFunc(ctx, func() {
		second := make(chan os.Signal, 1)
		signal.Notify(second, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		forget()
		<-second
		fail(errors.Join(errors.New("stopped at once"), killRecorded(options.state("pids"))))
	})
	if err := run(ctx, options, os.Stdout); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "run:", err)
	os.Exit(1)
}
