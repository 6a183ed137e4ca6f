package main

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// newRootCommand lists the subcommands, a file each.
func newRootCommand(streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-findings",
		Short:         "Work with an application-security team's findings",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl findings"},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	kubeconfig := genericclioptions.NewConfigFlags(true)
	kubeconfig.AddFlags(root.PersistentFlags())
	root.AddCommand(newImportCommand(kubeconfig, streams), newReviewCommand(kubeconfig, streams))
	return root
}
