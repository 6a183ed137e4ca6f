package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// lockRunDir creates the folder and locks it for this process. The kernel releases the lock when the process ends,
// however it ends.
func lockRunDir(o options) (io.Closer, error) {
	for _, folder := range []string{"", "logs", "pids", "pki", "kubeconfigs", "cursor-keys", "etcd"} {
		if err := os.MkdirAll(o.state(folder), 0o700); err != nil {
			return nil, fmt.Errorf("make the run folder: %w", err)
		}
	}
	file, err := os.OpenFile(o.state("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(file, 32))
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("process %s already runs in %s: stop it, or give another folder and port: RUN_DIR=.run-2 PORT=8081 make run",
				strings.TrimSpace(string(holder)), o.runDir)
		}
		return nil, errors.Join(err, file.Close())
	}
	if err := file.Truncate(0); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := fmt.Fprintln(file, os.Getpid()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
