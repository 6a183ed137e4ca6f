package main

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Paths in the files are never below a relative root, so it would have no effect.
func TestASourceRootIsAnAbsolutePath(t *testing.T) {
	for _, command := range []string{
		"import x.sarif --repository r --project p", "review x.sarif --repository r --pr 1 --commit 0123456",
	} {
		for root, want := range map[string]string{
			".": "must be an absolute path", "src": "must be an absolute path", "src/a:b": "must be an absolute path",
			"https://example.com/acme/shop": "must be an absolute path",
			"/home/me/shop":                 "x.sarif is refused", "file:///home/me/shop": "x.sarif is refused",
			`C:\src\shop`: "x.sarif is refused", "/": "x.sarif is refused",
		} {
			plugin := newRootCommand(genericiooptions.NewTestIOStreamsDiscard())
			plugin.SetArgs(append(strings.Fields(command), "--source-root", root))
			if err := plugin.Execute(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s --source-root %s: got %v, want %q", command, root, err, want)
			}
		}
	}
}
