package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// writePID records a child's process id in a file of its name, atomically.
func writePID(folder, name string, pid int) error {
	return writeFile(filepath.Join(folder, name), []byte(strconv.Itoa(pid)+"\n"))
}

// removePIDs removes the files of an earlier run's processes.
func removePIDs(folder string) error {
	return errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700))
}

// killRecorded kills the recorded processes, each with its group.
func killRecorded(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	for _, file := range files {
		content, errOfRead := os.ReadFile(file) //nolint:gosec // our own file
		pid, errOfPID := strconv.Atoi(strings.TrimSpace(string(content)))
		if errOfFile := errors.Join(errOfRead, errOfPID); errOfFile != nil {
			err = errors.Join(err, errOfFile)
			continue
		}
		if errOfKill := syscall.Kill(-pid, syscall.SIGKILL); !errors.Is(errOfKill, syscall.ESRCH) {
			err = errors.Join(err, errOfKill)
		}
	}
	return err
}

// writeFile atomically replaces a file that only its owner can read, so that no reader sees half of it.
func writeFile(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}
