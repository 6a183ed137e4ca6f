package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// buildTimeout is long enough for a machine that compiles everything for the first time.
const buildTimeout = 10 * time.Minute

// Root returns the repository's folder. Programs of bin/ are below it, and tests run in their package's folder.
func Root() string {
	program, err := os.Executable()
	here, errHere := os.Getwd()
	if err := errors.Join(err, errHere); err != nil {
		panic(err)
	}
	for _, folder := range []string{filepath.Dir(program), here} {
		for ; folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
			content, err := os.ReadFile(filepath.Join(folder, "go.mod")) //nolint:gosec // any folder may be the right one
			if err == nil && bytes.HasPrefix(content, []byte("module github.com/appsec-dev/findings-operator\n")) {
				return folder
			}
		}
	}
	panic(fmt.Sprintf("neither %s nor %s is in a checkout of findings-operator: start it in one", program, here))
}

// built is the environment variable by which `make test` reports that it has just built this project's programs.
const built = "FINDINGS_BUILT"

// Build compiles this project's programs, as `make build` does, and returns the folder that holds
// them. Programs that are up to date are not linked again. With FINDINGS_BUILT=1 it only returns the folder.
func Build(ctx context.Context) (folder string, err error) {
	folder = filepath.Join(Root(), "bin")
	if os.Getenv(built) == "1" {
		return folder, nil
	}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
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
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", folder+string(filepath.Separator), "./cmd/...") //nolint:gosec // the project's own
	command.Dir, command.Env = Root(), append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build this project's programs: %w\n%s", err, output)
	}
	return folder, nil
}
