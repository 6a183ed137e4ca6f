package console

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// npmTimeout bounds the download of the compiler and its run.
const npmTimeout = 6 * time.Minute

// The modules are plain JavaScript; the TypeScript compiler checks the types in their comments.
func TestModulesHaveTheTypesInTheirComments(t *testing.T) {
	npm := needs.Program(t, "npm", "npm")
	folder := t.TempDir()
	harness.Must(t, os.CopyFS(folder, os.DirFS(filepath.Join(harness.Root(), "test", "console"))))
	modules := 0
	for _, of := range folders {
		if of.files == nil {
			continue
		}
		found, err := fs.Glob(of.files, "*.js")
		harness.Must(t, err)
		modules += len(found)
		harness.Must(t, os.CopyFS(filepath.Join(folder, "modules", of.name), of.files))
	}
	if modules == 0 {
		t.Fatal("there are no modules")
	}
	ctx, cancel := context.WithTimeout(t.Context(), npmTimeout)
	defer cancel()
	run := func(program string, arguments ...string) (string, error) {
		command := exec.CommandContext(ctx, program, arguments...)
		command.Dir = folder
		output, err := command.CombinedOutput()
		return string(output), err
	}
	if output, err := run(npm, "ci", "--no-audit", "--no-fund"); err != nil {
		needs.Missing(t, "npm cannot fetch the compiler: %s", output)
	}
	if output, err := run(filepath.Join(folder, "node_modules", ".bin", "tsc"), "--project", folder); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
