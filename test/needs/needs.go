// Package needs declares what tests require of the machine. A test whose requirements are not met
// is skipped, or fails if REQUIRE_ALL=1 is set in the environment.
package needs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Program returns the path of a program from the given Debian package.
func Program(t testing.TB, name, debianPackage string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "%s is not installed (Debian: apt-get install %s)", name, debianPackage)
	}
	return path
}

// Browser returns the path of Chromium under any of its usual names. Its headless shell, the same engine without the
// rest of the browser, comes first: pages take half the processor time.
func Browser(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	return Program(t, "chromium", "chromium")
}

// SARIF returns the files in a folder of the collection of real scanner output that FINDINGS_SARIF_CORPUS names. It is
// kept outside the repository.
func SARIF(t testing.TB, folder string) []string {
	t.Helper()
	root := os.Getenv("FINDINGS_SARIF_CORPUS")
	if root == "" {
		Missing(t, "FINDINGS_SARIF_CORPUS names no folder of SARIF files")
	}
	files, err := filepath.Glob(filepath.Join(root, folder, "*.sarif"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no SARIF file in %s (error %v)", filepath.Join(root, folder), err)
	}
	return files
}

// Missing skips or fails the test because a requirement is missing.
func Missing(t testing.TB, format string, arguments ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, arguments...)
	if os.Getenv("REQUIRE_ALL") == "1" {
		t.Fatal(reason + ", and REQUIRE_ALL=1 requires every test to run")
	}
	t.Skip("not run: " + reason)
}
