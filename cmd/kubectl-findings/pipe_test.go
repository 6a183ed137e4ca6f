package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestWhichErrorsAreThoseOfAClosedPipe(t *testing.T) {
	write := func(code syscall.Errno) error { return &fs.PathError{Op: "write", Path: "/dev/stdout", Err: code} }
	for reason, tc := range map[string]struct {
		err  error
		want bool
	}{
		"nobody reads":             {write(syscall.EPIPE), true},
		"Windows: it has ended":    {write(109), true},
		"Windows: it is closing":   {write(232), true},
		"a full disk":              {write(syscall.ENOSPC), false},
		"another error beside it":  {errors.Join(write(syscall.EPIPE), errors.New("interrupted")), false},
		"what to do about it":      {fmt.Errorf("%w: run it again", write(syscall.EPIPE)), false},
		"an error without a write": {errors.New("no role"), false},
	} {
		harness.Same(t, reason, tc.want, isClosedPipe(tc.err))
	}
}
