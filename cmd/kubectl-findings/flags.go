package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// require marks flags of the command as required.
func require(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the command has no such flag
		}
	}
}

func checkConcurrency(n int) error {
	if n < 1 || n > 256 {
		return fmt.Errorf("--concurrency is %d and must be from 1 to 256", n)
	}
	return nil
}

func checkTimeout(timeout time.Duration) error {
	if timeout <= 0 {
		return fmt.Errorf("--timeout is %s and must be greater than 0s", timeout)
	}
	return nil
}
