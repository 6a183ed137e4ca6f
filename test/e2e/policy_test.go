package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// consoleBlock matches a block of commands with their output.
var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// shown is a command of the README with its output there.
type shown struct{ command, output string }

// blockOfREADME returns the block of commands that contains the text.
func blockOfREADME(t *testing.T, text string) []shown {
	t.Helper()
	page := harness.RepositoryFile(t, "README.md")
	for _, block := range consoleBlock.FindAllStringSubmatch(page, -1) {
		if strings.Contains(block[1], text) {
			return commandsOf(block[1])
		}
	}
	t.Fatalf("the README has no commands with %q", text)
	return nil
}

// commandsOf splits a block. A command continues after a pipe or a backslash, and to the end of a
// here-document.
func commandsOf(block string) (out []shown) {
	for line := range strings.Lines(block) {
		command, begins := strings.CutPrefix(line, "$ ")
		switch last := len(out) - 1; {
		case begins:
			out = append(out, shown{command: command})
		case last >= 0 && goesOn(out[last].command):
			out[last].command += line
		case last >= 0:
			out[last].output += line
		}
	}
	return out
}

func goesOn(command string) bool {
	if strings.Contains(command, "<<'EOF'\n") {
		return !strings.HasSuffix(command, "\nEOF\n")
	}
	return strings.HasSuffix(command, "|\n") || strings.HasSuffix(command, "\\\n")
}

// checkPolicy runs the README's commands that mute a class of findings. checkMutedByPolicy checks later
// uploads.
func checkPolicy(t *testing.T, r *run) {
	for _, c := range blockOfREADME(t, "kubectl findings policy test") {
		harness.Same(t, c.command+", compared with the README", c.output, r.shell(t, t.TempDir(), c.command))
	}
}

// checkMutedByPolicy runs the README's command that shows which findings of an upload were muted on
// arrival.
func checkMutedByPolicy(t *testing.T, r *run) {
	needs.Program(t, "curl", "curl")
	needs.Program(t, "jq", "jq")
	for _, c := range blockOfREADME(t, "?class=CWE-703") {
		eventually(t, "the class is muted as the README shows", func() bool { return r.shell(t, t.TempDir(), c.command) == c.output })
	}
}
