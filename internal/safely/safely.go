// Package safely keeps a panic in one goroutine from ending the whole process.
package safely

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Panic is a panic as an error.
type Panic struct {
	// Cause is what the function panicked with, Stack where.
	Cause any
	Stack string
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Cause) }

// Func returns the function as one that returns a panic as a *Panic. The function must leave no lock held when it
// panics.
func Func(f func() error) func() error {
	return func() (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = &Panic{Cause: cause, Stack: string(debug.Stack())}
			}
		}()
		return f()
	}
}

// Stack returns where the panic occurred that caused the error; "" if none did.
func Stack(err error) string {
	if p, is := errors.AsType[*Panic](err); is {
		return p.Stack
	}
	return ""
}
