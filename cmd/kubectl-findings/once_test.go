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
		// Windows PowerShell drops an empty argument, and every shell a variable that is empty and not quoted.
		{[]string{"triage", "f-1", "--comment", "--mute"}, `--comment is "--mute", which is a flag: write --comment= for an empty value`},
		{[]string{"triage", "f-1", "--mute", "--comment", "-q"}, `--comment is "-q", which is a flag`},
		{[]string{"triage", "f-1", "--mute", "--comment", "--reason=duplicate"}, `--comment is "--reason=duplicate", which is a flag`},
		{[]string{"import", "x.sarif", "--repository=r", "--project=p", "--analysis", "--dry-run"}, `--analysis is "--dry-run", which is a flag`},
		{[]string{"list", "--tool", "--stale"}, `--tool is "--stale", which is a flag: its own value is missing`},
		{[]string{"list", "--severity", "--stale"}, `--severity is "--stale", which is a flag: its own value is missing`},
		{[]string{"list", "--namespace", "--stale"}, `--namespace is "--stale", which is a flag: its own value is missing`},
		{[]string{"triage", "f-1", "--comment", "--no flag", "--undo=x"}, "--undo cannot be combined"},
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

func TestAFlagGivenTwiceIsAnError(t *testing.T) {
	for command, want := range map[string]string{
		"list --tool gosec --tool trivy":                           `first as "gosec"`,
		"list -n org-a -n org-b":                                   `first as "org-a"`,
		"list --organization a --organization twice":               `first as "a"`,
		"list --limit 1 --limit 2":                                 `first as "1"`,
		"triage f-1 --mute --comment a --comment b":                `first as "a"`,
		"triage f-1 --mute --mute":                                 "given twice",
		"import x.sarif --repository a --repository b --project c": `first as "a"`,
	} {
		root := newRootCommand(genericiooptions.NewTestIOStreamsDiscard())
		root.SetArgs(append(strings.Fields(command), "--kubeconfig=does-not-exist")) // so that no cluster is reached
		err := root.Execute()
		harness.ErrorContains(t, command, err, want)
		harness.ErrorContains(t, command, err, "use it once")
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

// eachCommand calls do for the root command and for all subcommands.
func eachCommand(do func(cmd *cobra.Command)) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		do(cmd)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand(genericiooptions.NewTestIOStreamsDiscard()))
}

func TestHelpShowsNoDefaultsThatMeanNothing(t *testing.T) {
	eachCommand(func(cmd *cobra.Command) {
		harness.Lacks(t, "the usage", cmd.UsageString(), "default []", "default 0s")
	})
}

// Each subcommand's help has examples, which begin as a user would type them.
func TestEachSubcommandHasExamples(t *testing.T) {
	eachCommand(func(cmd *cobra.Command) {
		command, _, _ := strings.Cut(strings.TrimPrefix(cmd.CommandPath(), "kubectl findings "), " ")
		if !cmd.HasParent() || command == "help" || cmd.Parent().Name() == "completion" {
			return // cobra's own
		}
		if usage := cmd.UsageString(); !strings.HasPrefix(usage, "Usage:\n  kubectl findings "+command) ||
			!strings.Contains(cmd.Example, "kubectl findings "+command) {
			t.Errorf("%s has no example of itself:\n%s", cmd.CommandPath(), usage)
		}
	})
}
