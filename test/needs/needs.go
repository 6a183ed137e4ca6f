// Package needs is what tests want of the machine that they run on. A test whose wants are not met
// is left out, and fails where REQUIRE_ALL=1 in the environment says that every test must run.
package needs

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Program returns the path of a program of that Debian package.
func Program(t testing.TB, name, debianPackage string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "%s is not installed (Debian: apt-get install %s)", name, debianPackage)
	}
	return path
}

// Browser returns the path of Chromium, whatever it is called here.
func Browser(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	return Program(t, "chromium", "chromium")
}

// Missing ends the test for want of something.
func Missing(t testing.TB, format string, arguments ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, arguments...)
	if os.Getenv("REQUIRE_ALL") == "1" {
		t.Fatal(reason + ", and REQUIRE_ALL=1 wants every test run")
	}
	t.Skip("not run: " + reason)
}
