package main

import "github.com/spf13/cobra"

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "findings-operator",
		Short: "Keep an application-security team's findings in Kubernetes",
		// What went wrong while running is no question of usage, and main prints it, once.
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		newControllerCommand(),
		newAPIServerCommand(),
		newHealthcheckCommand(),
	)
	return root
}
