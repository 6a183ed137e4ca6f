package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
)

// Bounds of the cost of one key press.
const (
	completionTimeout = 3 * time.Second
	// maxSearched bounds how many objects are searched, maxOffered how many are offered.
	maxSearched = 2000
	maxOffered  = 200
)

const completionLong = `Print the completion script of a shell for the program kubectl-findings.

For "kubectl findings ..." save the output of "completion kubectl" beside the plugin, as
kubectl_complete-findings: kubectl's own completion then calls it. On Windows, write a file
kubectl_complete-findings.cmd with the line "@kubectl-findings __complete %*" instead. Names of
findings, keys, repositories, projects and endpoints are completed too, if you may list them.`

const completionExample = `  # For "kubectl findings": beside the plugin, wherever that is
  target="$(dirname "$(command -v kubectl-findings)")/kubectl_complete-findings"
  kubectl findings completion kubectl > "$target" && chmod +x "$target"

  # For "kubectl-findings" itself
  source <(kubectl findings completion bash)
  kubectl findings completion zsh > "${fpath[1]}/_kubectl-findings"
  kubectl findings completion fish | source`

// pluginScript is what kubectl runs to complete the arguments of the plugin.
const pluginScript = `#!/bin/sh
# kubectl runs this to complete "kubectl findings ...".
exec kubectl-findings __complete "$@"
`

func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	command, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // it was added above
	}
	command.Long, command.Example = completionLong, completionExample
	command.Use = "completion (kubectl | bash | zsh | fish | powershell)"
	command.AddCommand(&cobra.Command{
		Use:   "kubectl",
		Short: "Print the script kubectl_complete-findings",
		Long:  completionLong,
		Args:  flagerror.NoArguments(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), pluginScript)
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	})
}

func completeFilter(cmd *cobra.Command, c cli) {
	completeFlagNames(cmd, "repository", c, "Repository")
	completeFlagNames(cmd, "project", c, "Project")
	completeFlagNames(cmd, "policy", c, "TriagePolicy")
	for _, c := range []choice{severityChoice, stateChoice, userStatusChoice, categoryChoice} {
		completeWords(cmd, c.flag, c.values)
	}
}

func completeWords(cmd *cobra.Command, flag string, values []string) {
	register(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func completeFlagNames(cmd *cobra.Command, flag string, c cli, kind string) {
	register(cmd, flag, func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return offer(cmd.Context(), c, kind, begun, nil, nil)
	})
}

func register(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag is defined where this is called
	}
}

// describe returns a description of an object that is shown beside its name.
type describe func(unstructured.Unstructured) string

func completeNames(c cli, kind string, describe describe) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
		return offer(cmd.Context(), c, kind, begun, given, describe)
	}
}

func completeOneName(c cli, kind string, describe describe) cobra.CompletionFunc {
	complete := completeNames(c, kind, describe)
	return func(cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, given, begun)
	}
}

// offer lists the names with that prefix that are not given yet. After an error it offers fewer names, because it
// cannot be reported.
func offer(ctx context.Context, c cli, kind, begun string, given []string,
	describe describe) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	session, err := c.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	_ = session.eachPage(ctx, kind, maxSearched, session.inNamespace(),
		func(items []unstructured.Unstructured) error {
			names = append(names, matching(items, begun, given, describe)...)
			if len(names) >= maxOffered {
				return errEnough
			}
			return nil
		})
	return names[:min(len(names), maxOffered)], cobra.ShellCompDirectiveNoFileComp
}

func matching(items []unstructured.Unstructured, begun string, given []string, describe describe) []string {
	taken := map[string]bool{}
	for _, name := range given {
		taken[name] = true
	}
	var names []string
	for _, item := range items {
		name := item.GetName()
		if taken[name] || !strings.HasPrefix(name, begun) {
			continue
		}
		if describe != nil {
			name += "\t" + shortened(printable(describe(item)), titleLength)
		}
		names = append(names, name)
	}
	return names
}

// text returns the string at that path, or "".
func text(object unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}

func severityAndTitle(finding unstructured.Unstructured) string {
	return text(finding, "spec", "details", "severity") + ": " + text(finding, "spec", "details", "title")
}

func keyDescription(key unstructured.Unstructured) string { return text(key, "spec", "description") }

func deliveryDescription(d unstructured.Unstructured) string {
	return text(d, "status", "phase") + ": " + text(d, "spec", "event", "type") + " to " +
		text(d, "spec", "endpointRef", "name")
}
