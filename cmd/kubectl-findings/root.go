package main

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/appsec-dev/findings-operator/internal/version"
)

const rootLong = `Work with an application-security team's findings.

The organization is the namespace: that of the kubeconfig's context, or the one that
--namespace or --organization names.`

// program is the plugin's name, and its user agent for API servers.
const program = "kubectl-findings"

// newRootCommand returns the root command with its subcommands, one per file.
func newRootCommand(streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:           program,
		Version:       version.String(),
		Short:         "Work with an application-security team's findings",
		Long:          rootLong,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl findings"},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(explainFlag)
	kubeconfig := newConnectionFlags(streams.ErrOut)
	kubeconfig.AddFlags(root.PersistentFlags())
	c := cli{streams: streams, kubeconfig: kubeconfig}
	root.AddCommand(
		newImportCommand(c),
		newReviewCommand(c),
		newListCommand(c),
		newTriageCommand(c),
		newTriageIssueCommand(c),
		newOperationsCommand(c),
		newHistoryCommand(c),
		newPolicyCommand(c),
		newKeyCommand(c),
		newRotateKeyCommand("rotate-key", c),
		newRedeliverCommand(c),
	)
	addCompletion(root)
	refuseTwice(root)
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Name() == cobra.ShellCompRequestCmd {
			allowTwice(root)
			return nil
		}
		return errors.Join(refuseBlank(cmd, args), refuseFlagAsValue(cmd))
	}
	return root
}
