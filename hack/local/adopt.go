package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// The package envtest starts etcd and kube-apiserver itself. It leaves them running when the
// runner is killed, and tells nobody their process ids. So it is given symbolic links to the
// runner under their names: started so, the runner settles both matters, then becomes the
// binary it stands for.
const (
	adoptAssetsVariable = "FINDINGS_LOCAL_ASSETS"
	adoptRunnerVariable = "FINDINGS_LOCAL_RUNNER"
)

// offerAdoption puts a link to the runner into the run folder under the binary's name and
// returns its path.
func offerAdoption(o options, name string) (string, error) {
	if _, err := os.Stat(filepath.Join(o.assets(), name)); err != nil {
		return "", fmt.Errorf("%s is missing: run `make controlplane`: %w", name, err)
	}
	runner, err := os.Executable()
	if err != nil {
		return "", err
	}
	link := o.state("bin", name)
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	err = errors.Join(os.Symlink(runner, link),
		os.Setenv(adoptAssetsVariable, o.assets()),
		os.Setenv(adoptRunnerVariable, strconv.Itoa(os.Getpid())))
	return link, err
}

// adoptedBinary is the binary that this process stands for, or "" for the runner itself.
func adoptedBinary() string {
	assets := os.Getenv(adoptAssetsVariable)
	if assets == "" {
		return ""
	}
	return filepath.Join(assets, filepath.Base(os.Args[0]))
}

// adopt turns this process into the binary; it returns only when that fails.
func adopt(binary string) error {
	// What dieWithParent asks for holds for the thread, and must be the one that becomes the binary.
	runtime.LockOSThread()
	if err := dieWithParent(); err != nil {
		return err
	}
	// The runner may have gone before the kernel was told to watch it.
	if os.Getenv(adoptRunnerVariable) != strconv.Itoa(os.Getppid()) {
		return errors.New("the runner is gone")
	}
	// envtest asks for the help text first, in a process that ends at once.
	if len(os.Args) != 2 || strings.TrimLeft(os.Args[1], "-") != "help" {
		runDir := filepath.Dir(filepath.Dir(os.Args[0]))
		if err := writePID(filepath.Join(runDir, "pids"), filepath.Base(binary), os.Getpid()); err != nil {
			return err
		}
	}
	return syscall.Exec(binary, append([]string{binary}, os.Args[1:]...), os.Environ())
}
