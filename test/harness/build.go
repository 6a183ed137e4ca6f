package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// buildTimeout is long enough for a machine that compiles everything for the first time.
const buildTimeout = 10 * time.Minute

// Root returns the repository's folder.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Build compiles this project's programs, as `make build` does, and returns the folder that holds
// them. Programs that are up to date are not linked again.
func Build(ctx context.Context) (folder string, err error) {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	folder = filepath.Join(Root(), "bin")
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // programs for everybody, as make build leaves them
		return "", err
	}
	// Tests of several packages run in parallel and build the same programs.
	lock, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", folder, err)
	}
	command := exec.CommandContext(ctx, "go", "build", "-o", folder+string(filepath.Separator), "./cmd/...") //nolint:gosec // the project's own
	command.Dir = Root()
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build this project's programs: %w\n%s", err, output)
	}
	return folder, nil
}
