// Package needs declares what tests require of the machine. A test whose requirements are not met
// is skipped, or fails if REQUIRE_ALL=1 is set in the environment.
package needs

import (
	"fmt"
	"os"
	"os/exec"
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

// Browser returns the path of Chromium under any of its usual names. Its headless shell, the same engine without the rest
// of the browser, comes first: pages take half the processor time.
func Browser(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	return Program(t, "chromium", "chromium")
}

// Missing skips or fails the test because a requirement is missing.
func Missing(t testing.TB, format string, arguments ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, arguments...)
	if os.Getenv("REQUIRE_ALL") == "1" {
		t.Fatal(reason + ", and REQUIRE_ALL=1 wants every test run")
	}
	t.Skip("not run: " + reason)
}
