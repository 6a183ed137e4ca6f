package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestValuesOfFlagsAreCompleted(t *testing.T) {
	eachCommand(func(cmd *cobra.Command) {
		for _, flag := range []string{
			"output", "repository", "project", "policy", "endpoint", "severity", "status", "category", "reason", "scope", "fail-on", "format",
		} {
			if cmd.Flags().Lookup(flag) == nil {
				continue
			}
			if _, completed := cmd.GetFlagCompletionFunc(flag); !completed {
				t.Errorf("%s --%s is not completed", cmd.CommandPath(), flag)
			}
		}
	})
	for command, want := range map[string]string{
		"review --fail-on": "high\nmedium\nnew\n", "review --format": "markdown\n", "review --status": "open\nclosed\nmerged\n",
		"review -o": "json\nyaml\n", "list --severity": "high\nmedium\nlow\n", "key": "create\t", "policy": "test\t",
		"policy test --fail-on": "gains\nlosses\nchanges\nfailures\nstopped\ninert\n", "review --category": "Code\nPackage\nSecret\n",
		// A flag before it is no obstacle: cobra parses it twice.
		"review -n=org-acme --pr=1 --fail-on": "high\nmedium\nnew\n",
	} {
		root, out := newRootCommand(genericiooptions.NewTestIOStreamsDiscard()), &bytes.Buffer{}
		root.SetOut(out)
		root.SetArgs(slices.Concat([]string{"__complete"}, strings.Fields(command), []string{""}))
		if err := root.Execute(); err != nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s is completed by %q, %v; want %q", command, out, err, want)
		}
	}
}
