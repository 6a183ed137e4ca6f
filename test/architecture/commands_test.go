package architecture

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var (
	block = regexp.MustCompile("(?s)```sh\n(.*?)```")
	// calls matches a call of kubectl with the lines that continue it.
	calls = regexp.MustCompile(`kubectl (?:.*\\\n)*.*`)
	// inText matches a call within a sentence.
	inText = regexp.MustCompile("`kubectl [^`]+`")
	// prompted matches a call that is shown with its output.
	prompted = regexp.MustCompile(`(?m)^\$ kubectl .*`)
)

// Clusters have other kinds of these names. On OpenShift `kubectl get projects` would save none of ours.
func TestCommandsThatSaveOrDeleteAllNameKindsWithTheirGroup(t *testing.T) {
	kinds := map[string]bool{}
	for _, kind := range everyKind(t) {
		kinds[kind.Resource], kinds[strings.ToLower(kind.Name)] = true, true
	}
	seen := 0
	for _, name := range []string{"backup.md", "install.md", "kinds/organization.md", "kinds/repository.md"} {
		page := harness.RepositoryFile(t, "docs", name)
		for _, call := range calls.FindAllString(strings.Join(block.FindAllString(page, -1), "\n"), -1) {
			for word := range strings.FieldsFuncSeq(call, separates) {
				if kind, full := strings.CutSuffix(word, "."+v1alpha1.GroupName); kinds[kind] {
					seen++
					if !full {
						t.Errorf("docs/%s: %s may be a kind of another group: write %s.%s", name, kind, kind, v1alpha1.GroupName)
					}
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("found %d kinds; did the form of the pages change?", seen)
	}
}

// The kubeconfig of whoever follows a runbook may have any namespace.
func TestCommandsOfTheRunbooksNameTheirNamespace(t *testing.T) {
	seen := 0
	for _, name := range []string{"operations.md", "retention.md"} {
		page := harness.RepositoryFile(t, "docs", name)
		for _, call := range slices.Concat(calls.FindAllString(strings.Join(block.FindAllString(page, -1), "\n"), -1),
			inText.FindAllString(page, -1), prompted.FindAllString(page, -1)) {
			call, _, _ = strings.Cut(call, " | ") // the next command may have a -n of its own
			words := strings.Fields(strings.Trim(call, "$ `"))
			if len(words) < 3 { // it only names a command, such as `kubectl edit`
				continue
			}
			seen++
			if !slices.Contains(words, "-n") && !slices.Contains(words, "-A") {
				t.Errorf("docs/%s: %s has neither -n nor -A", name, call)
			}
		}
	}
	if seen < 8 {
		t.Errorf("found %d commands; did the form of the pages change?", seen)
	}
}

// separates reports whether the character is between the words of a command.
func separates(r rune) bool { return strings.ContainsRune(" \n,/\"$()", r) }
