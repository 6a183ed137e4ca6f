package architecture

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// go test passes if no test has the name.
func TestEveryTestThatThePagesRunExists(t *testing.T) {
	root := harness.Root()
	seen := 0
	for _, page := range trackedPages(t, root) {
		for _, command := range goTest.FindAllString(harness.File(t, page), -1) {
			for _, function := range functionsOf(command) {
				seen++
				if !declares(t, root, command, function) {
					t.Errorf("%s: no function %s exists for %q", strings.TrimPrefix(page, root+"/"), function, command)
				}
			}
		}
	}
	if seen < 15 {
		t.Errorf("found %d names; did the form of the pages change?", seen)
	}
}

var (
	goTest  = regexp.MustCompile("go test [^`\n]*")
	chosen  = regexp.MustCompile(`-(run|bench) ('[^']+'|\S+)`)
	folders = regexp.MustCompile(` \./(\S+)`)
	kinds   = map[string]string{"run": "Test", "bench": "Benchmark"}
)

// functionsOf returns a pattern for each function that a go test command names, without its subtests.
func functionsOf(command string) (patterns []string) {
	for _, match := range chosen.FindAllStringSubmatch(command, -1) {
		for name := range strings.SplitSeq(strings.Trim(match[2], "'"), "|") {
			name, _, _ = strings.Cut(name, "/")
			if name != "xxx" && name != "^$" { // these are meant to match no test
				patterns = append(patterns, kinds[match[1]]+".*"+strings.TrimPrefix(name, kinds[match[1]]))
			}
		}
	}
	return patterns
}

// declares reports whether a package that the command names, or without one any package, declares the function.
func declares(t *testing.T, root, command, function string) bool {
	t.Helper()
	search := exec.CommandContext(t.Context(), "git", "grep", "--untracked", "-qE", "^func "+function, "--")
	for _, match := range folders.FindAllStringSubmatch(command, -1) {
		search.Args = append(search.Args, ":(glob)"+match[1]+"/*_test.go")
	}
	search.Dir = root
	return search.Run() == nil
}
