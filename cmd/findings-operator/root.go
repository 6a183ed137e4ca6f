package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
	"github.com/appsec-dev/findings-operator/internal/version"
)

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:     "findings-operator",
		Version: version.String(),
		Short:   "Keep an application-security team's findings in Kubernetes",
		// An error at runtime is not a usage error, and main prints it, once.
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := limitMemory(); err != nil {
				return err
			}
			return flagerror.RefuseBlank(cmd, func(flag *pflag.Flag) bool {
				return flagerror.IsBlank(strings.Trim(flag.Value.String(), "[]")) // pflag prints an empty list as []
			})
		},
	}
	root.SetFlagErrorFunc(flagerror.Explain)
	root.AddCommand(
		newControllerCommand(),
		newAPIServerCommand(),
		newHealthcheckCommand(),
		newSizeCommand(),
	)
	return root
}
