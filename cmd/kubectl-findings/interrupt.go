package main

import (
	"os"
	"time"
)

// interruptSelf ends the process by the signal that it has caught: only then does a shell end a loop that contains the
// command. It returns where processes cannot send the signal, as on Windows, or if the signal is ignored.
func interruptSelf() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil && self.Signal(os.Interrupt) == nil {
		<-time.After(time.Second) // the signal may arrive a moment later
	}
}
