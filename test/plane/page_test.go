//go:build plane

package plane

import (
	"regexp"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// page holds the section's blocks of commands by their first line, which is a comment.
type page map[string]string

func readPage(t *testing.T) page {
	t.Helper()
	content := harness.RepositoryFile(t, "docs", "findings-plane.md")
	_, section, found := strings.Cut(content, "\n## A plane without a cluster\n")
	if !found {
		t.Fatal("docs/findings-plane.md has no section about a plane without a cluster")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	p := page{}
	for _, block := range strings.Split(section, "```sh\n# ")[1:] {
		block, _, _ = strings.Cut(block, "```")
		name, commands, _ := strings.Cut(block, "\n")
		p[name] = commands
	}
	return p
}

// Ports in the page that each run replaces with free ones.
var ports = regexp.MustCompile(`\b(2379|2381|5432|6443|8080|8081|9090|9091)\b`)

// program matches a program that a block starts and that does not end.
var program = regexp.MustCompile(`(?m)^(kine|kube-apiserver|kube-controller-manager|findings-operator) `)

// commands returns the commands of a block, with this run's ports in place of the page's. A program
// that does not end replaces the shell.
func (p page) commands(t *testing.T, name string, free map[string]string) string {
	t.Helper()
	commands, found := p[name]
	if !found {
		t.Fatalf("the page has no block %q", name)
	}
	commands = ports.ReplaceAllStringFunc(commands, func(port string) string { return free[port] })
	return strings.TrimRight(program.ReplaceAllString(commands, "exec $1 "), "\n")
}
