package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
)

// lockRunDir creates the folder and locks it for this process. The kernel releases the lock when the process ends,
// however it ends.
func lockRunDir(o options) (io.Closer, error) {
	if err := os.MkdirAll(o.runDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the run folder: %w", err)
	}
	if err := refuseOtherFiles(o); err != nil {
		return nil, err
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
	err = file.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintln(file, os.Getpid())
	}
	for _, folder := range []string{"logs", "pids", "pki", "kubeconfigs", "cursor-keys", "etcd"} {
		err = errors.Join(err, os.MkdirAll(o.state(folder), 0o700))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the run folder: %w", err), file.Close())
	}
	return file, nil
}

// refuseOtherFiles returns an error if the folder contains something and is not that of an earlier run: a run replaces
// and removes files by their names.
func refuseOtherFiles(o options) error {
	entries, err := os.ReadDir(o.runDir)
	if err != nil {
		return fmt.Errorf("read the run folder: %w", err)
	}
	isLock := func(entry os.DirEntry) bool { return entry.Name() == "lock" }
	if len(entries) > 0 && !slices.ContainsFunc(entries, isLock) {
		return fmt.Errorf("%s contains %s: set RUN_DIR to a new or empty folder, or to that of an earlier run",
			o.runDir, entries[0].Name())
	}
	return nil
}
