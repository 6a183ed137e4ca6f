package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// A script with an unset variable must not decide, grant or pass more than intended.
func TestAFlagWithoutAValueIsRefused(t *testing.T) {
	blank := func(flag string) string { return flag + " has no value: give it one, or leave it out" }
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"triage", "--mute", "--tool=", "--severity", "low"}, blank("--tool")},
		{[]string{"triage", "--mute", "--tool", " "}, blank("--tool")},
		{[]string{"triage", "--mute", "--severity=", "--tool=gosec"}, blank("--severity")},
		{[]string{"triage", "--mute", "-l", "", "--tool=gosec"}, blank("--selector")},
		{[]string{"triage", "--mute", "f-1", "--expires-at", ""}, blank("--expires-at")},
		{[]string{"triage", "--mute", "f-1", "--organization", ""}, blank("--organization")},
		{[]string{"list", "--severity", ""}, blank("--severity")},
		{[]string{"list", "--severity", "high", "--severity", ""}, blank("--severity")},
		{[]string{"list", "--severity", "high,"}, blank("--severity")},
		{[]string{"key", "create", "ci", "--scope", ""}, blank("--scope")},
		{[]string{"policy", "test", "-f", "x.yaml", "--fail-on", ""}, blank("--fail-on")},
		{[]string{"review", "--repository", "r", "--pr", "1", "--clean", "--fail-on", ""}, blank("--fail-on")},
		{[]string{"import", "x.sarif", "--repository", "r", "--project", ""}, blank("--project")},
		{[]string{"redeliver", "--endpoint", "", "--failed", "--yes"}, blank("--endpoint")},
		{[]string{"redeliver", "--endpoint=", "--selector="}, blank("--endpoint") + "\n" + blank("--selector")},
		// These mean something without a value, so the command goes on to the next mistake.
		{[]string{"import", "x.sarif", "--repository=r", "--project=p", "--analysis="}, "x.sarif is refused"},
		{[]string{"triage", "f-1", "--comment", "", "--undo=x"}, "--undo cannot be combined"},
		{[]string{"triage", "f-1", "--stale=false", "--mute"}, "there are names and filters"},
		{[]string{"redeliver", "--namespace=", "--context=", "--token="}, "which deliveries?"},
	} {
		root := newRootCommand(genericiooptions.NewTestIOStreamsDiscard())
		root.SetArgs(append(tc.args, "--kubeconfig=does-not-exist")) // so that no cluster is reached
		harness.ErrorContains(t, strings.Join(tc.args, " "), root.Execute(), tc.want)
	}
}

func TestATokenIsNotRepeatedInAnError(t *testing.T) {
	root := newRootCommand(genericiooptions.NewTestIOStreamsDiscard())
	root.SetArgs([]string{"list", "--token", "hush-a", "--token", "hush-b"})
	err := root.Execute()
	harness.ErrorContains(t, "two tokens", err, "--token is given twice: use it once")
	if strings.Contains(err.Error(), "hush") {
		t.Errorf("it repeats a token: %v", err)
	}
}

func TestHelpShowsNoDefaultsThatMeanNothing(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, nothing := range []string{"default []", "default 0s"} {
			if usage := cmd.UsageString(); strings.Contains(usage, nothing) {
				t.Errorf("%q is in\n%s", nothing, usage)
			}
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(newRootCommand(genericiooptions.NewTestIOStreamsDiscard()))
}
