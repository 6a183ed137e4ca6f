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
	for flag, want := range map[string]string{
		"--fail-on": "high\nmedium\nnew\n", "--format": "markdown\n", "--status": "open\nclosed\nmerged\n", "-o": "json\nyaml\n",
		// A flag before it is no obstacle: cobra parses it twice.
		"-n=org-acme --pr=1 --fail-on": "high\nmedium\nnew\n",
	} {
		root, out := newRootCommand(genericiooptions.NewTestIOStreamsDiscard()), &bytes.Buffer{}
		root.SetOut(out)
		root.SetArgs(slices.Concat([]string{"__complete", "review"}, strings.Fields(flag), []string{""}))
		if err := root.Execute(); err != nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("review %s is completed by %q, %v", flag, out, err)
		}
	}
}
