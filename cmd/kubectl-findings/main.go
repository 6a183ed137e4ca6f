// Command kubectl-findings is a kubectl plugin for the findings in a cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
	"github.com/appsec-dev/findings-operator/internal/safely"
)

func main() {
	// Without a logger the client libraries print a stack trace after half a minute, and log errors that this program
	// reports itself or that do not matter, such as those of a look-up.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	surviveClosedPipe()
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // it is ignored under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	// The first signal stops the command gracefully, a second one at once. A closed terminal is an exception: the kernel
	// and the shell each send a SIGHUP.
	context.AfterFunc(ctx, func() {
		signal.Ignore(syscall.SIGHUP)
		stop()
		signal.Stop(interrupts)
	})
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	status := exitStatus(flagerror.Execute(ctx, newRootCommand(streams)))
	signal.Reset(os.Interrupt) // it returns after one that is being delivered
	if len(interrupts) > 0 {
		interruptSelf()
	}
	os.Exit(status)
}

// exitStatus returns the status for the error of the command, which it prints.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	if isClosedPipe(err) {
		return exitClosedPipe
	}
	fmt.Fprintln(os.Stderr, "error:", printableLines(err.Error()))
	if stack := safely.Stack(err); stack != "" {
		fmt.Fprintln(os.Stderr, stack)
	}
	if _, failed := errors.AsType[*gateError](err); failed {
		return exitGateFailed
	}
	return 1
}
